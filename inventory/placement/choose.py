"""The choice of GPUs, and whether memory and threads are bound to their NUMA nodes."""

from collections.abc import Iterable, Iterator, Sequence

from inventory.base import Unknown, known
from inventory.hardware import Gpu, Hardware
from inventory.placement import refusal
from inventory.placement.candidates import Search, Terms, full_name, gpu_users, is_own, search
from inventory.placement.explain import listed, places, reasons, warnings
from inventory.placement.layout import BoxLayout
from inventory.placement.ranking import groups, rank
from inventory.placement.result import Chosen, GpuUser, Rejected, gib
from inventory.service import Placement, Proximity

_FEWEST_NODES = 2


def place(
    wish: Placement,
    hardware: Hardware,
    *,
    own_units: Iterable[str] = (),
    keep: Sequence[str] = (),
    memory_needed: int | None = None,
) -> Chosen:
    """Choose the GPUs of a service.

    + wish: how many, how close, which by name
    + own_units: the service's unit and those that it replaces; their processes do not count,
      because they have left before the start. ``vllm`` is ``vllm.service``
    + keep: UUIDs of the placement in force; it is kept while it is still valid
    + memory_needed: bytes that each GPU must offer
    + raises: PlacementError, with who is in the way

    The answer depends on its arguments only, not on the order in which the box lists its
    GPUs; asked again with its own answer to keep, it gives the same answer.
    """
    if wish.gpus == 0 and not wish.uuids:
        return _on_the_cpu(hardware)
    if hardware.state not in ("ok", "degraded"):
        raise refusal.not_readable(wish, hardware)
    terms = Terms(frozenset(map(full_name, own_units)), memory_needed, wish.exclude, wish.uuids)
    found = search(wish, hardware, terms)
    box, candidates = BoxLayout(found.hardware), found.candidates
    if wish.uuids:
        group = _named(found)
        said = ["the placement names these GPUs", *reasons(box, group, candidates, "host", "host")]
        return _chosen(box, found, group, said)

    if len(candidates) < wish.gpus:
        raise refusal.too_few(found)
    bound = box.bound(wish.within, wish.gpus)
    near = [group for group in groups(box, candidates, wish.gpus) if box.satisfies(group, bound)]
    if not near:
        raise refusal.too_far_apart(found, box, bound)
    best = min(near, key=lambda group: rank(box, group, candidates))
    group, kept = _kept(box, best, candidates, keep, bound)
    said = [*reasons(box, group, candidates, wish.within, bound), *kept]
    return _chosen(box, found, group, said)


def _named(found: Search) -> tuple[Gpu, ...]:
    """The GPUs that the user named, all of them."""
    wish = found.wish
    present = [gpu.uuid for gpu in found.hardware.gpus]
    absent = [uuid for uuid in wish.uuids if uuid not in present]
    if absent:
        box = ", ".join(present) or "none"
        raise refusal.contradictory(wish, f"no GPU {', '.join(absent)} on the box; it has {box}")
    if len(wish.uuids) != wish.gpus:
        raise refusal.contradictory(
            wish, f"{len(wish.uuids)} GPUs by name, and placement.gpus={wish.gpus}"
        )
    group = tuple(gpu for gpu in found.candidates if gpu.uuid in wish.uuids)
    if len(group) < wish.gpus:
        raise refusal.too_few(found)
    return group


def _kept(
    box: BoxLayout,
    best: tuple[Gpu, ...],
    candidates: Sequence[Gpu],
    keep: Sequence[str],
    bound: Proximity,
) -> tuple[tuple[Gpu, ...], list[str]]:
    """The placement in force where it is still valid, else the best."""
    names = set(keep)
    before = tuple(gpu for gpu in candidates if gpu.uuid in names)
    if not names or before == best:
        return best, []
    if len(before) < len(names) or len(before) != len(best):
        return best, [f"the {len(names)} GPUs in use before cannot all be kept"]
    if not box.satisfies(before, bound):
        return best, ["the GPUs in use before are further apart than the placement allows"]
    return before, [f"kept as it was; chosen anew it would be {listed(best)}"]


def _chosen(box: BoxLayout, found: Search, group: Sequence[Gpu], said: Sequence[str]) -> Chosen:
    uuids = tuple(gpu.uuid for gpu in group)
    spare = [
        Rejected(
            gpu=gpu.uuid,
            reason=f"free and not needed, {places([gpu])}, {gib(gpu.memory_free)} free",
        )
        for gpu in found.candidates
        if gpu.uuid not in uuids
    ]
    order = {gpu.uuid: n for n, gpu in enumerate(box.hardware.gpus)}
    nodes, why = _binding(group, box.hardware)
    return Chosen(
        gpus=uuids,
        numa_nodes=tuple(gpu.numa_node for gpu in group),
        closeness=box.closeness(group),
        why=tuple(said),
        warnings=tuple(warnings(box, group, found.terms)),
        rejected=tuple(sorted((*found.rejected, *spare), key=lambda one: order[one.gpu])),
        held_by=_held(box.hardware, group, found.terms),
        environment={
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "CUDA_VISIBLE_DEVICES": ",".join(uuids),
        },
        numa_bind_nodes=nodes,
        numa_bind_reason=why,
    )


def _held(hardware: Hardware, group: Sequence[Gpu], terms: Terms) -> tuple[GpuUser, ...]:
    uuids = {gpu.uuid for gpu in group}
    told = known(hardware.processes, ())
    own = [process for process in told if is_own(process, terms.own) and process.gpu in uuids]
    return gpu_users(own, group)


def _on_the_cpu(hardware: Hardware) -> Chosen:
    nodes, why = _binding((), hardware)
    return Chosen(
        gpus=(),
        numa_nodes=(),
        closeness="cpu",
        why=("the placement asks for no GPU: served from the CPU",),
        environment={},
        numa_bind_nodes=nodes,
        numa_bind_reason=why,
    )


def _binding(group: Sequence[Gpu], hardware: Hardware) -> tuple[tuple[int, ...] | None, str]:
    """The nodes for vLLM's ``--numa-bind-nodes``, one a GPU in the order of CUDA_VISIBLE_DEVICES,
    or None; and why.

    Left to find the nodes itself, vLLM 0.32 stops on a box of one node. So the flag is given only
    together with the nodes, and only where binding was seen to work.
    """
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
