"""The end of a switch: the new service starts at boot, the old ones do not, and it is on record."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from inventory.common import paths
from inventory.common.files import write_whole
from inventory.common.record import RecordedSeconds, StartRecord
from inventory.common.switch import SwitchRequest
from operations.remote import systemctl
from operations.remote.switch import record, systemd
from operations.remote.switch.old_services import is_noted
from operations.remote.switch.waiting.expectation import Ready


def finish(
    request: SwitchRequest,
    ready: Ready,
    seconds: Mapping[str, float],
    warmed: Mapping[str, float] | None,
    say: Callable[[str], None],
) -> None:
    """Make a ready service the one of this box.

    + seconds: of stop, release, load and downtime; only those that were measured
    + warmed: what the page cache was given before
    + raises: SwitchError with systemd's words; OSError
    """
    new = request.new.unit
    # First on, then off: in between a boot starts one of them, since they conflict.
    systemd.control("enable", "--quiet", "--", new)
    for one in request.replaces:
        _disable(one.unit)
    if not is_noted(new, ready.invocation):
        try:
            record.save(_recorded(request, ready, seconds, warmed))
            record.keep_good(new)
        except (OSError, ValueError) as error:
            say(f"warning: this start is not on record: {error}")
    write_whole(Path(paths.READY, new), f"{ready.invocation}\n")


def _recorded(
    request: SwitchRequest,
    ready: Ready,
    seconds: Mapping[str, float],
    warmed: Mapping[str, float] | None,
) -> StartRecord:
    """What the record keeps of this start."""
    now = time.time()
    return StartRecord(
        **vars(request.about),
        unit=request.new.unit,
        invocation=ready.invocation,
        ready=now,
        started=now - ready.seconds,
        seconds=RecordedSeconds(**seconds),
        warm=warmed,
        phases=ready.phases,
        journal=ready.lines,
        replaced=tuple(one.unit for one in request.replaces),
    )


def _disable(unit: str) -> None:
    if systemctl.show(unit, "UnitFileState").get("UnitFileState", "").startswith("enabled"):
        systemd.control("disable", "--quiet", "--", unit)
        systemd.control("disable", "--quiet", "--runtime", "--", unit)
