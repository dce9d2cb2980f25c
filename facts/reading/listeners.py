"""Who listens on the service's port, and what answers there."""

import re
from collections.abc import Mapping

from facts.hardware.processes import unit_of
from facts.sections import MISSING, Section
from inventory.base import Frozen, Unknown
from inventory.common.models import models


class Listener(Frozen):
    """One listening TCP socket and one process that holds it."""

    address: str
    port: int
    pid: int | Unknown
    process: str
    unit: str | Unknown | None
    """systemd unit whose control group holds the process; None where none does."""


class EndpointAnswer(Frozen):
    """What GET /v1/models said."""

    status: int | Unknown | None
    """HTTP status; None where nothing accepted the connection."""
    models: tuple[str, ...] = ()


def read_listeners(found: Mapping[str, Section]) -> tuple[Listener, ...] | Unknown:
    """Listeners on the port that the probe was asked for."""
    section = found.get("listeners", MISSING)
    if section.rc != 0:
        return Unknown(unknown=section.text.strip() or "the listeners were not read")
    groups: dict[int, list[str]] = {}
    for line in section.lines:
        cells = line.split("|", 2)
        if cells[0] == "cgroup" and len(cells) == 3 and re.fullmatch(r"[0-9]{1,9}", cells[1]):  # noqa: PLR2004
            groups.setdefault(int(cells[1]), []).append(cells[2])
    listeners = []
    for line in section.lines:
        words = line.split()
        if len(words) < 4 or words[0] != "LISTEN":  # noqa: PLR2004
            continue
        address, _, port = words[3].rpartition(":")
        if not re.fullmatch(r"[0-9]{1,5}", port):
            continue
        holders = re.findall(r'\("([^"]*)",pid=([0-9]{1,9})', line)
        for process, pid in holders or [("", "")]:
            number = int(pid) if pid else Unknown(unknown="ss named no process")
            listeners.append(
                Listener(
                    address=address,
                    port=int(port),
                    pid=number,
                    process=process,
                    unit=unit_of(groups.get(number, [])) if isinstance(number, int) else number,
                )
            )
    return tuple(listeners)


def read_answer(found: Mapping[str, Section]) -> EndpointAnswer:
    """What answered on the service's port."""
    section = found.get("answer", MISSING)
    if section.rc in {127, None}:
        return EndpointAnswer(status=Unknown(unknown=section.text.strip() or "not asked"))
    head, _, body = section.text.partition("\n\n")
    status = re.match(r"HTTP/1\.[01] ([0-9]{3})\b", head)
    if status is None:
        return EndpointAnswer(status=None)
    names = tuple(name for name, _ in models(body))
    return EndpointAnswer(status=int(status.group(1)), models=names)
