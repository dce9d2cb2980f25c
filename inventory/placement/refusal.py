"""Why no group of GPUs satisfies a placement: the four parts of the error."""

from collections.abc import Sequence

from inventory.base import known
from inventory.errors import PlacementError
from inventory.hardware import Gpu, Hardware
from inventory.placement.candidates import Search, Terms, gpu_users, is_own, who
from inventory.placement.explain import places
from inventory.placement.layout import BoxLayout
from inventory.placement.result import GpuUser, called, gib
from inventory.service import Placement, Proximity

_STATES = {
    "no-hardware": (
        "no NVIDIA GPU",
        "run this service on a box with GPUs, or set placement.gpus=0",
    ),
    "no-driver": (
        "NVIDIA GPUs without a loaded driver",
        "install the NVIDIA driver on the box and load it, then run again",
    ),
    "driver-broken": (
        "a driver that does not answer",
        "reboot the box, or reload the driver once nothing uses it; a server that runs now goes on "
        "serving until then",
    ),
    "unknown": ("GPUs that could not be read", "run nvidia-smi on the box and resolve its message"),
}
_WITHIN: dict[Proximity, str] = {
    "numa-node": "in one NUMA node",
    "socket": "on one socket",
    "nvlink": "with NVLink between every pair",
    "host": "anywhere on the box",
}

_WIDER: dict[Proximity, tuple[Proximity, ...]] = {
    "nvlink": ("numa-node", "socket"),
    "numa-node": ("socket",),
    "socket": (),
    "host": (),
}


def wanted(wish: Placement, memory_needed: int | None = None) -> str:
    """The placement in words."""
    each = "" if memory_needed is None else f" with {gib(memory_needed)} each"
    if wish.uuids:
        return f"the GPUs {', '.join(wish.uuids)}{each}"
    return f"{wish.gpus} GPUs {_WITHIN[wish.within]}{each}"


def not_readable(wish: Placement, hardware: Hardware) -> PlacementError:
    """The box is in a state in which no GPU can be chosen."""
    found, next_step = _STATES.get(hardware.state, _STATES["unknown"])
    return PlacementError(
        wanted=wanted(wish),
        found=f"{found}: {hardware.reason}" if hardware.reason else found,
        why="without knowing the GPUs, any choice could stop a service that works",
        next_step=next_step,
    )


def contradictory(wish: Placement, why: str) -> PlacementError:
    """The placement contradicts itself, or names what the box does not have."""
    return PlacementError(
        wanted=wanted(wish),
        found=why,
        why="a placement by name is followed exactly or not at all",
        next_step="correct placement.uuids and placement.gpus, or leave uuids out",
    )


def too_few(search: Search) -> PlacementError:
    """Fewer candidates than GPUs wanted: says who holds the others, or what is wrong with them."""
    wish, hardware, terms = search.wish, search.hardware, search.terms
    inside = wish.uuids or tuple(gpu.uuid for gpu in hardware.gpus)
    names = {gpu.uuid: called(gpu) for gpu in hardware.gpus}
    reasons = [f"{names[one.gpu]} {one.reason}" for one in search.rejected if one.gpu in inside]
    usable = sum(gpu.uuid in inside for gpu in search.candidates)
    others = [user for user in in_the_way(hardware, terms) if set(user.gpus) & set(inside)]
    found = f"{usable} of {len(inside)} GPUs can be taken; {'; '.join(reasons)}"
    if others:
        first = "; ".join(holds(user) for user in others)
        found = f"{first}; {found}"
    return PlacementError(
        wanted=wanted(wish, terms.memory_needed),
        found=found,
        why="services on one GPU take each other's memory, and a bad card stops the whole group",
        next_step=_make_room(others, wish),
    )


def in_the_way(hardware: Hardware, terms: Terms) -> tuple[GpuUser, ...]:
    """Who else holds GPUs of the box."""
    told = known(hardware.processes, ())
    return gpu_users([one for one in told if not is_own(one, terms.own)], hardware.gpus)


def holds(user: GpuUser) -> str:
    """``vllm-kimi-k25.service holds 6 GPUs (540.0 GiB) and must leave first``."""
    count = f"{len(user.gpus)} GPU{'' if len(user.gpus) == 1 else 's'}"
    name = who(user)
    detail = "" if name == user.process else f", {user.process}"
    return f"{name} holds {count} ({gib(user.memory)}{detail}) and must leave first"


def _make_room(others: Sequence[GpuUser], wish: Placement) -> str:
    units = [user.unit for user in others if isinstance(user.unit, str)]
    services = [unit for unit in units if unit.endswith(".service")]
    if services:
        return f"name {', '.join(services)} in replaces=[…], or stop it on the box"
    if others:
        return f"end {', '.join(who(user) for user in others)} on the box"
    if wish.uuids:
        return "name other GPUs in placement.uuids"
    return (
        "ask for fewer GPUs, repair the ones above, or, where only their use is unknown, name them "
        "in placement.uuids"
    )


def too_far_apart(search: Search, box: BoxLayout, bound: Proximity) -> PlacementError:
    """Enough candidates, but no group of them is close enough."""
    wish, candidates, terms = search.wish, search.candidates, search.terms
    best = _largest(box, candidates, bound)
    others = in_the_way(box.hardware, terms)
    held = "".join(f"; {holds(user)}" for user in others)
    names = {gpu.uuid: called(gpu) for gpu in box.hardware.gpus}
    bad = "".join(f"; {names[one.gpu]} {one.reason}" for one in search.rejected)
    wider = next(
        (within for within in _WIDER[bound] if _largest(box, candidates, within) >= wish.gpus),
        "host",
    )
    return PlacementError(
        wanted=wanted(wish, terms.memory_needed),
        found=f"{len(candidates)} free GPUs ({places(candidates)}), at most {best} "
        f"{_WITHIN[bound]}{held}{bad}",
        why="further apart, every all-reduce crosses a slower link than the placement allows",
        next_step=f'placement.within="{wider}", or placement.gpus={best} or fewer',
    )


def _largest(box: BoxLayout, candidates: Sequence[Gpu], bound: Proximity) -> int:
    """The size of the largest group that is close enough, grown from each GPU."""
    best = 0
    for first in candidates:
        group = [first]
        for gpu in candidates:
            if gpu is not first and box.satisfies([*group, gpu], bound):
                group.append(gpu)
        best = max(best, len(group))
    return best
