"""The phases of a start while it goes on: which one it is in, how long, and what is left."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inventory.common.engine_log import (
    COMPILES,
    HEARTBEAT,
    IDLE,
    PERCENT,
    holds_numbers,
    information,
)
from inventory.common.masks import masked
from inventory.common.start_phases import (
    COMPILED,
    PHASES,
    SERVER,
    PhaseEnds,
    following,
    seconds_left,
)
from operations.remote.switch.waiting.journal import Entry

MOST_LINES = 200


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

    def take(self, entry: Entry) -> str | None:
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

    def _beat(self, entry: Entry, text: str | None) -> None:
        if text is not None and text.startswith(HEARTBEAT):
            self.heartbeats += 1
            return
        if IDLE.search(entry.text):
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

    def _keep(self, entry: Entry) -> None:
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
