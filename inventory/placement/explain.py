"""Why these GPUs, and what to know about them: sentences with numbers."""

from collections import Counter
from collections.abc import Sequence

from inventory.base import Unknown, known
from inventory.hardware import Gpu, Hardware
from inventory.placement.candidates import Terms, uses
from inventory.placement.layout import BoxLayout, is_nvlink
from inventory.placement.ranking import is_mixed, kind_of, narrow
from inventory.placement.result import Closeness, called, gib
from inventory.service import Proximity

_SHARED: dict[Closeness, str] = {
    "cpu": "no GPU",
    "nvlink": "NVLink between every pair",
    "numa-node": "one NUMA node",
    "socket": "one socket",
    "host": "several sockets",
    "unknown": "an unknown locality",
}


def listed(gpus: Sequence[Gpu]) -> str:
    """Several GPUs in a sentence."""
    return ", ".join(called(gpu) for gpu in gpus)


def places(group: Sequence[Gpu]) -> str:
    """How many GPUs are on which node: ``4 on NUMA node 0``."""
    counts = Counter(
        "an unknown node" if isinstance(gpu.numa_node, Unknown) else f"NUMA node {gpu.numa_node}"
        for gpu in group
    )
    return ", ".join(f"{count} on {node}" for node, count in sorted(counts.items()))


def reasons(
    box: BoxLayout,
    group: Sequence[Gpu],
    candidates: Sequence[Gpu],
    wish: Proximity,
    bound: Proximity,
) -> list[str]:
    """Why a group was taken."""
    shared = _SHARED[box.closeness(group)]
    said = [
        f"{len(group)} of {len(candidates)} free GPUs: {listed(group)}; they share {shared} "
        f"({places(group)})"
    ]
    if bound != wish:
        said.append(
            f"no NUMA node of this box has {len(group)} GPUs because its sockets are split (SNC or "
            f"NPS), so one socket was asked for"
        )
    links = Counter(known(link.kind, "unknown") for link in box.pairs(group))
    if links:
        told = ", ".join(f"{count} x {kind}" for kind, count in sorted(links.items()))
        peers = Counter(link.p2p is True for link in box.pairs(group))
        said.append(f"links of the {links.total()} pairs: {told}; peer access on {peers[True]}")
    if bound == "host" and box.closeness(group) == "host" and len(group) > 1:
        refused = any(link.p2p is False for link in box.pairs(group))
        if refused and not box.shared_uplinks(group):
            said.append(
                "without peer access, GPUs below one switch share its uplink twice, so they are "
                "spread"
            )
    return said


def warnings(box: BoxLayout, group: Sequence[Gpu], terms: Terms) -> list[str]:
    """What may go wrong or be slow with a group. A warning does not stop a run."""
    found = [
        *_locality(box, group),
        *_peers(box, group),
        *_cards(box, group),
        *_unsure(box.hardware, group, terms),
    ]
    known = {gpu.uuid for gpu in box.hardware.gpus}
    found.extend(
        f"exclude names {uuid}, which this box does not have"
        for uuid in terms.exclude
        if uuid not in known
    )
    return found


def _locality(box: BoxLayout, group: Sequence[Gpu]) -> list[str]:
    found = []
    closeness = box.closeness(group)
    if closeness == "unknown" and len(group) > 1:
        found.append("locality is unknown: the box does not tell where its GPUs are")
    elif box.hardware.virtual_machine is True and len(group) > 1:
        found.append("inside a virtual machine: NUMA nodes and links may not be those of the host")
    if closeness == "host":
        per = Counter(str(box.socket(gpu)) for gpu in group)
        text = f"the GPUs are on {len(per)} sockets: traffic between them crosses the CPU link"
        sizes = set(per.values())
        if len(sizes) == 1 and (size := sizes.pop()) > 1:
            text += (
                f"; --tensor-parallel-size {size} --pipeline-parallel-size {len(per)} keeps it "
                f"inside a socket"
            )
        found.append(text)
    return found


def _peers(box: BoxLayout, group: Sequence[Gpu]) -> list[str]:
    found = []
    pairs = list(box.pairs(group))
    refused = sum(link.p2p is False for link in pairs)
    if refused:
        found.append(
            f"the driver refuses peer access for {refused} of {len(pairs)} pairs: their traffic "
            f"goes through host memory"
        )
    if shared := box.shared_uplinks(group):
        found.append(f"{shared} of these pairs share one PCIe switch, and its uplink twice")
    over_pcie = any(link.p2p is True and not is_nvlink(link.kind) for link in pairs)
    groups = box.hardware.iommu_groups
    if over_pcie and isinstance(groups, int) and groups > 0:
        types = sorted({known(gpu.iommu, "unknown") for gpu in group})
        found.append(
            f"the IOMMU is on ({groups} groups, type {', '.join(types)}): peer access over PCIe is "
            f"said to work and may hang (vllm#51513, nccl#1999). If the start hangs: "
            f"NCCL_P2P_DISABLE=1 and --disable-custom-all-reduce"
        )
    return found


def _cards(box: BoxLayout, group: Sequence[Gpu]) -> list[str]:
    found = []
    if is_mixed(group):
        kinds = Counter(kind_of(gpu)[0] for gpu in group)
        least = [gpu.memory_total for gpu in group if isinstance(gpu.memory_total, int)]
        found.append(
            f"different cards ({', '.join(f'{n} x {kind}' for kind, n in sorted(kinds.items()))}): "
            f"each counts with the memory of the smallest, {gib(min(least)) if least else '?'}, "
            f"and the speed of the slowest"
        )
    found.extend(
        f"{called(gpu)} runs on {gpu.pcie_width_current} of {gpu.pcie_width_max} PCIe lanes, "
        f"which limits the group"
        for gpu in group
        if narrow(gpu)
    )
    found.extend(
        f"{called(gpu)} works and asks for a reset" for gpu in group if gpu.reset_pending is True
    )
    if any(gpu.unified_memory for gpu in group):
        found.append("GPU memory is the host's: whatever runs on the host takes from it")
    sound = [gpu for gpu in box.hardware.gpus if gpu.health == "ok"]
    without = [gpu for gpu in sound if not box.has_nvlink(gpu)]
    if 0 < len(without) < len(sound) / 2:
        found.append(f"no NVLink on {listed(without)}, though the others have it: look after it")
    if box.hardware.state == "degraded":
        found.append(f"the box is degraded: {box.hardware.reason}")
    return found


def _unsure(hardware: Hardware, group: Sequence[Gpu], terms: Terms) -> list[str]:
    found = []
    for gpu in group:
        told = uses(gpu, hardware, terms.own).unknown
        if not told and isinstance(gpu.memory_used, Unknown):
            told = gpu.memory_used.unknown
        if told and not uses(gpu, hardware, terms.own).own:
            found.append(f"{called(gpu)} was named, so it is taken; its use is unknown: {told}")
    return found
