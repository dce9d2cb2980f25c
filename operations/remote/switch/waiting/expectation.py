"""What a wait is told, and what it tells."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from types import MappingProxyType

from inventory.common.record import StartRecord
from inventory.common.start_phases import ANSWER, OTHER_PATIENCE, PATIENCE
from inventory.common.switch import SwitchRequest

SAME_START = ("argv", "commit", "engine")
"""What two starts share whose phases take alike: weights, arguments, and with them the caches of
compiled kernels."""

SILENCE_SECONDS = 240.0
"""A start that was seen before may be silent for as long as one that compiles anew: caches can be
gone."""

_TIMES = 3.0
"""A phase hangs after this many times its recorded seconds."""

Say = Callable[[str], None]
"""Prints one line."""


@dataclass(frozen=True)
class Expectation:
    """What is known of a start before it begins.

    + timeout: for the whole start, in seconds
    + before: seconds by phase of this box's last ready start
    + patience: by phase, the seconds without progress that are normal if nothing was recorded.
      "" stands for any other phase, ``answer`` for the time after the last phase
    + patience_floor: a recorded phase may always be silent this long, or as long as ``patience``
      says if that is shorter. Infinite if the record is of a start with other caches
    """

    timeout: float
    before: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    patience: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    patience_floor: float = 60.0

    def allowed_silence(self, phase: str) -> float:
        """Seconds without progress that are still normal in a phase."""
        other = self.patience_floor if phase == ANSWER else self.patience.get("", OTHER_PATIENCE)
        usual = self.patience.get(phase, other)
        if phase not in self.before:
            return usual
        return max(_TIMES * self.before[phase], min(self.patience_floor, usual))


def expected(request: SwitchRequest, last: StartRecord | None) -> Expectation:
    """What is known of the start that a request asks for.

    + last: the record of the last start of this service that became ready
    """
    alike = all(getattr(last, key, None) == getattr(request.about, key) for key in SAME_START)
    return Expectation(
        timeout=request.start_seconds,
        before=last.phases if last else {},
        patience=PATIENCE,
        patience_floor=SILENCE_SECONDS if alike else inf,
    )


@dataclass(frozen=True)
class Ready:
    """A start that answered.

    + invocation: systemd's id of it
    + seconds: from the start of the main process to the answer
    + phases: seconds by phase; their sum is `seconds`
    + lines: of the journal, as ``journalctl -o short-iso-precise`` prints them: the ends of phases
      and the engine's own numbers, at most 200
    """

    invocation: str
    seconds: float
    phases: dict[str, float]
    lines: tuple[str, ...]
