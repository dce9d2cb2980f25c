"""The systemd unit of a process, from its control group."""

from __future__ import annotations

from collections.abc import Iterable

from inventory.base import Unknown
from inventory.common.cgroup import origin


def unit_of(cgroup: Iterable[str]) -> str | Unknown | None:
    """The unit that the system manager keeps a process in; None where it is outside any unit.

    + cgroup: lines of its /proc/PID/cgroup
    """
    found = origin(cgroup)
    return Unknown(unknown=found.unknown) if found.unknown else found.unit
