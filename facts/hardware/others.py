"""Accelerators of AMD and Habana. They are shown; nothing is placed on them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from facts.hardware.cells import NOT_ASKED, bus_id, mebibytes, number, unknown, word
from facts.hardware.csvtable import table
from facts.hardware.pci import PciDevice
from inventory.base import Unknown
from inventory.hardware import Accelerator


@dataclass(frozen=True)
class RocmTopology:
    """``rocm-smi --showtopo``.

    + links: (GPU, GPU) -> PCIE or XGMI. The matrix of hops is left out: it counts 1 for XGMI
      at any distance, 2 in a socket, 3 across (rocm-systems#5763), and no hops.
    + nodes: GPU number -> NUMA node
    """

    links: Mapping[tuple[int, int], str] = field(default_factory=dict)
    nodes: Mapping[int, int | Unknown] = field(default_factory=dict)


def parse_rocm(lines: Sequence[str]) -> RocmTopology | Unknown:
    """Read the link types and NUMA nodes; Unknown where rocm-smi printed an error."""
    links: dict[tuple[int, int], str] = {}
    nodes: dict[int, int | Unknown] = {}
    columns: list[int] = []
    title = ""
    for line in lines:
        if line.startswith("ERROR:"):
            return unknown(line)
        if match := re.fullmatch(r"=+ (.*?) =+", line.strip()):
            title, columns = match.group(1), []
        elif match := re.fullmatch(r"GPU\[([0-9]{1,4})\]\s*: \(Topology\) Numa Node: (\S+)", line):
            nodes[int(match.group(1))] = number(match.group(2))
        elif title.startswith("Link Type"):
            words = line.split()
            ids = [re.fullmatch(r"GPU([0-9]{1,4})", entry) for entry in words]
            if words and all(ids):
                columns = [int(match.group(1)) for match in ids if match]
            elif ids and ids[0] and len(words) == len(columns) + 1:
                row = int(ids[0].group(1))
                pairs = zip(columns, words[1:], strict=True)
                links.update({(row, column): cell for column, cell in pairs if column != row})
    return RocmTopology(links, nodes) if nodes or links else unknown("no topology")


def parse_amd(lines: Sequence[str]) -> tuple[Accelerator, ...]:
    """Read ``amd-smi static``, blocks of indented ``KEY: value``; CPU blocks are skipped."""
    found: list[Accelerator] = []
    block: dict[str, str] = {}
    kind = ""
    for line in (*lines, "END: 0"):
        key, _, value = line.strip().partition(":")
        if line[:1].strip():
            if kind == "GPU":
                found.extend(_amd(block))
            kind, block = key, {}
        else:
            block.setdefault(key, value.strip())
    return tuple(found)


def _amd(block: Mapping[str, str]) -> list[Accelerator]:
    address = bus_id(block.get("BDF", ""))
    if isinstance(address, Unknown):
        return []
    return [
        Accelerator(
            vendor="amd",
            bus_id=address,
            name=word(block.get("MARKET_NAME", "")),
            numa_node=number(block.get("NODE", "")),
            memory_total=mebibytes(block.get("SIZE", "")),
        )
    ]


@dataclass(frozen=True)
class HabanaDevice:
    """A row of hl-smi. ``module`` is what HABANA_VISIBLE_MODULES counts in, not ``index``."""

    index: int | Unknown
    module: int | Unknown
    accelerator: Accelerator


def parse_habana(lines: Sequence[str]) -> tuple[HabanaDevice, ...]:
    """Read ``hl-smi -Q … -f csv``. It does not tell the NUMA node: sysfs does."""
    found = []
    for row in table(lines).rows:
        address = bus_id(row.get("bus_id", ""))
        if isinstance(address, Unknown):
            continue
        found.append(
            HabanaDevice(
                index=number(row.get("index", "")),
                module=number(row.get("module_id", "")),
                accelerator=Accelerator(
                    vendor="habana",
                    bus_id=address,
                    name=word(row.get("name", "")),
                    memory_total=mebibytes(row.get("memory.total", "")),
                ),
            )
        )
    return tuple(found)


def accelerators(
    devices: Sequence[PciDevice], told: Sequence[Accelerator]
) -> tuple[Accelerator, ...]:
    """Join what PCI sees with what the vendors' tools told.

    A display device of AMD is a graphics card or part of the processor, and is left out.
    """
    by_address = {accelerator.bus_id: accelerator for accelerator in told}
    found = []
    for device in devices:
        if device.vendor == "nvidia" or (device.display and device.bus_id not in by_address):
            continue
        known = by_address.get(device.bus_id)
        node = device.numa_node
        found.append(
            Accelerator(
                vendor=device.vendor,
                bus_id=device.bus_id,
                name=known.name if known else NOT_ASKED,
                numa_node=known.numa_node if known and isinstance(node, Unknown) else node,
                memory_total=device.memory
                if isinstance(device.memory, int) or known is None
                else known.memory_total,
                driver=device.driver,
            )
        )
    return tuple(found)
