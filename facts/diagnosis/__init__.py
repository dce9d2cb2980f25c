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

from facts.diagnosis.diagnose import diagnose, from_text
from facts.diagnosis.hints import Hints
from facts.diagnosis.remarks import Remark, remarks
from facts.diagnosis.result import UNKNOWN, Diagnosis, Quote, explain
from facts.journal.lines import Journal, Line, read_journal
from facts.journal.numbers import EngineNumbers
from facts.journal.phases import Phase, Phases, phases

__all__ = [
    "UNKNOWN",
    "Diagnosis",
    "EngineNumbers",
    "Hints",
    "Journal",
    "Line",
    "Phase",
    "Phases",
    "Quote",
    "Remark",
    "diagnose",
    "explain",
    "from_text",
    "phases",
    "read_journal",
    "remarks",
]
