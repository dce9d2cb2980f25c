"""An old service, stopped and disabled. One that does not exist is retired already."""

from __future__ import annotations

from facts.reading.units import UnitState
from inventory.base import Unknown
from operations.difference import Difference, differing


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
