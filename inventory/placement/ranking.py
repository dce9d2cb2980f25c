"""Which of the possible groups is the best."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb

from inventory.base import Unknown, known
from inventory.hardware import Gpu, Link
from inventory.placement.layout import PCIE, BoxLayout, is_nvlink

_MOST_GROUPS = 6000
"""Up to this many groups all are weighed (4 of 16 are 1,820, 8 of 16 are 12,870)."""

_TIERS = {"nvlink": 0, "numa-node": 1, "socket": 2, "host": 4, "unknown": 5}
_BELOW_ONE_BRIDGE = 3
"""Below one host bridge, where the node is not told: behind the socket, before the rest."""

Preference = tuple[object, ...]


def groups(box: BoxLayout, candidates: Sequence[Gpu], count: int) -> Iterator[tuple[Gpu, ...]]:
    """The groups to weigh, each in bus order.

    All of them if they are few. On larger boxes those inside each neighbourhood (an
    NVLink island, a node, a socket, like cards, all), each neighbourhood from its start.
    """
    if comb(len(candidates), count) <= _MOST_GROUPS:
        yield from combinations(candidates, count)
        return
    by_place = sorted(candidates, key=_node_key)
    order = {gpu.uuid: n for n, gpu in enumerate(candidates)}
    seen = set()
    for pool in _neighbourhoods(box, by_place):
        if len(pool) < count:
            continue
        for start in range(len(pool) - count + 1):
            group = tuple(sorted(pool[start : start + count], key=lambda gpu: order[gpu.uuid]))
            names = tuple(gpu.uuid for gpu in group)
            if names not in seen:
                seen.add(names)
                yield group


def _neighbourhoods(box: BoxLayout, gpus: Sequence[Gpu]) -> Iterator[list[Gpu]]:
    for gpu in gpus:
        island = [gpu]
        for other in gpus:
            if other is not gpu and box.all_nvlink([*island, other]):
                island.append(other)
        yield sorted(island, key=gpus.index)
    for key in (_node_key, lambda gpu: str(box.socket(gpu)), kind_of):
        pools: dict[object, list[Gpu]] = {}
        for gpu in gpus:
            pools.setdefault(key(gpu), []).append(gpu)
        yield from pools.values()
    yield list(gpus)


def kind_of(gpu: Gpu) -> tuple[str, int]:
    """What makes two cards alike: product and memory. A card of unknown kind is its own."""
    return known(gpu.name, f"unknown {gpu.uuid}"), known(gpu.memory_total, -1)


def is_mixed(group: Sequence[Gpu]) -> bool:
    """Whether the cards of a group differ in product or memory."""
    return len({kind_of(gpu) for gpu in group}) > 1


def rank(box: BoxLayout, group: Sequence[Gpu], candidates: Sequence[Gpu]) -> Preference:
    """The lower, the better. In this order:

    1. like cards: a mixed group has the memory of its smallest card and the speed of its slowest
    2. NVLink between all pairs
    3. without peer access, few pairs below one PCIe switch
    4. one node, one socket, one host bridge, several sockets, not told
    5. few nodes: among groups with NVLink, and across sockets
    6. with peer access, short PCIe paths
    7. full PCIe width, and no card that asks for a reset
    8. what is left over stays useful: large groups of like cards close together
    9. the lower node, then the lower bus id
    """
    pairs = list(box.pairs(group))
    chosen = {gpu.uuid for gpu in group}
    nvlink = box.all_nvlink(group)
    nodes = box.nodes(group)
    tier = _TIERS[box.closeness(group)]
    if tier == _TIERS["unknown"] and box.one_bridge(group):
        tier = _BELOW_ONE_BRIDGE
    return (
        is_mixed(group),
        not nvlink,
        box.shared_uplinks(group),
        tier,
        len(group) if isinstance(nodes, Unknown) else len(nodes),
        _path_length(pairs),
        sum(map(narrow, group)) + sum(gpu.reset_pending is True for gpu in group),
        _left_over(box, [gpu for gpu in candidates if gpu.uuid not in chosen]),
        tuple(sorted(map(_node_key, group))),
        tuple(n for n, gpu in enumerate(candidates) if gpu.uuid in chosen),
    )


def narrow(gpu: Gpu) -> bool:
    """Whether a card has fewer PCIe lanes than it could have. Idle cards keep their width."""
    now, most = gpu.pcie_width_current, gpu.pcie_width_max
    return isinstance(now, int) and isinstance(most, int) and now < most


def _path_length(pairs: Sequence[Link]) -> int:
    """How far the pairs are over PCIe; equal for all where peer access is not certain."""
    if not all(link.p2p is True for link in pairs):
        return 0
    steps = {kind: n for n, kind in enumerate(PCIE)}
    return sum(
        len(PCIE) if isinstance(link.kind, Unknown) else steps.get(link.kind, 0) for link in pairs
    )


def _left_over(box: BoxLayout, rest: Sequence[Gpu]) -> tuple[int, ...]:
    """Sizes of what stays together, largest first, negated: large ones rank first."""
    linked = _linked(box, rest)
    sizes = Counter((linked[gpu.uuid], _node_key(gpu), kind_of(gpu)) for gpu in rest)
    return tuple(sorted(-size for size in sizes.values()))


def _linked(box: BoxLayout, gpus: Sequence[Gpu]) -> dict[str, str]:
    """A name for each set of GPUs that NVLink joins: its first member's. Without NVLink none."""
    names = {gpu.uuid: gpu.uuid for gpu in gpus}
    for link in box.pairs(gpus):
        if is_nvlink(link.kind):
            old, new = names[link.b], names[link.a]
            names = {uuid: new if name == old else name for uuid, name in names.items()}
    members = Counter(names.values())
    return {uuid: name if members[name] > 1 else "" for uuid, name in names.items()}


def _node_key(gpu: Gpu) -> tuple[bool, int]:
    """Nodes by number, unknown ones last."""
    return isinstance(gpu.numa_node, Unknown), known(gpu.numa_node, 0)
