"""How the GPUs of a box lie to each other: NVLink, NUMA node, socket, PCIe."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from inventory.base import NotKnownError, Unknown, known, need
from inventory.hardware import Gpu, Hardware, Link
from inventory.placement.result import Closeness
from inventory.service import Proximity

PCIE = ("PIX", "PXB", "PHB", "NODE", "SYS")
"""Link words over PCIe, the shortest first."""
_ONE_SWITCH = frozenset({"PIX", "PXB"})
_ONE_BRIDGE = frozenset({"PIX", "PXB", "PHB"})
_NOT_TOLD = Unknown(unknown="not told")


def is_nvlink(kind: str | Unknown) -> bool:
    """Whether a link word says NVLink: NV and the number of links."""
    return isinstance(kind, str) and re.fullmatch(r"NV[0-9]+", kind) is not None


@dataclass(frozen=True)
class BoxLayout:
    """A box, with its pairs and sockets looked up once."""

    hardware: Hardware
    _links: dict[frozenset[str], Link] = field(init=False, compare=False)
    _sockets: dict[int, int | Unknown] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        links = {frozenset((link.a, link.b)): link for link in self.hardware.links}
        sockets = {node.id: node.socket for node in self.hardware.numa_nodes}
        object.__setattr__(self, "_links", links)
        object.__setattr__(self, "_sockets", sockets)

    def pairs(self, group: Iterable[Gpu]) -> Iterator[Link]:
        """The link of each pair; one that was not told is Unknown in both respects."""
        for a, b in combinations(group, 2):
            found = self._links.get(frozenset((a.uuid, b.uuid)))
            yield found or Link(a=a.uuid, b=b.uuid, kind=_NOT_TOLD, p2p=_NOT_TOLD)

    def all_nvlink(self, group: Sequence[Gpu]) -> bool:
        """Whether every pair has NVLink: a chain or two bridged pairs is not enough."""
        return len(group) > 1 and all(is_nvlink(link.kind) for link in self.pairs(group))

    def has_nvlink(self, gpu: Gpu) -> bool:
        """Whether a GPU has NVLink to any other."""
        return any(
            is_nvlink(link.kind) for link in self.hardware.links if gpu.uuid in (link.a, link.b)
        )

    def socket(self, gpu: Gpu) -> int | Unknown:
        """The physical package of a GPU's node. With one node there is one package."""
        if isinstance(gpu.numa_node, Unknown):
            return gpu.numa_node
        return self._sockets.get(gpu.numa_node, _NOT_TOLD)

    def nodes(self, group: Iterable[Gpu]) -> frozenset[int] | Unknown:
        """The NUMA nodes of a group; Unknown where one GPU's is."""
        return _all_known(gpu.numa_node for gpu in group)

    def sockets(self, group: Iterable[Gpu]) -> frozenset[int] | Unknown:
        """The sockets of a group; Unknown where one GPU's is."""
        return _all_known(self.socket(gpu) for gpu in group)

    def one_bridge(self, group: Sequence[Gpu]) -> bool:
        """Whether every pair is below one PCIe host bridge."""
        kinds = {known(link.kind, "") for link in self.pairs(group)}
        return bool(kinds) and kinds <= _ONE_BRIDGE

    def shared_uplinks(self, group: Iterable[Gpu]) -> int:
        """Pairs below one PCIe switch whose peer access is refused.

        Their traffic goes up to host memory and down again over the one uplink: about half of
        what two GPUs on different bridges reach (nccl#1086).
        """
        return sum(
            link.p2p is False and known(link.kind, "") in _ONE_SWITCH for link in self.pairs(group)
        )

    def closeness(self, group: Sequence[Gpu]) -> Closeness:
        """The closest thing that the whole group shares."""
        if self.all_nvlink(group):
            return "nvlink"
        nodes, sockets = self.nodes(group), self.sockets(group)
        if isinstance(nodes, Unknown):
            return "unknown"
        if len(nodes) == 1:
            return "numa-node"
        if isinstance(sockets, Unknown):
            return "unknown"
        return "socket" if len(sockets) == 1 else "host"

    def bound(self, wish: Proximity, count: int) -> Proximity:
        """How close ``count`` GPUs must be on this box.

        A node of a socket that is split (SNC, NPS) may be too small for any such group, while
        the socket is not: then the socket is what the wish means.
        """
        if wish != "numa-node":
            return wish
        nodes: dict[int, int] = {}
        sockets: dict[int, set[int]] = {}
        sizes: dict[int, int] = {}
        for gpu in self.hardware.gpus:
            socket = self.socket(gpu)
            if isinstance(gpu.numa_node, Unknown) or isinstance(socket, Unknown):
                continue
            nodes[gpu.numa_node] = nodes.get(gpu.numa_node, 0) + 1
            sockets.setdefault(socket, set()).add(gpu.numa_node)
            sizes[socket] = sizes.get(socket, 0) + 1
        split = [size for socket, size in sizes.items() if len(sockets[socket]) > 1]
        too_small = max(nodes.values(), default=0) < count
        return "socket" if too_small and max(split, default=0) >= count else wish

    def satisfies(self, group: Sequence[Gpu], bound: Proximity) -> bool:
        """Whether a group is as close as ``bound``.

        NVLink between all pairs is closer than a node: with it the node matters for host
        threads only. Where the box does not tell, locality cannot be asked for, and is not:
        except for NVLink, which is there or is not.
        """
        if bound == "host" or len(group) == 1 or self.all_nvlink(group):
            return True
        if bound == "nvlink":
            return False
        shared = self.nodes(group)
        if bound == "socket" and not isinstance(shared, Unknown) and len(shared) > 1:
            shared = self.sockets(group)
        return isinstance(shared, Unknown) or len(shared) == 1


def _all_known(values: Iterable[int | Unknown]) -> frozenset[int] | Unknown:
    try:
        return frozenset(need(value) for value in values)
    except NotKnownError as error:
        return error.reason
