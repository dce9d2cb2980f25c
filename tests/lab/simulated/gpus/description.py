"""What a simulated box is made of, and where its files are.

The default is eight RTX PRO 6000 Blackwell on two NUMA nodes, PCIe only. Memory of GPUs is in
MiB as nvidia-smi counts, memory of nodes in KiB as sysfs does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

DESCRIPTION = "opt/simulated/box.json"
BOOKS = "dev/simulated-gpus"
"""Below /dev: a unit with ProtectSystem=strict may write there, and one with PrivateDevices=yes
does not see it, which is how real GPUs behave. Gone after a reboot, as GPU memory is."""
MODE = f"{BOOKS}/mode.json"
SYSFS = "opt/simulated/sys"

MIB = 1024 * 1024


@dataclass(frozen=True)
class Gpu:
    """One card.

    + bus_id: PCI address as sysfs writes it
    + bridge: the PCI root that it hangs on; two cards on one root are a PHB link apart
    + memory_reserved: MiB that the driver keeps; CUDA sees the total without it
    """

    uuid: str
    bus_id: str
    node: int
    bridge: str
    name: str = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
    memory_total: int = 97887
    memory_reserved: int = 640
    compute_cap: str = "12.0"
    pci_device: str = "0x2bb5"
    width: int = 16
    width_max: int = 16


@dataclass(frozen=True)
class Node:
    """One NUMA node."""

    id: int
    cpus: str
    socket: int
    memory: int = 768 * 1024 * 1024
    free: int = 700 * 1024 * 1024


@dataclass(frozen=True)
class Box:
    """A machine.

    + links: overrides of the link word of a pair, ``{"0-1": "NV18"}``, lower index first
    + p2p: word of every pair in ``topo -p2p r``
    + release_seconds: how long GPU memory stays taken after its process is gone
    + unknown_fields: fields of --query-gpu that this driver does not have
    """

    gpus: tuple[Gpu, ...]
    nodes: tuple[Node, ...]
    driver: str = "580.159.04"
    cuda: str = "13.0"
    links: dict[str, str] = field(default_factory=dict)
    p2p: str = "OK"
    persistence: bool = True
    release_seconds: float = 2.0
    unknown_fields: tuple[str, ...] = ()

    def link(self, a: int, b: int) -> str:
        """The link word between two cards, by index."""
        one, other = self.gpus[a], self.gpus[b]
        word = self.links.get(f"{min(a, b)}-{max(a, b)}")
        if word is not None:
            return word
        if one.bridge == other.bridge:
            return "PHB"
        return "NODE" if one.node == other.node else "SYS"

    def node(self, gpu: Gpu) -> Node:
        """The node that a card is attached to."""
        return next(node for node in self.nodes if node.id == gpu.node)

    def visible(self, selection: str | None) -> tuple[Gpu, ...]:
        """The cards that a value of CUDA_VISIBLE_DEVICES leaves, in its order.

        + selection: indexes or UUIDs, comma separated; None for all. As in CUDA, the list ends
          at the first word that names no card, and a UUID may be shortened.
        """
        if selection is None:
            return self.gpus
        found = []
        for word in selection.split(","):
            text = word.strip()
            match = [
                gpu
                for index, gpu in enumerate(self.gpus)
                if text == str(index) or (text.startswith("GPU-") and gpu.uuid.startswith(text))
            ]
            if len(match) != 1:
                break
            found.append(match[0])
        return tuple(found)

    def to_json(self) -> str:
        """The description as text, for the box."""
        return json.dumps(asdict(self), indent=1) + "\n"


def box_from_json(text: str) -> Box:
    """Read a description. A card or node may leave out what has a default."""
    fields: dict[str, Any] = json.loads(text)
    fields["gpus"] = tuple(Gpu(**gpu) for gpu in fields["gpus"])
    fields["nodes"] = tuple(Node(**node) for node in fields["nodes"])
    fields["unknown_fields"] = tuple(fields.get("unknown_fields", ()))
    return Box(**fields)


BRIDGES: Sequence[tuple[int, str, tuple[str, ...]]] = (
    (0, "pci0000:00", ("0000:01:00.0", "0000:02:00.0")),
    (0, "pci0000:20", ("0000:21:00.0", "0000:22:00.0")),
    (1, "pci0000:80", ("0000:81:00.0", "0000:82:00.0")),
    (1, "pci0000:a0", ("0000:a1:00.0", "0000:a2:00.0")),
)
"""Node, PCI root and addresses of the default box: two cards a root, two roots a node."""


def eight_gpus() -> Box:
    """The default box: 8 x RTX PRO 6000 (97,887 MiB), two sockets, four cards each."""
    gpus = [
        Gpu(uuid="", bus_id=address, node=node, bridge=bridge)
        for node, bridge, addresses in BRIDGES
        for address in addresses
    ]
    named = (
        Gpu(**{**asdict(gpu), "uuid": f"GPU-{n:08x}-5107-4b0c-8000-{n:012x}"})
        for n, gpu in enumerate(gpus)
    )
    nodes = (Node(0, "0-31,64-95", 0), Node(1, "32-63,96-127", 1))
    return Box(gpus=tuple(named), nodes=nodes)


def root() -> Path:
    """The folder that stands for ``/``. Another one only where the box is not booted."""
    return Path(os.environ.get("SIMULATED_ROOT") or "/")


def read_box() -> Box | None:
    """The description of this box; None on a box without simulated GPUs."""
    try:
        return box_from_json((root() / DESCRIPTION).read_text())
    except FileNotFoundError:
        return None
