"""What a journal shows that looks like trouble and is harmless, or only costs speed."""

from facts.diagnosis.result import Quote
from facts.diagnosis.rule import Hints, Scene, filled
from facts.diagnosis.rules import HARMLESS
from facts.journal.lines import Journal
from facts.journal.numbers import engine_numbers
from facts.journal.settings import settings
from facts.journal.starts import last_chain, starts
from inventory.base import Frozen


class Remark(Frozen):
    """One thing worth knowing about a start, which is not a failure."""

    cause: str
    title: str
    line: Quote
    """The first line that shows it."""
    why: str
    next_step: str


def remarks(journal: Journal) -> tuple[Remark, ...]:
    """Remarks on the last start of a journal, each once."""
    start = last_chain(starts(journal))[-1]
    scene = Scene(
        start=start,
        settings=settings(start.lines),
        engine=engine_numbers(start.lines),
        hints=Hints(),
        window=start.lines,
        traces=(),
    )
    found: dict[str, Remark] = {}
    for line in start.lines:
        for rule in HARMLESS:
            evidence = None if rule.cause in found else rule.matches(scene, line, None)
            if evidence is None:
                continue
            numbers = rule.figures(evidence)
            found[rule.cause] = Remark(
                cause=rule.cause,
                title=rule.title,
                line=Quote.of(line),
                why=filled(rule.why, evidence, numbers),
                next_step=filled(rule.next_step, evidence, numbers),
            )
    return tuple(found.values())
