"""The phases of a start while it goes on: which one it is in, how long, what is left, and the lines
that say so."""

import time
from collections.abc import Mapping
from types import MappingProxyType

from inventory.common.engine_log import (
    COMPILES,
    HEARTBEAT,
    IDLE_LINE,
    PERCENT,
    holds_numbers,
    information,
)
from inventory.common.masks import masked
from inventory.common.start_phases import (
    ANSWER,
    COMPILED,
    PHASES,
    SERVER,
    PhaseEnds,
    following,
    seconds_left,
)
from inventory.common.switch import Target
from operations.remote.switch.waiting.expectation import Say
from operations.remote.switch.waiting.journal import JournalEntry
from operations.remote.switch.waiting.state import UnitMoment

MOST_LINES = 200
PERCENT_EVERY = 3.0
"""Seconds between two lines about how far a phase is."""
SIGN_OF_LIFE = 30.0
"""Seconds after which a line says that the phase goes on."""


class PhaseTracker:
    """One start, told by its journal.

    + started: of the main process, by the monotonic clock
    + before: seconds by phase of an earlier start; it also tells which phases this service has
    """

    def __init__(self, started: float, before: Mapping[str, float] = MappingProxyType({})) -> None:
        self.before = before
        self.started = started
        self.progress = started
        """When the start last showed that it goes on."""
        self.heartbeats = 0
        """Since then."""
        self.is_told = False
        """Whether the journal holds anything of it: without, silence means nothing."""
        self.is_compiling = False
        self.percent: int | None = None
        """Of the phase that is under way."""
        self._ends = PhaseEnds()
        self._kept: list[str] = []

    def take(self, entry: JournalEntry) -> str | None:
        """Take in the next line.

        + returns: the phase that ends with it; a later rank may end it once more
        """
        self.is_told = True
        text = information(entry.text)
        if entry.by_systemd:
            self._keep(entry)
            return None
        self._beat(entry, text)
        if text is None:
            if not self._kept:
                self._keep(entry)
            return None
        ended = self._ends.take(text, entry.monotonic)
        if ended:
            self.percent = None
        if ended or not self._kept or holds_numbers(text):
            self._keep(entry)
        return ended

    def _beat(self, entry: JournalEntry, text: str | None) -> None:
        if text is not None and text.startswith(HEARTBEAT):
            self.heartbeats += 1
            return
        if IDLE_LINE.search(entry.text):
            return
        self.progress = max(self.progress, entry.monotonic)
        self.heartbeats = 0
        percent = PERCENT.findall(entry.text)
        if percent:
            self.percent = min(100, int(percent[-1]))
        if text is not None and COMPILES.match(text):
            self.is_compiling = True
        if text is not None and COMPILED.match(text):
            self.is_compiling = False

    def _keep(self, entry: JournalEntry) -> None:
        self._kept.append(masked(entry.line()))

    @property
    def lines(self) -> tuple[str, ...]:
        """What is worth keeping of the journal: the ends of phases, and the engine's numbers."""
        half = MOST_LINES // 2
        if len(self._kept) <= MOST_LINES:
            return tuple(self._kept)
        return (*self._kept[:half], *self._kept[-half:])

    @property
    def is_up(self) -> bool:
        """Whether the server says that it is up."""
        return SERVER in self._ends.at

    @property
    def up_at(self) -> float | None:
        """When it said so."""
        return self._ends.at.get(SERVER)

    @property
    def phase(self) -> str:
        """The one that is under way; the last one where all have ended."""
        reached = [name for name in PHASES if name in self._ends.at]
        later = (following(reached[-1]) or (SERVER,)) if reached else PHASES
        return next((name for name in later if name in self.before), later[0])

    @property
    def since(self) -> float:
        """When it began, by the monotonic clock."""
        return max(self._ends.at.values(), default=self.started)

    def seconds(self, until: float) -> dict[str, float]:
        """Seconds by phase.

        + until: when the service answered; the last phase ends there
        """
        parts, at = self._ends.split(self.started, until)
        parts[SERVER] = parts.get(SERVER, 0.0) + max(0.0, until - at)
        return parts

    def spent(self, phase: str) -> float:
        """Seconds of a phase that has ended."""
        return self.seconds(self._ends.at[phase])[phase]

    def left(self, now: float) -> float | None:
        """Seconds until it answers, if each phase takes as long as it did the last time.

        + returns: None where nothing comparable is known
        """
        return seconds_left(self.phase, now - self.since, self.before)


class PhasePrinter:
    """What is said of a start, a line for each event."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._unit = ""
        self._ended: dict[str, float] = {}
        self._spoke = self._percented = time.monotonic()
        self._percent: int | None = None

    def unit(self, unit: str, now: UnitMoment, track: PhaseTracker) -> None:
        """The unit's state, where it is another one."""
        if now.words != self._unit:
            self._unit = now.words
            self._line(now.changed or time.monotonic(), track, f"{unit} {now.words}")

    def ended(self, phase: str, track: PhaseTracker) -> None:
        """A phase ended, or ended for a later rank too."""
        took = track.spent(phase)
        if took - self._ended.get(phase, -2.0) < 1:
            return
        self._ended[phase] = took
        self._line(track.since, track, f"{phase} took {took:.1f} s{self._left(track, track.since)}")

    def goes_on(self, track: PhaseTracker) -> None:
        """How far the phase is, from time to time."""
        now = time.monotonic()
        moved = track.percent is not None and track.percent != self._percent
        if moved and now - self._percented > PERCENT_EVERY:
            what = f"{track.phase} {track.percent} %"
        elif now - self._spoke > SIGN_OF_LIFE:
            what = f"{ANSWER if track.is_up else track.phase} goes on"
        else:
            return
        self._percented, self._percent = now, track.percent
        self._line(now, track, f"{what} after {now - track.since:.1f} s{self._left(track, now)}")

    def ready(self, target: Target, took: float) -> None:
        """It answers."""
        self._say(f"wait: {took:7.1f} s  {target.url} answers for {target.model}")

    def _left(self, track: PhaseTracker, now: float) -> str:
        left = None if track.is_up else track.left(now)
        return "" if left is None else f"; about {left:.0f} s left"

    def _line(self, at: float, track: PhaseTracker, what: str) -> None:
        self._spoke = time.monotonic()
        self._say(f"wait: {max(0.0, at - track.started):7.1f} s  {what}")
