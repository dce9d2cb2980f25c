"""What a rule is, and what it sees.

Ranking. A line that a rule matches becomes a candidate; the candidate with the lowest rank is
the cause, and among equals the earliest line, because the first worker's error is the cause and
later ones follow from it. Ranks, in order:

====  =============  ================================================================
0     ``HOST``       the kernel or systemd names it: a GPU lost, memory of the host gone
1     ``ROOT``       the text names the cause
2     ``SYMPTOM``    the text names what broke (memory, a CUDA call), not by what
2.2   (no rule)      an exception that no rule knows, from the process that failed first
2.5   ``ROOT``       as above, but in a traceback that did not end its process
3     ``LOSS``       a process is gone or a peer is: something happened elsewhere
4     ``ECHO``       the text only says that something failed before
====  =============  ================================================================

``HARMLESS`` rules are never a cause; :func:`facts.diagnosis.remarks.remarks` tells them.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from pydantic import Field

from facts.journal.lines import Line
from facts.journal.numbers import EngineNumbers
from facts.journal.settings import LoggedSettings
from facts.journal.starts import Start
from facts.journal.tracebacks import Traceback
from inventory.base import Frozen

Number = int | float | str
Numbers = dict[str, Number]

_TEXTS = frozenset(
    {"path", "file", "flag", "repo", "parser", "nccl", "pci", "config", "argument", "what"}
)
"""Values that stay text, even where they look like numbers."""
_WARNS = re.compile(r"^\[W\d{4} |^\S+:\d+: \w*Warning: |^\[rank\d+\]:\[W\d{4} ")


class Hints(Frozen):
    """What a caller knows besides the journal, to make a remedy exact.

    All optional: a diagnosis never needs them, and never contradicts the journal with them.
    """

    now: float | None = Field(
        default=None, description="seconds since the epoch: when the journal was read"
    )
    fits_max_num_seqs: int | None = Field(
        default=None, ge=1, description="the largest max_num_seqs that fits, from inventory.fit"
    )
    bad_files: tuple[str, ...] = Field(
        default=(), description="shards that a check of the folder found damaged"
    )
    environment: dict[str, str] = Field(default_factory=dict, description="of the unit")


class Rank(Enum):
    """How near a text is to the cause; see the table above."""

    HOST = 0.0
    ROOT = 1.0
    SYMPTOM = 2.0
    LOSS = 3.0
    ECHO = 4.0
    HARMLESS = 9.0


UNKNOWN_RANK = 2.2
MOST_READ = 3000
"""Characters of a line in which a cause is looked for: lines can be of any length."""
NOT_FATAL = 1.5
"""Added for a traceback that did not end its process."""


@dataclass(frozen=True)
class Scene:
    """One start, read once for all rules.

    + window: the lines in which the cause may stand: of a start that was serving, those since
    + later: the starts of the chain after this one
    """

    start: Start
    settings: LoggedSettings
    engine: EngineNumbers
    hints: Hints
    window: tuple[Line, ...]
    traces: tuple[Traceback, ...]
    later: tuple[Start, ...] = ()

    @property
    def serving(self) -> bool:
        """Whether the server was up before it failed."""
        return self.start.ready is not None


@dataclass(frozen=True)
class Evidence:
    """A line that a rule's pattern matched, and everything around it."""

    scene: Scene
    line: Line
    match: re.Match[str]
    trace: Traceback | None = None

    @property
    def calls(self) -> str:
        """The traceback's files, functions and source lines."""
        return self.trace.calls if self.trace else ""

    def groups(self) -> Numbers:
        """The pattern's named groups, numbers as numbers; ``_names`` are the rule's own."""
        return {
            name: value_of(name, text)
            for name, text in self.match.groupdict().items()
            if text is not None and not name.startswith("_")
        }


Text = str | Callable[[Evidence, Numbers], str]


@dataclass(frozen=True)
class Rule:
    """One row of the failure catalogue.

    + cause: its id, which stays the same
    + title: what happened, in a few words
    + patterns: on the text of one line; named groups become the diagnosis's numbers
    + why: what it means and why it matters
    + next_step: the remedy; ``{name}`` is filled in from the numbers
    + source: where the text or the remedy was taken from
    + calls: pattern that the traceback's calls have to match
    + when: further condition
    + numbers: further numbers
    + warns: a WARNING may be the cause too
    """

    cause: str
    title: str
    patterns: tuple[str, ...]
    why: Text
    next_step: Text
    source: str
    rank: Rank = Rank.ROOT
    calls: str = ""
    when: Callable[[Evidence], bool] | None = None
    numbers: Callable[[Evidence], Mapping[str, Number | None]] | None = None
    warns: bool = False
    compiled: tuple[re.Pattern[str], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "compiled", tuple(re.compile(text) for text in self.patterns))

    def matches(self, scene: Scene, line: Line, trace: Traceback | None) -> Evidence | None:
        """The evidence, if this rule knows the line."""
        text = line.text[:MOST_READ]
        for pattern in self.compiled:
            match = pattern.search(text)
            if match is None:
                continue
            evidence = Evidence(scene, line, match, trace)
            if self.calls and not re.search(self.calls, evidence.calls):
                continue
            if self.when is None or self.when(evidence):
                return evidence
        return None

    def figures(self, evidence: Evidence) -> Numbers:
        """All numbers of a match."""
        found = evidence.groups()
        for name, value in (self.numbers(evidence) if self.numbers else {}).items():
            if value is not None:
                found[name] = value
        return found


def is_warning(line: Line) -> bool:
    """Whether a line only warns: by its level, or as Python and torch write warnings."""
    return line.level == "WARNING" or (
        not line.level and _WARNS.search(line.text) is not None and line.role != "systemd"
    )


def value_of(name: str, text: str) -> Number:
    """A group's text as the number that it is.

    >>> value_of("free_gib", "0.62"), value_of("world_size", "4"), value_of("nccl", "2.28")
    (0.62, 4, '2.28')
    """
    if name in _TEXTS:
        return text
    if re.fullmatch(r"-?[0-9]{1,15}", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?[0-9]{1,15}\.[0-9]{1,15}", text) else text


def filled(text: Text, evidence: Evidence, numbers: Numbers) -> str:
    """A rule's sentence with the numbers in it; braces that name no number stay."""
    if not isinstance(text, str):
        text = text(evidence, numbers)
    return re.sub(r"\{(\w+)\}", lambda match: str(numbers.get(match[1], match[0])), text)


def floating(value: Number | None) -> float:
    """A number as a float. Text and None are 0."""
    return float(value) if isinstance(value, (int, float)) else 0.0


def listed(words: list[str] | tuple[str, ...]) -> str:
    """Words as a list for people.

    >>> listed(["a", "b", "c"])
    'a, b or c'
    """
    return " or ".join(part for part in (", ".join(words[:-1]), words[-1] if words else "") if part)
