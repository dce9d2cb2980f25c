"""What is left to do: the service runs from its file, it is ready, old ones are gone. Pure."""

from facts.actual import Actual
from facts.reading.units import UnitState
from inventory.base import Unknown
from inventory.common.models import REFUSED
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


def readiness_differences(service: Service, actual: Actual) -> tuple[Difference, ...]:
    """Whether the service is ready, as far as one read can tell: this very start was seen to answer
    with the declared name, and to chat.

    The waiter noted which start answered. A later start, or an endpoint that has stopped
    answering since, is not that one.

    + service: what should answer
    + actual: the box
    """
    resource = f"service {service.name}"
    unit = actual.unit(service.unit)
    if isinstance(unit, Unknown) or not unit.is_running:
        return differing(resource, [("readiness", "answers", "known after the start")])
    if not unit.is_ready:
        return differing(
            resource, [("readiness", "answers", "this start was never seen to answer")]
        )
    answer = actual.answer
    if isinstance(answer.status, Unknown):
        return ()
    if answer.status is None:
        return differing(resource, [("readiness", "answers", "nothing answers")])
    names = ", ".join(answer.models) or f"HTTP {answer.status}"
    ours = service.served_model_name in answer.models
    refused = answer.status in REFUSED
    return differing(
        resource, [] if ours or refused else [("model", service.served_model_name, names)]
    )


def old_service_differences(name: str, have: UnitState | Unknown) -> tuple[Difference, ...]:
    """What is left of an old service. One that does not exist is gone already.

    ``failed`` counts as stopped. ``activating (auto-restart)`` does not: systemd is about to start
    it again. ``enabled-runtime`` is still enabled until the next boot.

    + name: the unit, with its ending
    + have: the unit as it is
    """
    resource = f"unit {name}"
    if isinstance(have, Unknown):
        return differing(resource, [("state", "inactive", f"unknown: {have.unknown}")])
    if not have.exists:
        return ()
    enabled = have.unit_file_state.startswith("enabled")
    return (
        *differing(resource, [] if have.is_stopped else [("state", "inactive", have.state)]),
        *differing(resource, [("enablement", "disabled", have.unit_file_state)] if enabled else []),
    )


def require_port(service: Service, actual: Actual, old: frozenset[str]) -> None:
    """Refuse a start on a port that somebody else holds.

    + service: what should listen
    + actual: the box
    + old: units of the old services, which are stopped before the start
    + raises: ConflictError naming process and unit
    """
    if isinstance(actual.listeners, Unknown):
        return
    for listener in actual.listeners:
        ours = listener.unit in old | {service.unit}
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
