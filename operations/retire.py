"""An old service, stopped and disabled. One that does not exist is retired already."""

from __future__ import annotations

import shlex

from pyinfra import host
from pyinfra.api import operation

from facts.box import actual_state
from facts.query import Query
from facts.reading.units import UnitState
from inventory.base import Unknown
from operations.difference import Difference, differing
from operations.steps import Commands, Step, guarded, settled, show


def retire_differences(name: str, have: UnitState | Unknown) -> tuple[Difference, ...]:
    """What is left of a unit that should be gone.

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


@operation()
@guarded
def retire(unit_name: str, query: Query) -> Commands:
    """
    Stop a unit and take it out of the boot.

    + unit_name: the unit, with its ending
    + query: what this run reads of the box
    """
    differences = retire_differences(unit_name, actual_state(host, query).unit(unit_name))
    show(host, differences)
    if not differences:
        host.noop(f"unit {unit_name} is retired")
        return
    quoted = shlex.quote(unit_name)
    yield Step(
        f"systemctl stop -- {quoted} && systemctl disable --quiet -- {quoted} && "
        f"systemctl disable --quiet --runtime -- {quoted}",
        wanted=f"{unit_name} stopped and disabled",
        why="two services would fight for the same GPUs and the same port, now or at the next boot",
        next_step=f"systemctl status {unit_name} on the box; what ignores SIGTERM is killed "
        "after the unit's TimeoutStopSec",
    )
    settled(
        retire_differences(unit_name, actual_state(host, query).unit(unit_name)),
        f"systemctl status {unit_name} on the box: another manager may start it again",
    )
