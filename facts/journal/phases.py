"""Where the seconds of a start went, and how many are left."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from facts.journal.lines import Journal, Line
from facts.journal.milestones import EAGER_SKIPS, MILESTONES, TEARDOWN, TITLES
from facts.journal.numbers import EngineNumbers, engine_numbers
from facts.journal.settings import settings
from facts.journal.starts import Start, last_chain, starts
from facts.journal.tracebacks import tracebacks
from inventory.base import Frozen

_DIES = re.compile(r"Worker proc \S+ died unexpectedly|\S+: error: ")
_JITTER = 1.0
"""Seconds by which lines of several processes may stand in another order than they were written."""
_COMPILED = tuple((stone, re.compile(stone.pattern)) for stone in MILESTONES)


class Phase(Frozen):
    """One part of a start.

    + name: one of those in :mod:`facts.journal.milestones`
    + done: its end was seen
    """

    name: str
    seconds: float
    done: bool = True

    @property
    def title(self) -> str:
        """What happens in it, for people."""
        return TITLES[self.name]


class Phases(Frozen):
    """A start in parts, which follow each other without a gap.

    Their sum is the time until the server was up, or until the start ended, or until the last
    line where it is still under way. A phase that prints nothing (graph capture where it is
    switched off) is missing, and its time is in the next one.
    """

    parts: tuple[Phase, ...] = ()
    ready: float | None = None
    """Seconds until the server said that it is up."""
    until_exit: float | None = None
    """Seconds until the main process was gone, however long it served."""
    engine: EngineNumbers = EngineNumbers()

    @property
    def total(self) -> float:
        """Sum of the parts in seconds."""
        return sum(part.seconds for part in self.parts)

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds by phase: what a record keeps, and what :func:`remaining` compares with."""
        return {part.name: part.seconds for part in self.parts}

    @property
    def current(self) -> Phase | None:
        """The phase that is under way, or that the start ended in."""
        return next((part for part in self.parts if not part.done), None)


def phases(journal: Journal, now: float | None = None) -> Phases:
    """Split a start into phases.

    + journal: of one start; where it holds several, the last of the last chain that became
      ready is taken, or the first of that chain where none did
    + now: seconds since the epoch, for a start that is under way
    """
    chain = last_chain(starts(journal))
    chosen = next((start for start in reversed(chain) if start.ready is not None), chain[0])
    return phases_of(chosen, now)


def phases_of(start: Start, now: float | None = None) -> Phases:
    """Split one start into phases. Without times there are no parts."""
    start, behind = _steady(start)
    began, end = start.began, _end(start, None if now is None else now + behind)
    lines = start.lines if start.ready is None else start.lines[: start.ready + 1]
    engine = engine_numbers(start.lines)
    if began is None or end is None:
        return Phases(engine=engine)
    # Within the jitter a last line may be older than the first one.
    end = max(began, end)
    gone = start.lines[start.ended].time if start.ended is not None else None
    until_exit = None if gone is None else max(0.0, gone - began)
    parts: list[Phase] = []
    at = began
    for name, time in _ends(lines):
        reached = min(max(at, time), end)
        parts.append(Phase(name=name, seconds=reached - at))
        at = reached
    if start.ready is None:
        parts.extend(_unfinished(lines, parts, at, end))
    ready = end - began if start.ready is not None else None
    return Phases(parts=tuple(parts), ready=ready, until_exit=until_exit, engine=engine)


def _steady(start: Start) -> tuple[Start, float]:
    """The start by a clock that nobody sets back: a correction in the middle is no negative time.

    + returns: with it, how many seconds were taken back
    """
    behind, last, lines = 0.0, None, []
    for line in start.lines:
        if line.time is not None:
            if last is not None and line.time + behind < last - _JITTER:
                behind = last - line.time
            last = line.time + behind
        lines.append(line._replace(time=last) if behind and line.time is not None else line)
    return (replace(start, lines=tuple(lines)), behind) if behind else (start, behind)


def remaining(now: Phases, before: Mapping[str, float]) -> float | None:
    """Seconds until the server is up, if each phase takes as long as it did the last time.

    + now: the start that is under way
    + before: seconds by phase of an earlier start (``Phases.seconds``)
    + returns: None where nothing comparable is known, 0 where the start is ready

    >>> under_way = Phases(parts=(Phase(name="import", seconds=9),
    ...                           Phase(name="configuration", seconds=5, done=False)))
    >>> remaining(under_way, {"import": 10, "configuration": 18, "load": 60})
    73.0
    """
    if now.ready is not None:
        return 0.0
    current = now.current
    if not before or current is None or current.name == TEARDOWN:
        return None
    order = [stone.phase for stone in MILESTONES]
    later = order[order.index(current.name) + 1 :]
    rest = max(0.0, before.get(current.name, 0.0) - current.seconds)
    return float(rest + sum(before.get(name, 0.0) for name in later))


def death(lines: tuple[Line, ...]) -> Line | None:
    """The first line that belongs to the end of a start that failed."""
    fatal = [trace.begin for trace in tracebacks(lines) if trace.fatal]
    said = [line for line in lines if line.role != "systemd" and _DIES.match(line.text)]
    return min(fatal[:1] + said[:1], key=lambda line: line.no, default=None)


def _end(start: Start, now: float | None) -> float | None:
    if start.ready is not None:
        return next(
            (line.time for line in start.lines[start.ready :] if line.time is not None), start.last
        )
    if start.ended is not None:
        return start.lines[start.ended].time or start.last
    if now is not None and start.last is not None:
        return max(now, start.last)
    return start.last


def _ends(lines: tuple[Line, ...]) -> list[tuple[str, float]]:
    """Phases whose end was seen, with its time, in the order of the milestones."""
    first: dict[str, float] = {}
    last: dict[str, float] = {}
    for line in lines:
        if line.time is None or line.level != "INFO":
            continue
        for stone, pattern in _COMPILED:
            if pattern.match(line.text):
                first.setdefault(stone.phase, line.time)
                last[stone.phase] = line.time
    return [
        (stone.phase, (first if stone.which == "first" else last)[stone.phase])
        for stone in MILESTONES
        if stone.phase in first
    ]


def _unfinished(lines: tuple[Line, ...], parts: list[Phase], at: float, end: float) -> list[Phase]:
    """The phase that was under way, and the time from the first error to the end."""
    skipped = EAGER_SKIPS if settings(lines).eager else frozenset()
    order = [stone.phase for stone in MILESTONES if stone.phase not in skipped]
    following = order.index(parts[-1].name) + 1 if parts and parts[-1].name in order else 0
    if following == len(order):
        return []
    fatal = death(lines)
    died = end if fatal is None or fatal.time is None else min(max(at, fatal.time), end)
    under_way = Phase(name=order[following], seconds=died - at, done=False)
    if fatal is None:
        return [under_way]
    return [under_way, Phase(name=TEARDOWN, seconds=end - died)]
