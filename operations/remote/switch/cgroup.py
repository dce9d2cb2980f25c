"""The processes of this box, and where each belongs."""

from __future__ import annotations

from pathlib import Path

from inventory.common.cgroup import ProcessOrigin, origin


def origin_of(pid: int, proc: Path = Path("/proc")) -> ProcessOrigin | None:
    """Where a process belongs; None where it is not in /proc."""
    try:
        return origin((proc / str(pid) / "cgroup").read_text(errors="replace").splitlines())
    except OSError:
        return None


def members(unit: str) -> set[int]:
    """Processes in the control group of a unit, and in groups below it.

    By way of /proc: where control groups are mounted differs between machines.
    """
    pids = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    return {pid for pid in pids if (found := origin_of(pid)) and found.unit == unit}
