"""The switch from one service to another: what the controller asks of the box, and how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from inventory.common.record import Declared
from inventory.common.wire import Wire

DONE = "ready"
"""Kind of outcome: the new service answers, and all is done."""
UNFINISHED = "unfinished"
"""Kind of outcome: the new service answers, and what follows that failed. Nothing goes back."""
GPU_HELD = "gpu-held"
"""Kind of outcome: memory that somebody else holds, or that does not come back."""


@dataclass(frozen=True)
class Target(Wire):
    """A unit, and how its service is asked.

    + unit: with its ending
    + url: base URL as seen from the box itself
    + model: served model name
    + max_model_len: declared context length in tokens; None is the model's own
    """

    unit: str
    url: str
    model: str
    max_model_len: int | None = None


@dataclass(frozen=True, kw_only=True)
class OldService(Target):
    """A service that gives way, and comes back where the new one does not become ready.

    + timeout: seconds in which it must answer again
    + text: unit file to put back first; None where its file is still its own
    """

    timeout: float
    text: str | None = None


@dataclass(frozen=True, kw_only=True)
class SwitchRequest(Wire):
    """One switch. It holds no secret: the record keeps parts of it.

    + new: what should serve
    + replaces: the old services
    + gpus: UUIDs that the new one uses; empty on the CPU
    + release_seconds: in which their memory must come back
    + start_seconds: in which the new service must answer
    + tools, reasoning: parsers that the smoke test exercises
    + warm: folder of the weights, or None where the page cache is left alone
    + rollback: whether the old services come back after a failure
    + about: what was declared of the new one's start
    """

    new: Target
    replaces: tuple[OldService, ...]
    gpus: frozenset[str]
    release_seconds: float
    start_seconds: float
    tools: bool
    reasoning: bool
    warm: Path | None
    rollback: bool
    about: Declared


@dataclass(frozen=True)
class WayBack(Wire):
    """How the way back ended.

    + ok: the old services answer again
    """

    ok: bool
    sentence: str


@dataclass(frozen=True, kw_only=True)
class SwitchOutcome(Wire):
    """How a switch ended.

    + kind: one of the words above, or what failed (operations/remote/switch/errors.py)
    + unit: of the new service
    + sentence: what was seen, for people; empty where all is done
    + invocation: InvocationID of the new service's start
    + since: when the switch began, seconds since the epoch
    + touched: something was stopped or started
    + back: the way back; None if it was not needed
    + seconds: of stop, release, load and downtime, those that were measured
    + phases: seconds by phase of the start
    + warnings: what is odd about the answers of the new service
    """

    kind: str
    unit: str
    sentence: str = ""
    invocation: str = ""
    since: float = 0.0
    touched: bool = True
    back: WayBack | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    phases: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class UnfinishedSwitch(Wire):
    """What a switch has stopped, until it is over.

    + to: unit of the new service
    """

    to: str
    old: tuple[OldService, ...]
