"""What systemd says of units and processes, and what is asked of it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from .verdict import SwitchError

CGROUPS = Path("/sys/fs/cgroup")


def show(unit: str, *properties: str) -> dict[str, str]:
    """Properties of a unit as systemd prints them; times in microseconds of the monotonic clock
    where their names end so."""
    shown = subprocess.run(
        ["systemctl", "show", "-p", ",".join(properties), "--", unit],
        capture_output=True,
        text=True,
        check=False,
    )
    return dict(line.split("=", 1) for line in shown.stdout.splitlines() if "=" in line)


def control(*arguments: str) -> None:
    """Run systemctl.

    + raises: SwitchError with its words
    """
    done = subprocess.run(["systemctl", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip() or f"exit status {done.returncode}"
        raise SwitchError("systemd", f"systemctl {' '.join(arguments)}: {said}")


def members(unit: str) -> set[int]:
    """Processes in the control group of a unit, and in groups below it."""
    group = show(unit, "ControlGroup").get("ControlGroup", "")
    if not group.strip("/"):
        return set()
    pids: set[int] = set()
    for path in (CGROUPS / group.lstrip("/")).rglob("cgroup.procs"):
        try:
            pids.update(map(int, path.read_text().split()))
        except OSError:
            continue
    return pids


def unit_of(pid: int) -> str | None:
    """The system's service or scope that a process belongs to; None: in none, or it has ended."""
    try:
        text = Path("/proc", str(pid), "cgroup").read_text()
    except OSError:
        return None
    found = re.findall(r"/([^/\s:]+\.(?:service|scope))(?=/|\s|$)", text)
    return found[0] if found else None
