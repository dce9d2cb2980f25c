"""The service itself: enabled, running, and running what its unit file says now."""

from __future__ import annotations

from facts.actual import Actual
from facts.reading.units import UnitState
from inventory.base import Unknown
from inventory.errors import ConflictError
from inventory.service import Service
from operations.difference import Difference, differing


def service_differences(name: str, have: UnitState | Unknown) -> tuple[Difference, ...]:
    """How a unit differs from enabled and running.

    + name: the unit, with its ending
    + have: the unit as it is
    """
    resource = f"unit {name}"
    if isinstance(have, Unknown):
        return differing(resource, [("state", "active (running)", f"unknown: {have.unknown}")])
    enablement = have.unit_file_state or "absent"
    outdated = have.is_running and have.is_outdated
    return differing(
        resource,
        [
            ("enablement", "enabled", enablement),
            ("state", "active (running)", have.state),
            *([("process", "started from this file", "started before it")] if outdated else []),
        ],
    )


def require_port(service: Service, actual: Actual, leaving: frozenset[str]) -> None:
    """Refuse a start on a port that somebody else holds.

    + service: what should listen
    + actual: the box
    + leaving: units that are stopped before the start, with their endings
    + raises: ConflictError naming process and unit
    """
    if isinstance(actual.listeners, Unknown):
        return
    for listener in actual.listeners:
        ours = listener.unit in leaving | {service.unit}
        if ours or not _same_address(listener.address, service.listen.connect_host):
            continue
        who = (
            f"{listener.process or 'a process'} (pid {_show(listener.pid)}, {_unit(listener.unit)})"
        )
        raise ConflictError(
            wanted=f"{service.name} listening on {service.listen.host}:{service.listen.port}",
            found=f"{who} listens on {listener.address}:{listener.port}",
            why="the engine could not bind its port, and a check of the port would be answered by "
            "somebody else; nothing was touched",
            next_step="stop it, or name its service in replaces=[…], or choose another listen.port",
        )


def _same_address(listening: str, wanted: str) -> bool:
    address = listening.strip("[]").split("%", 1)[0].removeprefix("::ffff:")
    return address in {"*", "0.0.0.0", "::", wanted}  # noqa: S104 - compared, not bound


def _show(value: int | Unknown) -> str:
    return f"unknown: {value.unknown}" if isinstance(value, Unknown) else str(value)


def _unit(unit: str | Unknown | None) -> str:
    if isinstance(unit, Unknown):
        return "unit unknown"
    return unit or "in no unit"
