"""Where a process belongs, from its control group: its unit, or its container."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

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
class ProcessOrigin:
    """Where a process belongs.

    + unit: the system's unit. What lies below a unit is the unit's own. A unit of a user's manager
      is named with it, ``user@1000.service/train.service``: it is not the system's of that name.
      None if the process has no unit, or if that is unknown
    + words: the same for people
    + unknown: why the unit is unknown; empty if it is not
    """

    unit: str | None
    words: str
    unknown: str = ""


def origin(cgroup: Iterable[str]) -> ProcessOrigin:
    """Where a process belongs.

    + cgroup: lines of its /proc/PID/cgroup, one a hierarchy; the first that names a unit counts
    """
    paths = [line.split(":", 2)[2] for line in cgroup if line.count(":") > 1]
    found = [one for path in paths if (one := _origin(path.removesuffix(" (deleted)")))]
    if not found:
        return ProcessOrigin(None, "in no unit", unknown="" if paths else "no cgroup line")
    return next((one for one in found if one.unit), found[0])


def _origin(path: str) -> ProcessOrigin | None:
    """The answer of one hierarchy, or None."""
    parts = [part for part in path.split("/") if part]
    if ".." in parts:
        return ProcessOrigin(
            None,
            "outside this system's control groups",
            unknown=f"outside this cgroup namespace: {path}",
        )
    below = [part for part in parts if not part.endswith(".slice")]
    top = below[0] if below and _UNIT.fullmatch(below[0]) else None
    user = re.fullmatch(r"user@([0-9]+)\.service", top or "")
    unit = "/".join(below[:2]) if user else top
    for pattern in _CONTAINERS:
        if match := pattern.search(path):
            kind, name = match.groups()
            plain = re.sub(r"\\x([0-9a-f]{2})", lambda m: chr(int(m[1], 16)), name)
            short = plain[:_SHORT] if re.fullmatch(r"[0-9a-f]{12,64}", plain) else plain
            words = f"in container {short} ({kind})"
            if top and top.endswith(".service") and name not in top:
                words += f" of {top}"
            return ProcessOrigin(unit, words)
    if unit is None:
        return None
    if user and len(below) > 1:
        return ProcessOrigin(unit, f"in {below[1]} of user {user[1]}")
    session = re.fullmatch(r"session-(.+)\.scope", unit)
    if session:
        owner = re.search(r"/user-([0-9]+)\.slice/", path)
        words = f"in login session {session[1]}"
        return ProcessOrigin(unit, f"{words} of user {owner[1]}" if owner else words)
    return ProcessOrigin(unit, f"in {unit}")
