"""Where a process belongs: its unit, or its container."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_UNIT = re.compile(r".+\.(service|scope|socket|mount|swap)")
_CONTAINERS = (
    # Docker, podman, and Kubernetes' runtimes, under systemd or plain control groups.
    re.compile(
        r"(?:^|/)(docker|libpod|cri-containerd|crio|nerdctl)-(?:payload-)?([0-9a-f]{12,64})"
    ),
    re.compile(r"(?:^|/)(docker|kubepods)[^/]*/(?:[^/]+/)*([0-9a-f]{64})(?=/|$)"),
    re.compile(r"(?:^|/)(lxc)\.payload\.([^/]+)"),
    re.compile(r"(?:^|/)(lxc)/([^/]+)"),
    re.compile(r"/(machine)\.slice/machine-([^/]+)\.scope"),
    re.compile(r"/(machine)\.slice/systemd-nspawn@([^/]+)\.service"),
)
_SHORT = 12  # as `docker ps` shows ids


@dataclass(frozen=True)
class Place:
    """Where a process belongs.

    + unit: the system's unit; a unit of a user's manager is named with it,
      ``user@1000.service/train.service``, and is not the system's of that name
    + words: the same for people
    """

    unit: str | None
    words: str


def place(cgroup: str) -> Place:
    """Where a process belongs, from its /proc/PID/cgroup."""
    paths = [line.split(":", 2)[2] for line in cgroup.splitlines() if line.count(":") > 1]
    places = [_place(path.removesuffix(" (deleted)")) for path in paths]
    nowhere = Place(None, "in no unit")
    return next((found for found in places if found and found.unit), None) or next(
        (found for found in places if found), nowhere
    )


def _place(path: str) -> Place | None:
    """The answer of one hierarchy; None where it has none."""
    parts = [part for part in path.split("/") if part]
    if ".." in parts:
        return Place(None, "outside this system's control groups")
    below = [part for part in parts if not part.endswith(".slice")]
    unit = below[0] if below and _UNIT.fullmatch(below[0]) else None
    for pattern in _CONTAINERS:
        if match := pattern.search(path):
            kind, name = match.groups()
            plain = re.sub(r"\\x([0-9a-f]{2})", lambda m: chr(int(m[1], 16)), name)
            short = plain[:_SHORT] if re.fullmatch(r"[0-9a-f]{12,64}", plain) else plain
            words = f"in container {short} ({kind})"
            if unit and unit.endswith(".service") and name not in unit:
                words += f" of {unit}"
            return Place(unit, words)
    if unit is None:
        return None
    user = re.fullmatch(r"user@([0-9]+)\.service", unit)
    if user and len(below) > 1:
        return Place(f"{unit}/{below[1]}", f"in {below[1]} of user {user[1]}")
    session = re.fullmatch(r"session-(.+)\.scope", unit)
    if session:
        owner = re.search(r"/user-([0-9]+)\.slice/", path)
        words = f"in login session {session[1]}"
        return Place(unit, f"{words} of user {owner[1]}" if owner else words)
    return Place(unit, f"in {unit}")


def place_of(pid: int) -> Place | None:
    """Where a process belongs; None where it is not in /proc."""
    try:
        return place(Path("/proc", str(pid), "cgroup").read_text(errors="replace"))
    except OSError:
        return None


def members(unit: str) -> set[int]:
    """Processes in the control group of a unit, and in groups below it.

    By way of /proc: where control groups are mounted differs between machines.
    """
    pids = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    return {pid for pid in pids if (found := place_of(pid)) and found.unit == unit}
