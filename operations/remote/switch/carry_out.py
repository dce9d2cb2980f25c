"""The switch itself, in its order; what fails after the old service has gone brings it back.

Runs as root in a unit of its own, which ``start`` makes; by hand too::

    python -m operations.remote.switch.carry_out < request.json

Enablement moves last, once the new service has answered: a box that reboots in the middle comes
back with the old one.
"""

import json
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from inventory.common.files import write_whole
from inventory.common.paths import OUTCOME
from inventory.common.switch import (
    DONE,
    GPU_HELD,
    UNFINISHED,
    OldService,
    SwitchOutcome,
    SwitchRequest,
)
from operations.remote import systemctl
from operations.remote.switch import old_services, record, systemd
from operations.remote.switch.errors import SwitchError
from operations.remote.switch.finish import finish
from operations.remote.switch.gpu_memory.release import release, strangers
from operations.remote.switch.page_cache.warm import warm
from operations.remote.switch.rollback import go_back
from operations.remote.switch.smoke_test.smoke import smoke
from operations.remote.switch.waiting.expectation import Expectation, Ready, Say, expected
from operations.remote.switch.waiting.wait import wait


@dataclass
class SwitchProgress:
    """How far a switch has come.

    + began: seconds since the epoch
    + old: what there is to go back to
    + seconds: of stop, release, load and downtime
    + down_since: monotonic clock, when a serving unit was asked to stop; None where none served
    + touched: something was stopped or started
    + warmed: what the page cache was given
    """

    began: float
    old: tuple[OldService, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    down_since: float | None = None
    touched: bool = False
    warmed: dict[str, float] | None = None


def carry_out(request: SwitchRequest, expect: Expectation, say: Say) -> SwitchOutcome:
    """Switch, and go back where that fails.

    + expect: of the new one's start
    """
    new = request.new
    progress = SwitchProgress(time.time())
    try:
        progress.old = old_services.survey(request)
        if systemd.runs_from_file(new.unit):
            _stop([one.unit for one in request.replaces], progress, say)
        else:
            _exchange(request, progress, say)
        ready = _answers(request, expect, progress, say)
        warnings = smoke(new, say, tools=request.tools, reasoning=request.reasoning)
        for warning in warnings:
            say(f"warning: {warning}")
    except SwitchError as error:
        return _failed(request, expect, error, progress, say)
    except Exception as error:  # whatever it is: a box that serves nothing is worse
        traceback.print_exc()
        broken = SwitchError("broken", f"{type(error).__name__}: {error}")
        return _failed(request, expect, broken, progress, say)
    try:
        finish(request, ready, progress.seconds, progress.warmed, say)
    except Exception as error:  # whatever it is: nothing goes back for it
        say(f"switch: {new.unit} serves, but: {error}")
        return SwitchOutcome(kind=UNFINISHED, unit=new.unit, sentence=str(error))
    old_services.forget()
    say(f"switch: {new.unit} serves {new.model}")
    return SwitchOutcome(
        kind=DONE,
        unit=new.unit,
        invocation=ready.invocation,
        since=progress.began,
        seconds=progress.seconds,
        phases=ready.phases,
        warnings=warnings,
    )


def _exchange(request: SwitchRequest, progress: SwitchProgress, say: Say) -> None:
    """Stop what serves, see its memory free, start the new service."""
    new = request.new.unit
    old = [one.unit for one in request.replaces]
    ours = frozenset([new, *old])
    if request.gpus and (found := strangers(request.gpus, ours)):
        raise SwitchError(GPU_HELD, f"held before anything was stopped: {'; '.join(found)}")
    if request.warm is not None:
        progress.warmed = warm(request.warm, say)
    old_services.remember(new, progress.old)
    _stop([*old, new], progress, say)
    began = time.monotonic()
    if request.gpus:
        release(request.gpus, ours, request.release_seconds, say)
    progress.seconds["release"] = time.monotonic() - began
    systemd.start(new)


def _stop(units: Sequence[str], progress: SwitchProgress, say: Say) -> None:
    """Stop those units that run or are about to, all at once."""
    began = time.monotonic()
    active = [unit for unit in dict.fromkeys(units) if systemd.is_active(unit)]
    progress.touched = True
    if not active:
        return
    if any(one.unit in active for one in progress.old):
        progress.down_since = began
    _kill_unproven(active, progress.old)
    systemd.control("stop", "--", *active)
    progress.seconds["stop"] = time.monotonic() - began
    say(f"switch: {', '.join(active)} stopped after {progress.seconds['stop']:.1f} s")


def _kill_unproven(units: Sequence[str], old: Sequence[OldService]) -> None:
    """End what serves nobody at once: an engine that loads ignores SIGTERM for a minute."""
    serving = {one.unit for one in old}
    for unit in units:
        if unit not in serving:
            systemd.kill(unit)


def _answers(
    request: SwitchRequest, expect: Expectation, progress: SwitchProgress, say: Say
) -> Ready:
    """Wait until the new service answers; then the downtime is over."""
    ready = wait(request.new, expect, say)
    progress.seconds["load"] = ready.seconds
    if progress.down_since is not None:
        progress.seconds["downtime"] = time.monotonic() - progress.down_since
        say(downtime(progress.seconds))
    return ready


def downtime(seconds: dict[str, float]) -> str:
    """The time without a service, in its parts.

    >>> downtime({"stop": 0.7, "release": 2.0, "load": 40.0, "downtime": 43.0})
    'switch: downtime 43.0 s: stop 0.7, release 2.0, load 40.0, in between 0.3'
    """
    parts = {name: seconds[name] for name in ("stop", "release", "load") if name in seconds}
    rest = seconds["downtime"] - sum(parts.values())
    named = ", ".join(f"{name} {value:.1f}" for name, value in parts.items())
    return f"switch: downtime {seconds['downtime']:.1f} s: {named}, in between {max(0, rest):.1f}"


def _failed(
    request: SwitchRequest,
    expect: Expectation,
    error: SwitchError,
    progress: SwitchProgress,
    say: Say,
) -> SwitchOutcome:
    """The outcome of a switch that failed, after the way back where there is one."""
    say(f"switch: failed: {error.sentence}")
    unit, back = request.new.unit, None
    # Read before the way back ends it: later starts are not the one that failed.
    invocation = systemctl.show(unit, "InvocationID").get("InvocationID", "")
    if progress.touched and request.rollback and progress.old:
        back = go_back(request, progress.old, expect, say)
        if back.ok:
            old_services.forget()
    return SwitchOutcome(
        kind=error.kind,
        unit=unit,
        sentence=error.sentence,
        invocation=invocation,
        since=progress.began,
        touched=progress.touched,
        back=back,
    )


def main() -> int:
    """Read the request, carry it out, leave the outcome."""
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    place = Path(OUTCOME)
    place.unlink(missing_ok=True)
    request = SwitchRequest.from_json(json.load(sys.stdin))
    last = record.last(request.new.unit)
    outcome = carry_out(request, expected(request, last), print)
    write_whole(place, json.dumps(outcome.to_json()), mode=0o600)
    return 0 if outcome.kind == DONE else 1


if __name__ == "__main__":
    sys.exit(main())
