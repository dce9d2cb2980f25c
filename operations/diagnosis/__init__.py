"""Why a start failed, from its journal: the one line that is the cause, and the exact remedy.

Pure functions of text. A journal is read into lines (``journal``), cut into starts (``starts``),
its tracebacks are put together (``tracebacks``); rules, grouped by family in ``rules/``, know the
texts; the candidate of the lowest rank is the cause (``rule``, ``candidates``). Phases and the
engine's own numbers are read from the same lines (``phases``, ``engine``).

Example::

    diagnosis = from_text(journal_text, kernel_text)
    if diagnosis is not None:
        raise ConvergeError(wanted, diagnosis.found, diagnosis.why, diagnosis.next_step)
"""

from __future__ import annotations

from operations.diagnosis.diagnose import diagnose, from_text
from operations.diagnosis.engine import EngineNumbers
from operations.diagnosis.facts import Facts
from operations.diagnosis.journal import Journal, Line, read_journal
from operations.diagnosis.milestones import MILESTONES, Milestone
from operations.diagnosis.phases import Phase, Phases, phases, remaining
from operations.diagnosis.remarks import Remark, remarks
from operations.diagnosis.result import UNKNOWN, Diagnosis, Quote, explain

__all__ = [
    "MILESTONES",
    "UNKNOWN",
    "Diagnosis",
    "EngineNumbers",
    "Facts",
    "Journal",
    "Line",
    "Milestone",
    "Phase",
    "Phases",
    "Quote",
    "Remark",
    "diagnose",
    "explain",
    "from_text",
    "phases",
    "read_journal",
    "remaining",
    "remarks",
]
