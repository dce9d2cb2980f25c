"""NUMA nodes from sysfs, and which of them a GPU belongs to."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from facts.hardware.cells import kibibytes, number, read, unknown
from inventory.base import NOT_ASKED, Unknown
from inventory.hardware import NumaNode

_MOST_IDS = 1 << 16
"""Above any CPU or node number that Linux gives out (NR_CPUS is at most 8192)."""

_NODE = re.compile(r"\S*/devices/system/node/node([0-9]{1,5})/(\S*?)[\t:](.*)")
_ONLINE = re.compile(r"\S*/devices/system/(node|cpu)/online[\t:](.*)|(physcpubind): (.*)")


def parse_ids(text: str) -> frozenset[int] | Unknown:
    """The members of a kernel list: ``0-3,8`` is {0, 1, 2, 3, 8}; an empty list is empty.

    Numbers have gaps (offline CPUs, node 0 and node 8), so a count is never an upper bound.
    """
    ids: set[int] = set()
    for part in filter(None, re.split(r"[,\s]+", text.strip())):
        match = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", part)
        if match is None:
            return unknown(text)
        first, last = int(match.group(1)), int(match.group(2) or match.group(1))
        if last >= _MOST_IDS or first > last:
            return unknown(text)
        ids.update(range(first, last + 1))
    return frozenset(ids)


def parse_numa(lines: Sequence[str]) -> tuple[NumaNode, ...]:
    """Read the nodes: CPUs, memory, socket, distances.

    Lines are ``path:value`` or ``path<TAB>value``. A kernel without NUMA has no node
    directory: that is one node with all online CPUs.
    """
    told: dict[int, dict[str, str]] = {}
    online: dict[str, str] = {}
    for line in lines:
        if match := _NODE.fullmatch(line):
            node, key, value = int(match.group(1)), match.group(2), match.group(3)
            facts = told.setdefault(node, {})
            if key == "meminfo":
                label, _, size = value.partition("Mem")[2].partition(":")
                facts[f"Mem{label}"] = size
            else:
                facts[key.rsplit("/", 1)[-1]] = value
        elif match := _ONLINE.fullmatch(line):
            online[match.group(1) or "cpu"] = (match.group(2) or match.group(4) or "").strip()
    if not told:
        return _one_node(online)
    # Distances come in the order of the online nodes, not by node number.
    order = parse_ids(online.get("node", ""))
    ids = sorted(order) if isinstance(order, frozenset) and order else sorted(told)
    return tuple(_node(node, told[node], ids) for node in sorted(told))


def _one_node(online: dict[str, str]) -> tuple[NumaNode, ...]:
    cpus = parse_ids(online.get("cpu", ""))
    if "node" in online or isinstance(cpus, Unknown) or not cpus:
        return ()
    missing = Unknown(unknown="the kernel has no NUMA")
    return (
        NumaNode(
            id=0,
            cpus=",".join(online["cpu"].split()),
            memory_total=missing,
            memory_free=missing,
            socket=missing,
        ),
    )


def _node(node: int, facts: dict[str, str], order: list[int]) -> NumaNode:
    cpus = facts.get("cpulist", "").strip()
    row = [number(word) for word in facts.get("distance", "").split()]
    known = [distance for distance in row if isinstance(distance, int)]
    fits = len(known) == len(row) == len(order)
    return NumaNode(
        id=node,
        cpus=cpus if isinstance(parse_ids(cpus), frozenset) else "",
        memory_total=read(facts, "MemTotal", kibibytes),
        memory_free=read(facts, "MemFree", kibibytes),
        socket=read(facts, "physical_package_id", number),
        distances=tuple(zip(order, known, strict=True)) if fits else (),
    )


def with_cpus(nodes: Sequence[NumaNode]) -> tuple[NumaNode, ...]:
    """The nodes that can run something; the others are memory only (HBM of Grace, CXL)."""
    return tuple(node for node in nodes if node.cpus)


def node_of_cpus(cpus: str | Unknown, nodes: Sequence[NumaNode]) -> int | Unknown:
    """The node whose CPU list holds all of ``cpus``."""
    if isinstance(cpus, Unknown):
        return cpus
    wanted = parse_ids(cpus)
    if isinstance(wanted, Unknown) or not wanted:
        return unknown(cpus)
    for node in with_cpus(nodes):
        has = parse_ids(node.cpus)
        if isinstance(has, frozenset) and wanted <= has:
            return node.id
    return unknown(f"no node holds CPUs {cpus}")


def node_of_ids(ids: tuple[int, ...] | Unknown, nodes: Sequence[NumaNode]) -> int | Unknown:
    """The member of a list of nodes that has CPUs, where it is the only one."""
    if isinstance(ids, Unknown):
        return ids
    members = [node.id for node in with_cpus(nodes) if node.id in ids]
    if len(members) == 1:
        return members[0]
    return unknown(f"{len(members)} of the nodes {list(ids)} have CPUs")


@dataclass(frozen=True)
class GpuSources:
    """What the box says about a GPU's place.

    + sysfs: numa_node of the PCI device; -1 is what firmware leaves when it does not say
    + cpus: CPU affinity in the driver's matrix
    + nodes: NUMA affinity there
    """

    sysfs: int | Unknown = NOT_ASKED
    cpus: str | Unknown = NOT_ASKED
    nodes: tuple[int, ...] | Unknown = NOT_ASKED


def gpu_node(sources: GpuSources, nodes: Sequence[NumaNode]) -> int | Unknown:
    """The node with CPUs that a GPU is nearest to, or Unknown.

    In this order, because each source fails alone somewhere: sysfs (says -1 in cuCascade#119),
    the driver's CPU affinity, its NUMA affinity (absent in old drivers), the only node with
    CPUs. A -1 never becomes 0 on a box with several nodes.
    """
    running = with_cpus(nodes)
    ids = {node.id for node in running}
    place = sources.sysfs
    if isinstance(place, int) and (place in ids or not nodes):
        return place
    for guess in (node_of_cpus(sources.cpus, nodes), node_of_ids(sources.nodes, nodes)):
        if isinstance(guess, int):
            return guess
    if len(running) == 1:
        return running[0].id
    return Unknown(unknown="neither sysfs nor the driver says")
