"""Boxes to place on: the shapes of gpu samples, and the lab's eight RTX PRO 6000."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from inventory.base import Unknown
from inventory.hardware import Gpu, GpuProcess, Hardware, Link, NumaNode
from inventory.placement import Chosen

GIB = 1 << 30
RTX = "NVIDIA RTX PRO 6000 Blackwell Server Edition"


def uuid(n: int) -> str:
    return f"GPU-{n:08d}"


def gpu(n: int, node: int | Unknown = 0, **fields: Any) -> Gpu:
    """A free, sound card; bus ids rise with ``n``."""
    told: dict[str, Any] = {
        "uuid": uuid(n),
        "index": n,
        "bus_id": f"0000:{n + 16:02x}:00.0",
        "name": RTX,
        "memory_total": 96 * GIB,
        "memory_used": 0,
        "memory_free": 95 * GIB,
        "numa_node": node,
        "pcie_width_current": 16,
        "pcie_width_max": 16,
        "reset_pending": False,
    }
    return Gpu(**{**told, **fields})


def node(n: int, socket: int | Unknown, **fields: Any) -> NumaNode:
    told: dict[str, Any] = {
        "id": n,
        "cpus": f"{n * 16}-{n * 16 + 15}",
        "memory_total": 256 * GIB,
        "memory_free": 250 * GIB,
        "socket": socket,
    }
    return NumaNode(**{**told, **fields})


def links(
    gpus: Sequence[Gpu],
    kinds: dict[tuple[int, int], str] | str = "NODE",
    p2p: bool | Unknown = True,
    across: str = "SYS",
) -> tuple[Link, ...]:
    """All pairs: ``kinds`` inside a node (or by pair of positions), ``across`` between nodes."""
    made = []
    for (n, a), (m, b) in combinations(enumerate(gpus), 2):
        if isinstance(kinds, dict):
            kind = kinds.get((n, m), across)
        else:
            kind = kinds if a.numa_node == b.numa_node else across
        made.append(Link(a=a.uuid, b=b.uuid, kind=kind, p2p=p2p))
    return tuple(made)


def box(
    gpus: Sequence[Gpu],
    made: tuple[Link, ...] | None = None,
    nodes: Sequence[NumaNode] | None = None,
    **fields: Any,
) -> Hardware:
    """A box; two nodes on two sockets, numactl that works, no virtual machine."""
    told: dict[str, Any] = {
        "state": "ok",
        "gpus": tuple(gpus),
        "links": links(gpus) if made is None else made,
        "numa_nodes": tuple([node(0, 0), node(1, 1)] if nodes is None else nodes),
        "numactl": True,
        "bindable_nodes": (0, 1),
        "iommu_groups": 0,
        "virtual_machine": False,
    }
    return Hardware(**{**told, **fields})


def story(**fields: Any) -> Hardware:
    """Eight RTX PRO 6000 over PCIe, four on each of two nodes."""
    return box([gpu(n, n // 4) for n in range(8)], **fields)


def process(n: int, unit: str | Unknown | None, memory: int | Unknown = 90 * GIB) -> GpuProcess:
    return GpuProcess(
        gpu=uuid(n), pid=1000 + n, memory=memory, name=f"VLLM::Worker_TP{n}", unit=unit
    )


def held(hardware: Hardware, unit: str | Unknown | None, *cards: int) -> Hardware:
    """The box with one process of ``unit`` on each of the cards, 90 GiB each."""
    gpus = tuple(
        card.model_copy(update={"memory_used": 90 * GIB, "memory_free": 5 * GIB})
        if n in cards
        else card
        for n, card in enumerate(hardware.gpus)
    )
    before = () if isinstance(hardware.processes, Unknown) else hardware.processes
    more = tuple(process(n, unit) for n in cards)
    return hardware.model_copy(update={"gpus": gpus, "processes": (*before, *more)})


def with_gpus(hardware: Hardware, changes: dict[int, dict[str, Any]]) -> Hardware:
    """The box with fields of some cards replaced."""
    gpus = tuple(card.model_copy(update=changes.get(n, {})) for n, card in enumerate(hardware.gpus))
    return hardware.model_copy(update={"gpus": gpus})


def numbers(chosen: Chosen) -> list[int]:
    """The cards of a choice, as ``uuid`` counts them."""
    return [int(one.removeprefix("GPU-")) for one in chosen.gpus]
