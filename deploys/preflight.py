"""Everything that is certain before anything is touched: the plan of a run, or the refusal."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from facts.actual import Actual
from facts.query import Query, query_for
from inventory.base import Unknown
from inventory.errors import PreconditionError
from inventory.fit.fitted_service import FittedService, fitted_service
from inventory.override import overridden
from inventory.placement import Chosen, place
from inventory.selection import selected
from inventory.service import Service
from inventory.snapshot import LocalSnapshot
from operations.hub import CONFIG_FILE, QUANTISATION_FILE, locked_snapshot, model_config
from operations.prune import named_commits, prunable
from operations.room import require_room
from operations.service import require_port
from operations.snapshot import require_loadable, snapshot_differences
from operations.tools import tools_folder
from operations.unit import unit_differences
from operations.unit_text import unit_text, visible_gpus


@dataclass(frozen=True)
class DesiredState:
    """What a run is asked to do on one box, with the box's overrides applied."""

    service: Service
    replaces: tuple[Service, ...]
    snapshot: LocalSnapshot
    query: Query
    config: Mapping[str, Any] | Unknown | None = None
    """config.json of the model."""
    quantisation: Mapping[str, Any] | None = None
    """hf_quant_config.json of the model."""
    accept: frozenset[str] = frozenset()
    """Rules of the fit that the operator overrides."""
    notes: tuple[str, ...] = ()
    """What the operator should know about the lock file and the listing."""
    prune: tuple[str, ...] = ()
    """Superseded snapshots to delete: beginnings of their commits."""


@dataclass(frozen=True)
class Plan:
    """How this box comes to the desired state."""

    desired: DesiredState
    service: Service
    """With what was left open derived for this box."""
    placement: Chosen
    driver: str | None
    """Version of the GPUs' driver."""
    fitted: FittedService
    unit_text: str
    moved: bool
    """Whether the service leaves GPUs that its installed unit pins."""


def desired_state(
    service: Service,
    replaces: tuple[Service, ...],
    *,
    override: object = None,
    locks: Path = Path("locks"),
    upgrade: bool = False,
    prune: str = "",
    accept: str = "",
    sysfs: str = "/sys",
) -> DesiredState:
    """The desired state of one box, complete.

    The arguments by name are the host data that :func:`deploys.serve.serve` explains.

    + raises: DesiredStateError, HubError
    """
    wanted = overridden(service, override)
    old = tuple(overridden(one, override) for one in replaces)
    named = named_commits(prune)
    listed, note = locked_snapshot(wanted.model, locks, upgrade=upgrade)
    listing, left_out = selected(listed, wanted)
    snapshot = LocalSnapshot.of(wanted.model, listing)
    query = query_for(
        wanted,
        folder=snapshot.folder,
        tools=tools_folder(),
        replaces=old,
        sysfs=sysfs,
        neighbours=bool(named),
    )
    notes = [note] if note else []
    if left_out and note:
        notes.append(f"not fetched, as neither safetensors nor text: {', '.join(left_out)}")
    # A service on the CPU is not predicted: nothing is asked for it.
    config, quantisation = (
        model_config(wanted.model, listing, name, locks) if wanted.placement.gpus > 0 else None
        for name in (CONFIG_FILE, QUANTISATION_FILE)
    )
    return DesiredState(
        service=wanted,
        replaces=old,
        snapshot=snapshot,
        query=query,
        config=config,
        quantisation=quantisation if isinstance(quantisation, Mapping) else None,
        accept=frozenset(accept.split(",")) - {""},
        notes=tuple(notes),
        prune=named,
    )


def plan_for(desired: DesiredState, actual: Actual) -> Plan:
    """The plan of a run, or the first certain reason why it cannot succeed. Pure.

    + raises: PreconditionError, ConflictError, PlacementError, FitError, DesiredStateError
    """
    service = desired.service
    require_ground(actual, service)
    old_units = frozenset(old.unit for old in desired.replaces)
    own_units = old_units | {service.unit}
    have = actual.unit(service.unit)
    file = None if isinstance(have, Unknown) else have.file
    keep = () if file is None or isinstance(file, Unknown) else visible_gpus(file.text)
    chosen = place(service.placement, actual.hardware, own_units=own_units, keep=keep)
    fitted = fitted_service(
        service,
        desired.snapshot.listing,
        desired.config,
        desired.quantisation,
        actual.hardware,
        chosen.gpus,
        own_units=own_units,
        accept=desired.accept,
    )
    service = fitted.service
    text = unit_text(
        service,
        folder=desired.snapshot.folder,
        gpu_environment=chosen.environment,
        numa_nodes=chosen.numa_bind_nodes,
        conflicts=tuple(sorted(old_units)),
        accepted=fitted.accepted,
    )
    # Called for what they refuse. The operations call them again, on the box as it is then.
    unit_differences(service.unit, text, have)
    snapshot_differences(desired.snapshot, actual.snapshot)
    require_loadable(desired.snapshot, actual.snapshot)
    freed = prunable(desired.prune, desired.snapshot, actual.neighbours)
    require_room(desired.snapshot, actual, freed)
    require_port(service, actual, old_units)
    moved = bool(keep) and set(keep) != set(chosen.gpus)
    driver = None if isinstance(actual.hardware.driver, Unknown) else actual.hardware.driver
    return Plan(desired, service, chosen, driver, fitted, text, moved)


def require_ground(actual: Actual, service: Service) -> None:
    """Refuse a box that was not read, that gives no root, or that has no systemd.

    + raises: PreconditionError
    """
    wanted = f"a box that can serve {service.name}"
    if not actual.complete:
        raise PreconditionError(
            wanted=wanted,
            found="a read of the box that was cut off",
            why="what was not read is not known, and is not guessed",
            next_step="run again; with -vv pyinfra shows the command and its output",
        )
    if not actual.host.is_root:
        refusal = actual.host.root_refusal or "sudo did not work"
        raise PreconditionError(
            wanted=f"{wanted}: root, or sudo without a password",
            found=f"login as {actual.host.login}: {refusal}",
            why="units, users and packages belong to root; nothing was touched",
            next_step=f"add `{actual.host.login} ALL=(ALL) NOPASSWD: ALL` to a file in "
            "/etc/sudoers.d on the box, or log in as root (ssh_user)",
        )
    if actual.host.systemd is None or isinstance(actual.host.systemd, Unknown):
        found = actual.host.systemd.unknown if actual.host.systemd else "not booted with systemd"
        raise PreconditionError(
            wanted=f"{wanted}: systemd",
            found=found,
            why="the service is a systemd unit: nothing else would start it at boot, restart it "
            "after a crash or stop all of it; nothing was touched",
            next_step="use the machine itself, or a container that boots systemd as its init",
        )
