"""The end of a switch: the new service starts at boot, the old ones do not, and it is on record."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from operations.remote.switch import record
from operations.remote.switch.files import write
from operations.remote.switch.formers import READY, is_noted
from operations.remote.switch.request import Request
from operations.remote.switch.systemd import control
from operations.remote.switch.waiting.wait import Ready
from operations.remote.systemctl import show


def finish(
    request: Request,
    ready: Ready,
    seconds: Mapping[str, float],
    warmed: Mapping[str, float] | None,
    say: Callable[[str], None],
) -> None:
    """Make a ready service the one of this box.

    + seconds: of stop, release, load and downtime, as far as they were measured
    + warmed: what the page cache was given before
    + raises: SwitchError with systemd's words
    """
    new = request.new.unit
    # First on, then off: in between a boot starts one of them, since they conflict.
    control("enable", "--quiet", "--", new)
    for one in request.replaces:
        _disable(one.target.unit)
    if not is_noted(new, ready.invocation):
        try:
            record.save(new, _entry(request, ready, seconds, warmed))
            record.keep_good(new)
        except (OSError, ValueError) as error:
            say(f"warning: this start is not on record: {error}")
    write(READY / new, f"{ready.invocation}\n")


def _entry(
    request: Request,
    ready: Ready,
    seconds: Mapping[str, float],
    warmed: Mapping[str, float] | None,
) -> dict[str, Any]:
    """What the record keeps of this start."""
    now = time.time()
    return {
        **request.about,
        "started": now - ready.seconds,
        "ready": now,
        "invocation": ready.invocation,
        "seconds": dict(seconds),
        "warm": None if warmed is None else dict(warmed),
        "phases": dict(ready.phases),
        "journal": list(ready.lines),
        "replaced": [one.target.unit for one in request.replaces],
    }


def _disable(unit: str) -> None:
    if show(unit, "UnitFileState").get("UnitFileState", "").startswith("enabled"):
        control("disable", "--quiet", "--", unit)
        control("disable", "--quiet", "--runtime", "--", unit)
