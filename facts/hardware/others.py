"""Accelerators of AMD and Habana. They are shown; nothing is placed on them."""

from collections.abc import Mapping, Sequence

from facts.hardware.cells import bus_id, mebibytes, number, table, word
from facts.hardware.pci import PciDevice
from inventory.base import NOT_ASKED, Unknown
from inventory.hardware import Accelerator


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


def parse_habana(lines: Sequence[str]) -> tuple[Accelerator, ...]:
    """Read ``hl-smi -Q … -f csv``. It does not tell the NUMA node: sysfs does."""
    rows = [(bus_id(row.get("bus_id", "")), row) for row in table(lines).rows]
    return tuple(
        Accelerator(
            vendor="habana",
            bus_id=address,
            name=word(row.get("name", "")),
            memory_total=mebibytes(row.get("memory.total", "")),
        )
        for address, row in rows
        if isinstance(address, str)
    )


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
