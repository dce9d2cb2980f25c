"""Where the seconds of a start went."""

import re
from dataclasses import replace

from facts.journal.lines import Journal, Line
from facts.journal.numbers import EngineNumbers, engine_numbers
from facts.journal.settings import settings
from facts.journal.starts import Start, last_chain, starts
from facts.journal.tracebacks import tracebacks
from inventory.base import Frozen
from inventory.common.start_phases import EAGER_SKIPS, PHASES, TEARDOWN, TITLES, PhaseEnds

_DIES = re.compile(r"Worker proc \S+ died unexpectedly|\S+: error: ")
_JITTER = 1.0
"""Seconds by which lines of several processes may stand in another order than they were written."""


class Phase(Frozen):
    """One part of a start.

    + name: one of those in :mod:`inventory.common.start_phases`
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
        """Seconds by phase: what a record keeps."""
        return {part.name: part.seconds for part in self.parts}

    @property
    def current(self) -> Phase | None:
        """The phase that is under way, or that the start ended in."""
        return next((part for part in self.parts if not part.done), None)


def phases(journal: Journal) -> Phases:
    """Split a start into phases.

    + journal: of one start; where it holds several, the last of the last chain that became
      ready is taken, or the first of that chain where none did
    """
    chain = last_chain(starts(journal))
    chosen = next((start for start in reversed(chain) if start.ready is not None), chain[0])
    return phases_of(chosen)


def phases_of(start: Start) -> Phases:
    """Split one start into phases. Without times there are no parts."""
    start = _steady(start)
    began, end = start.began, _end(start)
    lines = start.lines if start.ready is None else start.lines[: start.ready + 1]
    engine = engine_numbers(start.lines)
    if began is None or end is None:
        return Phases(engine=engine)
    # Within the jitter a last line may be older than the first one.
    end = max(began, end)
    gone = start.lines[start.ended].time if start.ended is not None else None
    until_exit = None if gone is None else max(0.0, gone - began)
    ends = PhaseEnds()
    for line in lines:
        if line.time is not None and line.level == "INFO":
            ends.take(line.text, line.time)
    seconds, at = ends.split(began, end)
    parts = [Phase(name=name, seconds=spent) for name, spent in seconds.items()]
    if start.ready is None:
        parts.extend(_unfinished(lines, parts, at, end))
    ready = end - began if start.ready is not None else None
    return Phases(parts=tuple(parts), ready=ready, until_exit=until_exit, engine=engine)


def _steady(start: Start) -> Start:
    """The start by a clock that nobody sets back: a correction in the middle costs no time."""
    behind, last, lines = 0.0, None, []
    for line in start.lines:
        if line.time is not None:
            if last is not None and line.time + behind < last - _JITTER:
                behind = last - line.time
            last = line.time + behind
        lines.append(line._replace(time=last) if behind and line.time is not None else line)
    return replace(start, lines=tuple(lines)) if behind else start


def death(lines: tuple[Line, ...]) -> Line | None:
    """The first line that belongs to the end of a start that failed."""
    fatal = [trace.begin for trace in tracebacks(lines) if trace.fatal]
    said = [line for line in lines if line.role != "systemd" and _DIES.match(line.text)]
    return min(fatal[:1] + said[:1], key=lambda line: line.no, default=None)


def _end(start: Start) -> float | None:
    if start.ready is not None:
        return next(
            (line.time for line in start.lines[start.ready :] if line.time is not None), start.last
        )
    if start.ended is not None:
        return start.lines[start.ended].time or start.last
    return start.last


def _unfinished(lines: tuple[Line, ...], parts: list[Phase], at: float, end: float) -> list[Phase]:
    """The phase that was under way, and the time from the first error to the end."""
    skipped = EAGER_SKIPS if settings(lines).eager else frozenset()
    order = [phase for phase in PHASES if phase not in skipped]
    following = order.index(parts[-1].name) + 1 if parts and parts[-1].name in order else 0
    if following == len(order):
        return []
    fatal = death(lines)
    died = end if fatal is None or fatal.time is None else min(max(at, fatal.time), end)
    under_way = Phase(name=order[following], seconds=died - at, done=False)
    if fatal is None:
        return [under_way]
    return [under_way, Phase(name=TEARDOWN, seconds=end - died)]
