"""The part of sysfs that a probe reads, for a simulated box, as plain files in a folder.

Give the probe this folder instead of ``/sys``. Laid over the box's own ``/sys``, it would make
tools crash that compare it with the real CPUs (``lscpu``, and vLLM with it).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.lab.simulated.gpus.description import Box, Gpu, Node

LOCAL, REMOTE = 10, 32
"""Distances of a node to itself and to the other socket, as two-socket EPYC boards give them."""

NVIDIA = "0x10de"
CONTROLLER_3D = "0x030200"
BMC_GRAPHICS = {"vendor": "0x1a03", "class": "0x030000", "device": "0x2000", "numa_node": "0"}
"""The graphics of the management controller, which every server has and which is no GPU."""


def cpus(text: str) -> Iterator[int]:
    """The CPUs of a kernel list.

    >>> list(cpus("0-2,8"))
    [0, 1, 2, 8]
    """
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def ranges(numbers: Iterator[int]) -> str:
    """The kernel's list of some CPUs or nodes.

    >>> ranges(iter([0, 1, 2, 8]))
    '0-2,8'
    """
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(f"{a}-{b}" if a != b else f"{a}" for a, b in found)


def write_sysfs(folder: Path, box: Box) -> None:
    """Write the tree of a box: nodes, CPUs, PCI devices with their links."""
    system = folder / "devices" / "system"
    online = ranges(cpu for node in box.nodes for cpu in cpus(node.cpus))
    _write(system / "cpu" / "online", online)
    _write(system / "cpu" / "possible", online)
    node_list = ranges(node.id for node in box.nodes)
    _write(system / "node" / "online", node_list)
    _write(system / "node" / "has_cpu", ranges(node.id for node in box.nodes if node.cpus))
    _write(system / "node" / "has_memory", ranges(node.id for node in box.nodes if node.memory))
    for node in box.nodes:
        _write_node(system, box, node)
    for gpu in box.gpus:
        node = box.node(gpu)
        files = {
            "vendor": NVIDIA,
            "class": CONTROLLER_3D,
            "device": gpu.pci_device,
            "numa_node": str(gpu.node),
            "local_cpulist": node.cpus,
            "current_link_speed": "32.0 GT/s PCIe",
            "max_link_speed": "32.0 GT/s PCIe",
            "current_link_width": str(gpu.width),
            "max_link_width": str(gpu.width_max),
        }
        _write_device(folder, gpu.bus_id, _port(gpu), files, "nvidia")
    _write_device(folder, "0000:c3:00.0", "pci0000:c0/0000:c0:05.2", BMC_GRAPHICS, "ast")


def _write_node(system: Path, box: Box, node: Node) -> None:
    folder = system / "node" / f"node{node.id}"
    _write(folder / "cpulist", node.cpus)
    distances = [LOCAL if other.id == node.id else REMOTE for other in box.nodes]
    _write(folder / "distance", " ".join(map(str, distances)))
    _write(
        folder / "meminfo",
        f"Node {node.id} MemTotal:       {node.memory} kB\n"
        f"Node {node.id} MemFree:        {node.free} kB",
    )
    for cpu in cpus(node.cpus):
        # In life node*/cpu* are links to the CPU's own folder.
        topology = system / "cpu" / f"cpu{cpu}" / "topology"
        _write(topology / "physical_package_id", str(node.socket))
        link = folder / f"cpu{cpu}"
        if not link.is_symlink():
            link.symlink_to(f"../../cpu/cpu{cpu}")


def _port(gpu: Gpu) -> str:
    """Where a card hangs: a root port of its own below its PCI root."""
    root_bus = gpu.bridge.removeprefix("pci")
    slot = int(gpu.bus_id.split(":")[1], 16) % 32
    return f"{gpu.bridge}/{root_bus}:{slot:02x}.1"


def _write_device(folder: Path, bus_id: str, port: str, files: dict[str, str], driver: str) -> None:
    device = folder / "devices" / port / bus_id
    for name, value in files.items():
        _write(device / name, value)
    drivers = folder / "bus" / "pci" / "drivers" / driver
    drivers.mkdir(parents=True, exist_ok=True)
    devices = folder / "bus" / "pci" / "devices"
    devices.mkdir(parents=True, exist_ok=True)
    depth = len(Path(port).parts) + 2
    for link, target in (
        (devices / bus_id, f"../../../devices/{port}/{bus_id}"),
        (device / "driver", f"{'../' * depth}bus/pci/drivers/{driver}"),
    ):
        if not link.is_symlink():
            link.symlink_to(target)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")
