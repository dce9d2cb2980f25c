"""The result: what happened, by which line, why, and what to do."""

from typing import Self

from pydantic import Field

from facts.diagnosis.rule import Number
from facts.journal.lines import Line
from inventory.base import Frozen
from inventory.common.masks import masked

UNKNOWN = "unknown"
MOST_QUOTED = 500


class Quote(Frozen):
    """A line of the journal."""

    no: int
    """Line number in the text that was read; of the kernel's text for the kernel's lines."""
    process: str
    """As the engine names it, or ``systemd`` or ``kernel``."""
    text: str

    @classmethod
    def of(cls, line: Line) -> Self:
        """Quote a line: shortened, and without what looks like a secret."""
        text = masked(line.text.strip())
        if len(text) > MOST_QUOTED:
            text = f"{text[:MOST_QUOTED]}…"
        return cls(no=line.no, process=line.process or line.role or "engine", text=text)

    def __str__(self) -> str:
        return f"{self.process} (line {self.no}): {self.text}"


class Diagnosis(Frozen):
    """Why a start failed, or a service died.

    ``found``, ``why`` and ``next_step`` are three of the four parts of an error; what was wanted
    is the caller's.
    """

    cause: str
    """Stable id of a row of the catalogue, or ``unknown``."""
    title: str
    line: Quote
    """The one line that is the cause."""
    why: str
    next_step: str
    numbers: dict[str, Number] = Field(default_factory=dict)
    """What the remedy was computed from, and what it came to."""
    same: tuple[Quote, ...] = ()
    """The same error of other ranks."""
    echoes: tuple[Quote, ...] = ()
    """Lines that only follow from it."""
    context: tuple[Quote, ...] = ()
    """Around the line, where the cause is unknown."""
    phase: str = ""
    """The phase of the start when it happened; ``serving`` once the start was over."""
    ending: str = ""
    """How the main process ended, as systemd saw it."""
    attempt: int = 1
    """Which start of the journal shows it, from 1."""
    recovered: bool = False
    """A later start of the same chain became ready."""
    source: str = ""
    """Where the rule was taken from."""

    @property
    def known(self) -> bool:
        """Whether a rule names the cause."""
        return self.cause != UNKNOWN

    @property
    def found(self) -> str:
        """What the journal shows, in a sentence."""
        where = f" ({self.phase})" if self.phase else ""
        ending = f"; {self.ending}" if self.ending else ""
        return f"{self.title}{where}: {self.line}{ending}"


def explain(diagnosis: Diagnosis) -> str:
    """A diagnosis for people: every part of it, one to a line.

    + returns: several lines, without a trailing newline
    """
    lines = [
        f"cause: {diagnosis.cause}, {diagnosis.title}",
        f"found: {diagnosis.found}",
        f"  why: {diagnosis.why}",
        f" next: {diagnosis.next_step}",
    ]
    if diagnosis.recovered:
        lines.append("       a later start became ready")
    if diagnosis.same:
        others = ", ".join(dict.fromkeys(quote.process for quote in diagnosis.same))
        lines.append(f"       the same from {others}")
    lines.extend(f"       | {quote}" for quote in diagnosis.context)
    if diagnosis.echoes:
        lines.append("only echoes of it:")
        lines.extend(f"       | {quote}" for quote in diagnosis.echoes)
    return "\n".join(lines)
