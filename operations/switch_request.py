"""What the program on the box is told about a switch (operations/remote/switch). Pure."""

from collections.abc import Iterable
from pathlib import Path

from inventory.base import Unknown
from inventory.common.record import Declared, RecordedEngine, RecordedHost, RecordedPlacement
from inventory.common.switch import OldService, SwitchRequest, Target
from inventory.placement import Chosen
from inventory.service import Service, tensor_parallel_size
from inventory.snapshot import LocalSnapshot
from operations.unit_text import command_words, variables

RELEASE_SECONDS = 60
"""GPU memory comes back within seconds of its process; a minute without it has another cause."""


def switch_request(
    service: Service,
    replaces: Iterable[Service],
    *,
    placement: Chosen,
    snapshot: LocalSnapshot,
    driver: str | None,
    rollback: bool,
) -> SwitchRequest:
    """The request.

    + service: what should serve, complete
    + replaces: the old services
    + placement: its GPUs
    + snapshot: what it loads
    + driver: version of the GPUs' driver
    + rollback: whether the old services come back after a failure
    """
    engine = service.engine
    return SwitchRequest(
        new=Target(
            service.unit, service.listen.url, service.served_model_name, engine.max_model_len
        ),
        replaces=tuple(
            OldService(
                old.unit, old.listen.url, old.served_model_name, timeout=old.start_limits.patience
            )
            for old in replaces
        ),
        gpus=frozenset(placement.gpus),
        release_seconds=RELEASE_SECONDS,
        start_seconds=service.start_limits.patience,
        tools=engine.tool_call_parser is not None,
        reasoning=engine.reasoning_parser is not None,
        warm=Path(snapshot.folder),
        rollback=rollback,
        about=declared(service, placement, snapshot, driver),
    )


def declared(
    service: Service, placement: Chosen, snapshot: LocalSnapshot, driver: str | None
) -> Declared:
    """What the record keeps of the desired state."""
    engine, folder = service.engine, snapshot.folder
    return Declared(
        service=service.name,
        model=service.served_model_name,
        repo=snapshot.repo,
        commit=snapshot.commit,
        weights_bytes=sum(
            file.size for file in snapshot.listing.files if file.path.endswith(".safetensors")
        ),
        engine=RecordedEngine(engine.package, engine.version),
        argv=tuple(command_words(service, folder, placement.numa_bind_nodes)),
        # Names only: a value may be anybody's business.
        environment=tuple(sorted(variables(service, placement.environment))),
        placement=RecordedPlacement(
            gpus=placement.gpus,
            numa_nodes=tuple(
                None if isinstance(node, Unknown) else node for node in placement.numa_nodes
            ),
            tensor_parallel_size=tensor_parallel_size(service),
        ),
        host=RecordedHost(driver=driver),
    )
