"""Accelerators as the kernel sees them: PCI devices, and the NVIDIA module's own files."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from facts.hardware.cells import bus_id, number, read, unknown, word
from inventory.base import NOT_ASKED, Unknown

Vendor = Literal["nvidia", "amd", "habana"]
_VENDORS: dict[str, Vendor] = {"0x10de": "nvidia", "0x1002": "amd", "0x1da3": "habana"}
_DISPLAY = "0x0300"


@dataclass(frozen=True)
class PciDevice:
    """One accelerator in /sys/bus/pci/devices.

    + numa_node: Unknown where sysfs says -1, which means that firmware did not tell
    + driver: kernel driver that holds it; None when unbound
    + path: its place in the tree, /sys/devices/pci0000:15/…; empty when not told
    + iommu: type of its IOMMU group; none without one
    + memory: bytes, which only amdgpu tells here
    """

    bus_id: str
    vendor: Vendor
    display: bool
    numa_node: int | Unknown = NOT_ASKED
    driver: str | Unknown | None = NOT_ASKED
    path: str = ""
    iommu: str | Unknown = NOT_ASKED
    memory: int | Unknown = NOT_ASKED


def parse_pci(lines: Sequence[str]) -> tuple[PciDevice, ...]:
    """Read ``dev<TAB>address<TAB>key=value…`` lines, in bus order as they come."""
    found: dict[str, PciDevice] = {}
    for line in lines:
        head, *rest = line.split("\t")
        address = bus_id(rest[0]) if head == "dev" and rest else NOT_ASKED
        told = dict(pair.partition("=")[::2] for pair in rest[1:])
        vendor = _VENDORS.get(told.get("vendor", ""))
        if isinstance(address, str) and vendor is not None:
            found[address] = PciDevice(
                bus_id=address,
                vendor=vendor,
                display=told.get("class", "").startswith(_DISPLAY),
                numa_node=read(told, "numa_node", number),
                driver=(told["driver"] or None) if "driver" in told else NOT_ASKED,
                path=told.get("path", ""),
                iommu=read(told, "iommu", word),
                memory=read(told, "mem_info_vram_total", number),
            )
    return tuple(found.values())


_SWITCH_DEPTH = 2
"""Below one switch a card hangs on a downstream port: two steps under the upstream port."""


def link_by_path(a: str, b: str) -> str | Unknown:
    """PIX, PXB or PHB from two places in the PCI tree; Unknown below different root buses.

    The driver's matrix says more, but not when it is missing, and NVLink hides what it says.
    """
    one, two = _steps(a), _steps(b)
    if not one or not two or one[0] != two[0]:
        return Unknown(unknown="different PCI root buses" if one and two else "no PCI path")
    shared = 0
    while shared < min(len(one), len(two)) and one[shared] == two[shared]:
        shared += 1
    if shared == 1:
        return "PHB"
    return "PIX" if max(len(one), len(two)) - shared <= _SWITCH_DEPTH else "PXB"


def _steps(path: str) -> list[str]:
    _, found, tail = path.partition("/devices/pci")
    return tail.split("/") if found else []


@dataclass(frozen=True)
class ModuleGpu:
    """A card in /proc/driver/nvidia/gpus.

    + uuid: Unknown before the first use, when the module prints question marks
    + excluded: switched off by an administrator
    """

    bus_id: str
    name: str | Unknown = NOT_ASKED
    uuid: str | Unknown = NOT_ASKED
    excluded: bool = False


@dataclass(frozen=True)
class Module:
    """The loaded NVIDIA module, which answers also when its user space does not match."""

    version: str | Unknown | None = None
    gpus: tuple[ModuleGpu, ...] = ()


_INFORMATION = re.compile(r"\S*/driver/nvidia/gpus/[^/]+/information:([^:]+):(.*)")


def parse_module(lines: Sequence[str]) -> Module:
    """Read /proc/driver/nvidia: version None means that no module is loaded."""
    version: str | Unknown | None = None
    cards: list[dict[str, str]] = []
    for line in lines:
        if line.startswith("NVRM version:"):
            match = re.search(r"\s([0-9]{2,4}\.[0-9]{1,4}(\.[0-9]{1,4})?)\s", line + " ")
            version = match.group(1) if match else unknown(line)
        elif match := _INFORMATION.fullmatch(line):
            label, value = match.group(1).strip(), match.group(2).strip()
            if label == "Model" or not cards:
                cards.append({})
            cards[-1][label] = value
    found = [_module_gpu(card) for card in cards]
    return Module(version, tuple(gpu for gpu in found if gpu is not None))


def _module_gpu(card: Mapping[str, str]) -> ModuleGpu | None:
    address = bus_id(card.get("Bus Location", ""))
    if isinstance(address, Unknown):
        return None
    uuid = card.get("GPU UUID", "")
    return ModuleGpu(
        bus_id=address,
        name=word(card.get("Model", "")),
        uuid=uuid if re.fullmatch(r"GPU-[0-9A-Za-z-]+", uuid) else unknown(uuid),
        excluded=card.get("GPU Excluded") == "Yes",
    )
