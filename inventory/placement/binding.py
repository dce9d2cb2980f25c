"""Whether a service's threads and memory are bound to the NUMA nodes of its GPUs.

vLLM's ``--numa-bind-nodes`` takes one node a GPU, in the order of CUDA_VISIBLE_DEVICES. Left to
find the nodes itself, vLLM 0.32 stops on a box of one node, so the flag is given only together
with the nodes, and only where binding was seen to work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inventory.base import Unknown
from inventory.hardware import Gpu, Hardware
from inventory.placement.result import gib

_FEWEST_NODES = 2


def binding(group: Sequence[Gpu], hardware: Hardware) -> tuple[tuple[int, ...] | None, str]:
    """The nodes, one a GPU, or None; and why."""
    nodes = [gpu.numa_node for gpu in group]
    known = [node for node in nodes if isinstance(node, int)]
    obstacle = next(_obstacles(hardware, nodes, frozenset(known)), "")
    if obstacle:
        return None, f"not bound: {obstacle}"
    free = {node.id: node.memory_free for node in hardware.numa_nodes}
    each = ", ".join(f"node {node} has {gib(free[node])} free" for node in sorted(set(known)))
    return tuple(known), f"bound: {each}, and the binding is a hard limit"


def _obstacles(
    hardware: Hardware, nodes: Sequence[int | Unknown], known: frozenset[int]
) -> Iterator[str]:
    running = {node.id for node in hardware.numa_nodes if node.cpus}
    with_memory = {
        node.id
        for node in hardware.numa_nodes
        if isinstance(node.memory_total, int) and node.memory_total > 0
    }
    if not nodes:
        yield "no GPU"
    if len(running) < _FEWEST_NODES:
        yield f"the box has {len(running)} NUMA nodes with CPUs, nothing to choose between"
    if any(isinstance(node, Unknown) for node in nodes):
        yield "the NUMA node of a GPU is not known"
    for node in sorted(known - (running & with_memory)):
        yield f"node {node} is not known to have both CPUs and memory"
    if hardware.numactl is not True:
        absent = hardware.numactl is False
        yield "numactl is not installed" if absent else "it is not known whether numactl exists"
    if isinstance(hardware.bindable_nodes, Unknown):
        yield f"binding was not tried: {hardware.bindable_nodes.unknown}"
        return
    for node in sorted(known - set(hardware.bindable_nodes)):
        yield f"numactl could not bind to node {node}"
