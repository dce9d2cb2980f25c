"""What a stopped unit left behind: found in its control group, and ended."""

import os
import signal
from collections.abc import Iterable
from pathlib import Path

from inventory.common.systemd import STOPPED
from operations.remote.switch.gpu_memory.holders import Holder, title
from operations.remote.switch.systemd import members, origin_of
from operations.remote.systemctl import show


def is_over(unit: str) -> bool:
    """Whether systemd says that a unit does not run. False without an answer."""
    return show(unit, "ActiveState").get("ActiveState") in STOPPED


def end_leftovers(
    ours: frozenset[str], holders: Iterable[Holder], ended: set[int]
) -> tuple[str, ...]:
    """End what is left in the control groups of our units that do not run.

    + ended: pids that were ended before; grows

    The state is read after the processes: what was in the group before a unit is seen to be over
    is not of its next start. One that was moved to another group cannot be told from a stranger.
    """
    sentences = []
    for unit in sorted(ours):
        pids = members(unit) | {h.pid for h in holders if h.pid is not None and h.unit == unit}
        if not pids - ended or not is_over(unit):
            continue
        for pid in sorted(pids - ended):
            name = end(pid, unit)
            if name:
                ended.add(pid)
                sentences.append(f"ended {name} (pid {pid}), left behind by {unit}")
    return tuple(sentences)


def end(pid: int, unit: str) -> str | None:
    """Kill one process if it is in the control group of this unit.

    + returns: its name; None where it is not there any more, or elsewhere

    The process is pinned first: if its number passes to another one meanwhile, the signal finds
    nobody.
    """
    try:
        pinned = os.pidfd_open(pid)
    except OSError:
        return None
    try:
        folder = Path("/proc", str(pid))
        found = origin_of(pid)
        if found is None or found.unit != unit:
            return None
        words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        signal.pidfd_send_signal(pinned, signal.SIGKILL)
    except OSError:
        return None
    finally:
        os.close(pinned)
    return title(words[0] or "a process", words)
