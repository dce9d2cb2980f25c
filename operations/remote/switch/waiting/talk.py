"""What is said of a start while it goes on: a line for each event."""

from __future__ import annotations

import time

from inventory.common.start_phases import ANSWER
from inventory.common.switch import Target
from operations.remote.switch.waiting.expectation import Say
from operations.remote.switch.waiting.phases import PhaseTracker
from operations.remote.switch.waiting.state import UnitMoment

PERCENT_EVERY = 3.0
"""Seconds between two lines about how far a phase is."""
SIGN_OF_LIFE = 30.0
"""Seconds after which a line says that the phase goes on."""


class Talk:
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
