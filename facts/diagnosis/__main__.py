"""Explain the journal on standard input: why a start failed, and what is odd besides."""

import sys

from facts.diagnosis.diagnose import diagnose
from facts.diagnosis.remarks import remarks
from facts.diagnosis.result import explain
from facts.journal.lines import read_journal


def explained(text: str | bytes) -> str:
    """What a journal tells, for people.

    + text: what ``journalctl`` printed about a unit
    """
    journal = read_journal(text)
    found = diagnose(journal)
    told = ["no failed start" if found is None else explain(found)]
    for remark in remarks(journal):
        told += [f"besides: {remark.title}: {remark.line}", f" next: {remark.next_step}"]
    return "\n".join(told)


if __name__ == "__main__":
    print(explained(sys.stdin.buffer.read()))
