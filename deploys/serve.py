"""The story of a switch, step by step. The old service serves until it is stopped."""

import time
from collections.abc import Sequence
from pathlib import Path

from pyinfra import host, logger

from deploys.preflight import DesiredState, Plan, desired_state, plan_for
from facts.box import actual_state, changed
from inventory.errors import BoxwrightError, FitError, PlacementError
from inventory.service import Service
from inventory.snapshot import short
from operations.arguments import ArgumentsCheck
from operations.engine import engine
from operations.host import ground
from operations.prune import prune
from operations.push import pushed
from operations.report import reporting
from operations.snapshot import fetching, snapshot
from operations.steps import RefusedError, flag, report
from operations.switch import switch
from operations.throughput import RULE, throughput
from operations.tools import tools
from operations.unit import unit
from operations.verification import verification, verified

SECOND_LOOK_SECONDS = 5.0


def serve(service: Service, *, replaces: Sequence[Service] = (), rollback: bool = True) -> None:
    """Make this box serve a model, and retire the old services.

    + replaces: the old services: stopped when the new one can start, disabled when it answers
    + rollback: whether they come back if the new one does not become ready; False keeps the failed
      start for study

    Host data: ``override`` (inventory/override.py), ``locks`` (folder of the lock files),
    ``upgrade`` (resolve the revision anew), ``accept`` (rules of the fit to override;
    ``throughput`` takes slower figures as the new measure), ``prune`` (superseded snapshots to
    delete: commits, separated by commas), ``push`` (folder on this machine to send the snapshot
    from), ``verify`` (hash every byte of the snapshot again), ``rollback`` (as above), ``report``
    (file on this machine for the run as JSON), ``sysfs`` (of a simulated machine).

    **Example:**

    .. code:: python

        serve(MINIMAX_M25, replaces=[KIMI_K25])
    """
    reporting(host, service.name)
    try:
        desired = desired_state(
            service,
            tuple(replaces),
            override=host.data.get("override"),
            locks=Path(host.data.get("locks", "locks")),
            upgrade=flag(host, "upgrade"),
            accept=str(host.data.get("accept", "")),
            prune=str(host.data.get("prune", "")),
            sysfs=host.data.get("sysfs", "/sys"),
        )
        for note in desired.notes:
            logger.warning(f"{host.print_prefix}{note}")
        _steps(_plan(desired), flag(host, "rollback", rollback))
    except (BoxwrightError, RefusedError) as error:
        report(host, error)
        # The other boxes of the inventory go on. By name: this module's host is a proxy, and names
        # another box when the set is looked at later.
        host.state.fail_hosts({host.state.inventory.get_host(host.name)})


def _plan(desired: DesiredState) -> Plan:
    """The plan, from a second look where the first found GPUs taken.

    For some seconds, memory of a process that has just ended belongs to nobody. Only where that
    lasts is it a reason to refuse or to move a service.
    """
    try:
        plan = plan_for(desired, actual_state(host, desired.query))
        if not plan.moved:
            return plan
    except (PlacementError, FitError):
        pass
    time.sleep(SECOND_LOOK_SECONDS)
    changed(host)
    return plan_for(desired, actual_state(host, desired.query))


def _steps(plan: Plan, rollback: bool) -> None:
    """The operations in their order."""
    desired, want, model = plan.desired, plan.service, plan.desired.snapshot
    query = desired.query.model_copy(update={"hardware": False})
    for sentence in (*plan.placement.why, *plan.fitted.notes):
        logger.info(f"{host.print_prefix}{sentence}")
    for warning in (*plan.placement.warnings, *plan.fitted.warnings):
        logger.warning(f"{host.print_prefix}{warning}")
    if plan.fitted.answer is not None and host.state.config.DIFF:
        for line in plan.fitted.answer.explain().splitlines():
            logger.info(f"{host.print_prefix}    {line}")

    ground(name=f"{want.name}: packages, user, folders", service=want, query=query)
    tools(name="boxwright's programs", query=query, wheelhouse=want.engine.wheelhouse)
    if names := desired.prune:
        prune(
            name=f"{want.name}: superseded snapshots deleted", want=model, query=query, names=names
        )
    pushing = host.data.get("push")
    if not pushing:
        fetching(
            name=f"{want.name}: fetch begun", service=want, want=model, query=query, pruned=names
        )
    verification(
        name=f"{want.name}: schedule of hashing again", service=want, want=model, query=query
    )
    engine(name=f"{want.name}: engine {want.engine.version}", want=want.engine, query=query)
    title = f"{want.name}: snapshot {short(model.commit)}"
    if pushing:
        pushed(name=title, service=want, want=model, query=query, source=str(pushing))
    else:
        snapshot(name=title, service=want, want=model, query=query, pruned=names)
    if flag(host, "verify"):
        verified(name=f"{want.name}: every byte hashed again", want=model, query=query)
    unit(
        name=f"{want.name}: unit file",
        unit_name=want.unit,
        text=plan.unit_text,
        query=query,
        checks=(ArgumentsCheck(want, desired.accept),),
    )
    # Until here the old service still serves.
    switch(
        name=f"{want.name}: serving",
        service=want,
        replaces=desired.replaces,
        query=query,
        placement=plan.placement,
        snapshot=model,
        driver=plan.driver,
        rollback=rollback,
        fits_max_num_seqs=plan.fitted.fits_max_num_seqs,
    )
    if want.throughput is not None:
        throughput(
            name=f"{want.name}: throughput",
            service=want,
            query=query,
            folder=model.folder,
            accepted=RULE in desired.accept,
        )
