"""The recorded samples, and hand-made boxes in the probe's own form."""

from __future__ import annotations

from pathlib import Path

from facts.hardware.smi import COLUMNS
from facts.sections import Section

FIXTURES = Path(__file__).parents[2] / "fixtures"


def sample(name: str, folder: str = "gpu") -> tuple[str, ...]:
    """The lines of one sample. Bytes that are not ASCII are dropped, as the probe drops them."""
    raw = (FIXTURES / folder / name).read_bytes()
    return tuple(raw.decode("ascii", errors="ignore").split("\n"))


def body(*lines: str, rc: int = 0) -> Section:
    """A section."""
    return Section(rc=rc, lines=lines)


def row(n: int, bus: str, **cells: str) -> str:
    """One row of --query-gpu in the probe's column order; cells by name with _ for the dot."""
    told = {
        "index": str(n),
        "memory.reserved": "600",
        "compute_cap": "12.0",
        "addressing_mode": "None",
        "remapped_rows.pending": "No",
        "remapped_rows.failure": "No",
        "gpu_recovery_action": "None",
        "mig.mode.current": "Disabled",
        "uuid": f"GPU-{n}",
        "pci.bus_id": f"00000000:{bus}:00.0",
        "pstate": "P8",
        "memory.total": "97887",
        "memory.used": "0",
        "memory.free": "97287",
        "driver_version": "590.48.01",
        "persistence_mode": "Enabled",
        "compute_mode": "Default",
        "pcie.link.width.current": "16",
        "pcie.link.width.max": "16",
        "name": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
    }
    told.update({key.replace("__", "."): cell for key, cell in cells.items()})
    return ", ".join(told[column] for column in COLUMNS)


def pci(*cards: str, driver: str = "nvidia", node: int = 0) -> Section:
    """The PCI section of NVIDIA cards."""
    return body(
        *(
            f"dev\t{card}\tvendor=0x10de\tclass=0x030200\tnuma_node={node}\tdriver={driver}"
            for card in cards
        )
    )


TWO_NODES = body(
    "/sys/devices/system/node/online:0-1",
    "/sys/devices/system/node/node0/cpulist:0-31,64-95",
    "/sys/devices/system/node/node0/distance:10 32",
    "/sys/devices/system/node/node1/cpulist:32-63,96-127",
    "/sys/devices/system/node/node1/distance:32 10",
)
