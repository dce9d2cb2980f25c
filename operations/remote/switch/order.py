"""The switch itself, in its order; what fails after the old service has gone brings it back.

Runs as root in a unit of its own, which ``start`` makes; by hand too::

    python -m operations.remote.switch.order < request.json

Enablement moves last, once the new service has answered: a box that reboots in the middle comes
back with the old one.
"""

from __future__ import annotations

import json
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from operations.remote.switch import formers, record
from operations.remote.switch.files import write
from operations.remote.switch.finish import finish
from operations.remote.switch.gpu_memory.release import release, strangers
from operations.remote.switch.page_cache.warm import warm
from operations.remote.switch.request import Former, Request, read_request
from operations.remote.switch.rollback import go_back
from operations.remote.switch.smoke_test.smoke import smoke
from operations.remote.switch.systemd import control, is_active, kill, runs_from_file, start
from operations.remote.switch.verdict import GPU_HELD, OUTCOME, READY, UNFINISHED, SwitchError
from operations.remote.switch.waiting.wait import Ready, wait
from operations.remote.systemctl import show

Say = Callable[[str], None]


@dataclass
class Course:
    """How far a switch has come.

    + before: what there is to go back to
    + seconds: of stop, release, load and downtime
    + down_since: monotonic clock, when a serving unit was asked to stop; None where none served
    + touched: something was stopped or started
    + warmed: what the page cache was given
    """

    before: tuple[Former, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict)
    down_since: float | None = None
    touched: bool = False
    warmed: dict[str, float] | None = None


def carry_out(request: Request, say: Say) -> dict[str, Any]:
    """Switch, and go back where that fails.

    + returns: the outcome as the controller reads it
    """
    began = time.time()
    course = Course()
    try:
        course.before = formers.survey(request)
        if runs_from_file(request.new.unit):
            _stop([one.target.unit for one in request.replaces], course, say)
        else:
            _exchange(request, course, say)
        ready = _answers(request, course, say)
        warnings = smoke(request.new, say, tools=request.tools, reasoning=request.reasoning)
        for warning in warnings:
            say(f"warning: {warning}")
    except SwitchError as error:
        return _failed(request, error, course, began, say)
    except Exception as error:  # whatever it is: a box that serves nothing is worse
        traceback.print_exc()
        broken = SwitchError("broken", f"{type(error).__name__}: {error}")
        return _failed(request, broken, course, began, say)
    try:
        finish(request, ready, course.seconds, course.warmed, say)
    except (SwitchError, OSError) as error:
        say(f"switch: {request.new.unit} serves, but: {error}")
        return {"kind": UNFINISHED, "unit": request.new.unit, "sentence": str(error)}
    formers.forget()
    say(f"switch: {request.new.unit} serves {request.new.model}")
    return {
        "kind": READY,
        "unit": request.new.unit,
        "invocation": ready.invocation,
        "seconds": course.seconds,
        "phases": dict(ready.phases),
        "warnings": list(warnings),
    }


def _exchange(request: Request, course: Course, say: Say) -> None:
    """Stop what serves, see its memory free, start the new service."""
    new = request.new.unit
    leaving = [one.target.unit for one in request.replaces]
    ours = frozenset([new, *leaving])
    if request.gpus and (found := strangers(request.gpus, ours)):
        raise SwitchError(GPU_HELD, f"held before anything was stopped: {'; '.join(found)}")
    if request.warm is not None:
        course.warmed = warm(request.warm, say)
    formers.remember(new, course.before)
    _stop([*leaving, new], course, say)
    began = time.monotonic()
    if request.gpus:
        release(request.gpus, ours, request.release, say)
    course.seconds["release"] = time.monotonic() - began
    start(new)


def _stop(units: Sequence[str], course: Course, say: Say) -> None:
    """Stop those units that run or are about to, all at once."""
    began = time.monotonic()
    active = [unit for unit in dict.fromkeys(units) if is_active(unit)]
    course.touched = True
    if not active:
        return
    if any(one.target.unit in active for one in course.before):
        course.down_since = began
    _kill_unproven(active, course.before)
    control("stop", "--", *active)
    course.seconds["stop"] = time.monotonic() - began
    say(f"switch: {', '.join(active)} stopped after {course.seconds['stop']:.1f} s")


def _kill_unproven(units: Sequence[str], before: Sequence[Former]) -> None:
    """End what serves nobody at once: an engine that loads ignores SIGTERM for a minute."""
    serving = {one.target.unit for one in before}
    for unit in units:
        if unit not in serving:
            kill(unit)


def _answers(request: Request, course: Course, say: Say) -> Ready:
    """Wait until the new service answers; then the downtime is over."""
    ready = wait(request.new, request.expect, say)
    course.seconds["load"] = ready.seconds
    if course.down_since is not None:
        course.seconds["downtime"] = time.monotonic() - course.down_since
        say(downtime(course.seconds))
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
    request: Request, error: SwitchError, course: Course, began: float, say: Say
) -> dict[str, Any]:
    """The outcome of a switch that failed, after the way back where there is one."""
    say(f"switch: failed: {error.sentence}")
    outcome: dict[str, Any] = {
        "kind": error.kind,
        "sentence": error.sentence,
        "unit": request.new.unit,
        # Read before the way back ends it: later starts are not the one that failed.
        "invocation": show(request.new.unit, "InvocationID").get("InvocationID", ""),
        "since": began,
        "touched": course.touched,
        "back": None,
    }
    if course.touched and request.rollback and course.before:
        ok, sentence = go_back(request, course.before, say)
        outcome["back"] = {"ok": ok, "sentence": sentence}
        if ok:
            formers.forget()
    return outcome


def main() -> int:
    """Read the request, carry it out, leave the outcome."""
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    place = Path(OUTCOME)
    place.unlink(missing_ok=True)
    plain = json.load(sys.stdin)
    last = record.last(plain["service"]["unit"]) or {}
    outcome = carry_out(read_request(plain, last), print)
    write(place, json.dumps(outcome), mode=0o600)
    return 0 if outcome["kind"] == READY else 1


if __name__ == "__main__":
    sys.exit(main())
