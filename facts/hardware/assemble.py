"""All sources together: one Hardware.

Tables are joined by UUID and bus id. Only the link matrix, which has nothing else, is joined by
nvidia-smi's index, within one read.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

from facts.hardware.cells import bus_order, unknown
from facts.hardware.host import Host, bindable, numactl_exists, parse_host
from facts.hardware.mig import ListedSlice, parse_list, parse_memory
from facts.hardware.numa import GpuSources, gpu_node, parse_numa
from facts.hardware.others import accelerators, parse_amd, parse_habana
from facts.hardware.pci import PciDevice, link_by_path, parse_module, parse_pci
from facts.hardware.processes import parse_processes
from facts.hardware.smi import SmiQuery, parse_query
from facts.hardware.smitext import lost_bus_ids, parse_versions
from facts.hardware.state import missing_gpus, state_of
from facts.hardware.topology import Affinity, Topology, parse_peers, parse_topology
from facts.sections import MISSING, Section
from inventory.base import NOT_ASKED, Unknown
from inventory.hardware import (
    Gpu,
    GpuProcess,
    GpuSlice,
    Hardware,
    Link,
    NumaNode,
)


def parse_hardware(found: Mapping[str, Section]) -> Hardware:
    """Read the hardware sections of the probe.

    + found: sections by name, from :func:`facts.sections.sections`; others are ignored

    Rows of ``--query-gpu`` count only when it ended with status 0: an answer that broke off is
    not the list of the GPUs.
    """

    def lines(name: str) -> Sequence[str]:
        return found.get(name, MISSING).lines

    answer = found.get("nv.full", MISSING)
    query = parse_query(answer.lines) if answer.rc == 0 else SmiQuery(strays=answer.lines)
    devices = parse_pci(lines("pci"))
    nvidia = tuple(device for device in devices if device.vendor == "nvidia")
    module = parse_module(lines("nvproc"))
    host = parse_host(lines("host"))
    nodes = parse_numa(lines("numa"))
    topology = parse_topology(lines("nv.topo"))
    processes = _processes(found)
    told = (*parse_amd(lines("amd.static")), *parse_habana(lines("hl.core")))
    other = accelerators(devices, told)
    pci_read = found.get("pci", MISSING).rc == 0

    rows = [_placed(gpu, nvidia, topology, nodes) for gpu in query.gpus]
    listed = parse_list(lines("nv.list"))
    slice_memory = parse_memory(found.get("nv.slices", MISSING).text)
    rows = [_with_slices(gpu, listed, slice_memory) for gpu in rows]
    rows = [_with_host_memory(gpu, host, processes) for gpu in rows]
    named = lost_bus_ids(query.strays)
    absent = missing_gpus(query.gpus, nvidia, module, named)
    absent = tuple(_placed(gpu, nvidia, topology, nodes) for gpu in absent)
    gpus = tuple(sorted((*rows, *absent), key=lambda gpu: (bus_order(gpu.bus_id), gpu.uuid)))
    state, reason = state_of(answer, gpus, nvidia if pci_read else None, module, other)
    versions = parse_versions(lines("nv.version"))
    return Hardware(
        state=state,
        reason=reason,
        gpus=gpus,
        accelerators=other,
        numa_nodes=nodes,
        links=_links(gpus, nvidia, topology, parse_peers(lines("nv.p2p"))),
        processes=processes,
        driver=query.driver if isinstance(query.driver, str) else versions.driver,
        kernel_driver=module.version or Unknown(unknown="no NVIDIA module in /proc"),
        cuda=versions.cuda,
        host_memory_total=host.memory_total,
        host_memory_available=host.memory_available,
        virtual_machine=host.virtual_machine,
        iommu_groups=host.iommu_groups,
        numactl=numactl_exists(found.get("numabind", MISSING)),
        bindable_nodes=bindable(found.get("numabind", MISSING)),
    )


def _processes(found: Mapping[str, Section]) -> tuple[GpuProcess, ...] | Unknown:
    apps = found.get("nv.apps", MISSING)
    if apps.rc is None:
        return NOT_ASKED
    if apps.rc != 0:
        return unknown(apps.text or f"status {apps.rc}")
    return parse_processes(apps.lines, found.get("nv.units", MISSING).lines)


def _placed(
    gpu: Gpu, devices: Sequence[PciDevice], topology: Topology, nodes: Sequence[NumaNode]
) -> Gpu:
    device = next((device for device in devices if device.bus_id == gpu.bus_id), None)
    affinity = topology.affinity.get(f"GPU{gpu.index}", Affinity())
    sources = GpuSources(
        sysfs=device.numa_node if device else NOT_ASKED, cpus=affinity.cpus, nodes=affinity.nodes
    )
    return gpu.model_copy(
        update={
            "numa_node": gpu_node(sources, nodes),
            "iommu": device.iommu if device else NOT_ASKED,
        }
    )


def _with_slices(
    gpu: Gpu,
    listed: Mapping[str, tuple[ListedSlice, ...]],
    memory: Mapping[tuple[str | Unknown, int], int | Unknown],
) -> Gpu:
    slices = tuple(
        GpuSlice(
            uuid=part.uuid,
            profile=part.profile,
            memory_total=memory.get((gpu.bus_id, part.number), NOT_ASKED),
        )
        for part in listed.get(gpu.uuid, ())
    )
    return gpu.model_copy(update={"slices": slices}) if slices else gpu


def _with_host_memory(gpu: Gpu, host: Host, processes: tuple[GpuProcess, ...] | Unknown) -> Gpu:
    """For a GPU without memory of its own: the host's, and what processes hold of it."""
    if not gpu.unified_memory:
        return gpu
    return gpu.model_copy(
        update={
            "memory_total": host.memory_total,
            "memory_free": host.unified_available if gpu.health == "ok" else gpu.memory_free,
            "memory_used": _held(gpu.uuid, processes),
        }
    )


def _held(uuid: str, processes: tuple[GpuProcess, ...] | Unknown) -> int | Unknown:
    """What processes hold of one GPU, in bytes; Unknown where one of them does not tell."""
    if isinstance(processes, Unknown):
        return processes
    total = 0
    for process in processes:
        if process.gpu == uuid or isinstance(process.gpu, Unknown):
            if isinstance(process.memory, Unknown):
                return process.memory
            total += process.memory
    return total


def _links(
    gpus: Sequence[Gpu],
    devices: Sequence[PciDevice],
    topology: Topology,
    peers: Mapping[tuple[str, str], bool | Unknown],
) -> tuple[Link, ...]:
    paths = {device.bus_id: device.path for device in devices}
    links = []
    for a, b in combinations(gpus, 2):
        one, two = f"GPU{a.index}", f"GPU{b.index}"
        kind = topology.link(one, two)
        if isinstance(kind, Unknown):
            by_path = link_by_path(_path(a, paths), _path(b, paths))
            kind = by_path if isinstance(by_path, str) else kind
        there, back = peers.get((one, two), NOT_ASKED), peers.get((two, one), NOT_ASKED)
        p2p = there if there == back else unknown("the two directions differ")
        links.append(Link(a=a.uuid, b=b.uuid, kind=kind, p2p=p2p))
    return tuple(links)


def _path(gpu: Gpu, paths: Mapping[str, str]) -> str:
    return "" if isinstance(gpu.bus_id, Unknown) else paths.get(gpu.bus_id, "")
