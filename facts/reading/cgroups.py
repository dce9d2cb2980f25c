"""The systemd unit of a process, from its control group."""

from __future__ import annotations

import re
from collections.abc import Sequence

from inventory.base import Unknown


def unit_of(cgroup: Sequence[str]) -> str | Unknown | None:
    """The unit that the system manager keeps a process in, from its cgroup lines.

    ``/system.slice/vllm.service/child`` is vllm.service: what lies below a unit is the unit's
    own. A unit of a user's manager is named with it, ``user@1000.service/vllm.service``: it is
    not the system's unit of that name. None: the process is outside any unit.
    """
    paths = [line.split(":", 2)[2] for line in cgroup if line.count(":") > 1]
    answers = [_unit(path) for path in paths]
    for answer in answers:
        if isinstance(answer, str):
            return answer
    if not answers:
        return Unknown(unknown="no cgroup line")
    return next((answer for answer in answers if isinstance(answer, Unknown)), None)


def _unit(path: str) -> str | Unknown | None:
    parts = [part for part in path.split("/") if part]
    if ".." in parts:
        return Unknown(unknown=f"outside this cgroup namespace: {path}")
    below = [part for part in parts if not part.endswith(".slice")]
    if not below or not re.fullmatch(r".+\.(service|scope|socket|mount|swap)", below[0]):
        return None
    if re.fullmatch(r"user@[0-9]+\.service", below[0]) and len(below) > 1:
        return "/".join(below[:2])
    return below[0]
