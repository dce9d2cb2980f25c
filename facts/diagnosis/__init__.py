"""Why a start failed, from its journal: the one line that is the cause, and the exact remedy.

Pure functions of text. ``facts.journal`` reads a journal and cuts it into starts. Rules, grouped by
family in ``rules/``, know the texts; the candidate of the lowest rank is the cause (``rule``,
``candidates``). By hand::

    journalctl -u vllm-minimax-m25 -o short-iso-precise | python -m facts.diagnosis

Example::

    diagnosis = from_text(journal_text, kernel_text)
    if diagnosis is not None:
        raise ConvergeError(wanted, diagnosis.found, diagnosis.why, diagnosis.next_step)
"""

from facts.diagnosis.diagnose import from_text
from facts.diagnosis.rule import Hints

__all__ = ["Hints", "from_text"]
