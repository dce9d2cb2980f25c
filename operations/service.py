"""The service itself: enabled, running, and running what its unit file says now."""

from __future__ import annotations

import shlex

from pyinfra import host
from pyinfra.api import operation

from facts.actual import Actual
from facts.box import actual_state
from facts.query import Query
from facts.reading.units import UnitState
from inventory.base import Unknown
from inventory.errors import ConflictError
from inventory.service import Service
from operations.difference import Difference, differing
from operations.steps import Commands, Step, guarded, settled, show
from operations.tools import run_module

RELEASE_SECONDS = 60
"""GPU memory comes back within seconds of its process; a minute without it has another cause."""


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


@operation()
@guarded
def service(want: Service, query: Query, gpus: tuple[str, ...] = ()) -> Commands:
    """
    Enable a service and have it run from its present unit file. Does not wait for readiness.

    + want: the service
    + query: what this run reads of the box
    + gpus: UUIDs that it will use: they are seen to be free before it starts
    """
    actual = actual_state(host, query)
    differences = service_differences(want.unit, actual.unit(want.unit))
    show(host, differences)
    if not differences:
        host.noop(f"{want.unit} is enabled and running")
        return
    if host.state.is_executing:
        require_port(want, actual, frozenset())
    name = shlex.quote(want.unit)
    if any(difference.attribute != "enablement" for difference in differences):
        if gpus:
            release = run_module(
                "switch.release", "--gpus", ",".join(gpus), "--timeout", str(RELEASE_SECONDS)
            )
            yield Step(
                f"systemctl stop -- {name} && exec {release}",
                stream=True,
                wanted=f"{len(gpus)} free GPUs for {want.unit}",
                why="an engine that starts before the memory is back fails; nothing is serving",
                next_step="end the named process if it is yours, and run again. Memory without a "
                "process is a driver that needs a reset (nvidia-smi --gpu-reset) or a reboot",
            )
        start = f"{{ systemctl reset-failed -- {name} || :; }} && systemctl restart -- {name}"
    else:
        start = ":"
    yield Step(
        # reset-failed: the start limit counts starts by hand too, and those of a crash loop.
        f"systemctl enable --quiet -- {name} && {start}",
        wanted=f"{want.unit} enabled and started",
        why="systemd could not even start the program; nothing is serving",
        next_step=f"systemctl status {want.unit} on the box names the reason (203: the program of "
        "ExecStart does not exist; 217: the user does not)",
    )
    settled(
        service_differences(want.unit, actual_state(host, query).unit(want.unit)),
        f"journalctl -u {want.unit} on the box",
    )
