"""What the program on the box is told about a switch (operations/remote/switch). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from facts.diagnosis.silence import LOADING_PATIENCE, NCCL_PATIENCE, PATIENCE
from facts.journal.milestones import DISTRIBUTED, IMPORT, LOAD, MILESTONES, WORKERS
from inventory.base import Unknown
from inventory.parallel import tensor_parallel_size
from inventory.placement import Chosen
from inventory.service import Service
from inventory.snapshot import Snapshot
from operations.remote.switch.waiting.verdicts import ANSWER
from operations.unit_text import command_words, variables

RELEASE_SECONDS = 60
"""GPU memory comes back within seconds of its process; a minute without it has another cause."""

ANSWER_SECONDS = 60
"""It answers in milliseconds once it is up."""


def switch_request(
    service: Service,
    replaces: Iterable[Service],
    *,
    placement: Chosen,
    snapshot: Snapshot,
    driver: str | None,
    rollback: bool,
) -> dict[str, Any]:
    """The request, as JSON. It holds no secret: the record keeps parts of it.

    + service: what should serve, complete
    + replaces: what it takes over from
    + placement: its GPUs
    + snapshot: the listing of the commit
    + driver: version of the GPUs' driver
    + rollback: whether what served before comes back after a failure
    """
    engine = service.engine
    return {
        "service": {**_target(service), "max_model_len": engine.max_model_len},
        "replaces": [{**_target(old), "timeout": old.start_limits.patience} for old in replaces],
        "gpus": list(placement.gpus),
        "release": RELEASE_SECONDS,
        "wait": {
            "timeout": service.start_limits.patience,
            "milestones": [list(stone) for stone in MILESTONES],
            # Without a record of this box: what silence is still normal in which phase.
            "patience": {
                IMPORT: LOADING_PATIENCE,
                WORKERS: NCCL_PATIENCE,
                DISTRIBUTED: NCCL_PATIENCE,
                LOAD: LOADING_PATIENCE,
                ANSWER: ANSWER_SECONDS,
                "": PATIENCE,
            },
        },
        "smoke": {
            "tools": engine.tool_call_parser is not None,
            "reasoning": engine.reasoning_parser is not None,
        },
        "warm": service.model.folder(snapshot.commit),
        "rollback": rollback,
        "about": about(service, placement, snapshot, driver),
    }


def _target(service: Service) -> dict[str, Any]:
    return {
        "unit": service.unit,
        "url": service.listen.url,
        "model": service.served_model_name,
    }


def about(
    service: Service, placement: Chosen, snapshot: Snapshot, driver: str | None
) -> dict[str, Any]:
    """What the record keeps of the desired state."""
    engine, folder = service.engine, service.model.folder(snapshot.commit)
    return {
        "service": service.name,
        "model": service.served_model_name,
        "repo": snapshot.repo,
        "commit": snapshot.commit,
        "weights_bytes": sum(
            file.size for file in snapshot.files if file.path.endswith(".safetensors")
        ),
        "engine": {"package": engine.package, "version": engine.version},
        "argv": command_words(service, folder, placement.numa_bind_nodes),
        # Names only: a value may be anybody's business.
        "environment": sorted(variables(service, placement.environment)),
        "placement": {
            "gpus": list(placement.gpus),
            "numa_nodes": _known(placement.numa_nodes),
            "tensor_parallel_size": tensor_parallel_size(service),
        },
        "host": {"driver": driver},
    }


def _known(nodes: Sequence[int | Unknown]) -> list[int | None]:
    return [None if isinstance(node, Unknown) else node for node in nodes]
