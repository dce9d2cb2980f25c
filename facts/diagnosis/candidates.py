"""The lines of a start that may be its cause, each with the rule that knows it."""

import re
from dataclasses import dataclass

from facts.diagnosis.rule import (
    MOST_READ,
    NOT_FATAL,
    UNKNOWN_RANK,
    Evidence,
    Rank,
    Rule,
    Scene,
    is_warning,
)
from facts.diagnosis.rules import RULES
from facts.journal.lines import QUIET_LEVELS, Line
from facts.journal.tracebacks import Raised, Traceback

_DUMPS = "dump_input.py"
"""Prints the whole configuration at ERROR before a fatal step: any word may stand in it."""
_OF_WARNINGS = tuple(rule for rule in RULES if rule.warns)
_ANY = re.compile(
    "|".join(
        f"(?:{re.sub(r'[(][?]P<[^>]+>', '(?:', pattern)})"
        for rule in RULES
        for pattern in rule.patterns
    )
)
"""Whether any rule may know a text: one search instead of one for each rule."""
_REPEATS = re.compile(r"Worker failed with error")
REPEATED_RANK = 3.5
LOOSE_ERROR_RANK = 3.7
"""An error that no rule knows, logged without a traceback."""


@dataclass(frozen=True)
class Candidate:
    """One line that may be the cause.

    + rule: None where no rule knows the line
    """

    rank: float
    line: Line
    rule: Rule | None = None
    evidence: Evidence | None = None
    trace: Traceback | None = None

    @property
    def order(self) -> tuple[float, int, int]:
        """Lowest is the cause: by rank, then the earliest, and of one chain of exceptions the
        last, which is the one that was written for people."""
        anchor = self.trace.begin.no if self.trace else self.line.no
        return self.rank, anchor, -self.line.no


def candidates(scene: Scene) -> list[Candidate]:
    """All candidates of a start, the cause first."""
    owners = _owners(scene.traces)
    quoted = {line for trace in scene.traces for line in trace.body}
    found: list[Candidate] = []
    for line in scene.window:
        if line.level in QUIET_LEVELS or line.source == _DUMPS:
            continue
        trace = owners.get(line)
        if line in quoted and trace is None:
            continue
        found.extend(_by_rule(scene, line, trace))
    known = {candidate.trace.begin for candidate in found if candidate.trace}
    found.extend(_unknown(trace) for trace in scene.traces if _unexplained(trace, known))
    if all(candidate.rank >= REPEATED_RANK for candidate in found):
        found.extend(_loose(scene, found))
    return sorted(found, key=lambda candidate: candidate.order)


def _owners(traces: tuple[Traceback, ...]) -> dict[Line, Traceback]:
    """The traceback of each line that is, or belongs to, an exception's message."""
    return {
        line: trace
        for trace in traces
        for raised in trace.chain
        for line in (raised.line, raised.subject, *raised.more)
        if line is not None
    }


def _by_rule(scene: Scene, line: Line, trace: Traceback | None) -> list[Candidate]:
    if not _ANY.search(line.text[:MOST_READ]):
        return []
    for rule in _OF_WARNINGS if is_warning(line) else RULES:
        evidence = rule.matches(scene, line, trace)
        if evidence is None:
            continue
        rank = rule.rank.value
        if trace is not None and not trace.fatal:
            rank += NOT_FATAL
        if _REPEATS.search(line.text) and rank < REPEATED_RANK:
            rank = max(rank, UNKNOWN_RANK - 0.1)
        return [Candidate(rank, line, rule, evidence, trace)]
    return []


def _unexplained(trace: Traceback, known: set[Line]) -> bool:
    return trace.fatal and trace.begin not in known and trace.surfaced is not None


def _unknown(trace: Traceback) -> Candidate:
    """An exception that no rule knows."""
    raised: Raised | None = trace.surfaced
    subject = raised.subject if raised else None
    line = subject if subject is not None else trace.begin
    rank = REPEATED_RANK if _REPEATS.search(line.text) else UNKNOWN_RANK
    return Candidate(rank, line, trace=trace)


def _loose(scene: Scene, found: list[Candidate]) -> list[Candidate]:
    """Errors outside of tracebacks, which count only where nothing better is there."""
    taken = {candidate.line for candidate in found}
    inside = _owners(scene.traces)
    return [
        Candidate(LOOSE_ERROR_RANK, line)
        for line in scene.window
        if line.level in {"ERROR", "CRITICAL"}
        and line.source != _DUMPS
        and line.text.strip()
        and line not in taken
        and line not in inside
        and not any(line in trace.body or line == trace.begin for trace in scene.traces)
    ]


def first_of_its_kind(found: list[Candidate]) -> Candidate:
    """The cause: of the candidate that comes first, the earliest line of the same rule and rank.

    Ranks print their tracebacks mixed; which one began first and which one ended first differ.
    """
    best = found[0]
    if best.rule is None:
        return best
    same = [other for other in found if other.rule is best.rule and other.rank == best.rank]
    return min(same, key=lambda candidate: candidate.line.no)


def is_echo(candidate: Candidate) -> bool:
    """Whether a candidate that is not the cause only follows from it."""
    return candidate.rank >= Rank.LOSS.value
