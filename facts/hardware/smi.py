"""The answer of ``nvidia-smi --query-gpu``, one row a GPU."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from facts.hardware.cells import bus_id, flag, mebibytes, number, table, unknown, word
from inventory.base import NOT_ASKED, Unknown
from inventory.common import smi
from inventory.hardware import Gpu, Health

COLUMNS = (
    "index",
    "memory.reserved",
    "compute_cap",
    "addressing_mode",
    "remapped_rows.pending",
    "remapped_rows.failure",
    "gpu_recovery_action",
    "mig.mode.current",
    "uuid",
    "pci.bus_id",
    "pstate",
    "memory.total",
    "memory.used",
    "memory.free",
    "driver_version",
    "persistence_mode",
    "compute_mode",
    "pcie.link.width.current",
    "pcie.link.width.max",
    "name",
)
"""What probe/hardware.sh asks for, for an answer without a header."""

_UUID = re.compile(r"GPU-[0-9A-Za-z-]+")


@dataclass(frozen=True)
class SmiQuery:
    """The GPUs that answered.

    + gpus: rows, without NUMA nodes and MIG devices, which other tools tell
    + driver: version that the rows agree on
    + strays: lines that are not rows, e.g. that a device has no handle
    """

    gpus: tuple[Gpu, ...] = ()
    driver: str | Unknown = NOT_ASKED
    strays: tuple[str, ...] = ()


def parse_query(lines: Sequence[str], columns: Sequence[str] = COLUMNS) -> SmiQuery:
    """Read the rows of ``--query-gpu``, with or without header, with or without units."""
    read = table(lines, columns)
    gpus: dict[str, Gpu] = {}
    strays = list(read.strays)
    driver: str | Unknown = NOT_ASKED
    for row in read.rows:
        gpu = _gpu(row)
        if gpu is None:
            strays.append(", ".join(row.values()))
        elif gpu.uuid not in gpus:
            gpus[gpu.uuid] = gpu
            if isinstance(driver, Unknown):
                driver = word(row.get("driver_version", ""))
    return SmiQuery(tuple(gpus.values()), driver, tuple(strays))


def _gpu(row: Mapping[str, str]) -> Gpu | None:
    address = bus_id(row.get("pci.bus_id", ""))
    uuid = row.get("uuid", "")
    if not _UUID.fullmatch(uuid):
        if isinstance(address, Unknown):
            return None
        uuid = f"PCI-{address}"
    health, reason = _health(row)
    used, free = mebibytes(row.get("memory.used", "")), mebibytes(row.get("memory.free", ""))
    if health != "ok":
        # A dead card answers "0 MiB used": it would look the freest of all.
        used = free = unknown(reason)
    total = mebibytes(row.get("memory.total", ""))
    name = word(row.get("name", ""))
    unified = _unified(row, name)
    width = number(row.get("pcie.link.width.current", ""))
    width_max = number(row.get("pcie.link.width.max", ""))
    if unified:
        # Not behind PCIe: gen 1 x1 is a placeholder, and a total is a carve-out.
        width = width_max = Unknown(unknown="placeholder: the GPU is not behind PCIe")
        total = used = free = Unknown(unknown="shares the host's memory")
    return Gpu(
        uuid=uuid,
        index=number(row.get("index", "")),
        bus_id=address,
        name=name,
        memory_total=total,
        memory_used=used,
        memory_free=free,
        numa_node=NOT_ASKED,
        health=health,
        health_reason=reason,
        reset_pending=_pending(row),
        mig_enabled=_mig(row),
        unified_memory=unified,
        compute_mode=word(row.get("compute_mode", "")),
        compute_capability=_capability(row.get("compute_cap", "")),
        pcie_width_current=_lanes(width),
        pcie_width_max=_lanes(width_max),
        persistence_mode=flag(row.get("persistence_mode", "")),
    )


def _health(row: Mapping[str, str]) -> tuple[Health, str]:
    for column, cell in row.items():
        if column == "name":
            continue
        if "requires reset" in cell:
            return "reset-required", f"{column}: {cell}"
        if "is lost" in cell:
            return "lost", f"{column}: {cell}"
    if row.get("remapped_rows.failure") == "Yes":
        return "memory-failed", "remapped_rows.failure: Yes"
    action = row.get("gpu_recovery_action", "")
    if re.fullmatch(r"(GPU |Node )?(Reset|Reboot)", action):
        return "reset-required", f"gpu_recovery_action: {action}"
    return "ok", ""


def _pending(row: Mapping[str, str]) -> bool | Unknown:
    if row.get("gpu_recovery_action", "").startswith("Drain"):
        return True
    rows = [row[key] for key in ("remapped_rows.pending", "retired_pages.pending") if key in row]
    read = [value for value in map(flag, rows) if not isinstance(value, Unknown)]
    if read:
        return any(read)
    return unknown(rows[0]) if rows else NOT_ASKED


def _mig(row: Mapping[str, str]) -> bool | Unknown:
    """Whether MIG is on. [N/A] is a card that has no MIG, and an old driver has no such field."""
    cell = row.get("mig.mode.current", "[N/A]")
    found = smi.mig(cell)
    return unknown(cell) if found is None else found


def _unified(row: Mapping[str, str], name: str | Unknown) -> bool:
    if not isinstance(name, Unknown) and smi.is_integrated(name):
        return True
    return smi.is_absent(row.get("memory.total", "")) and row.get("addressing_mode") == "ATS"


def _capability(cell: str) -> str | Unknown:
    return cell if re.fullmatch(r"[0-9]{1,2}\.[0-9]", cell) else unknown(cell)


def _lanes(width: int | Unknown) -> int | Unknown:
    """A width of 0 is what a virtual machine shows for not knowing (nccl#1329)."""
    return Unknown(unknown="width 0") if width == 0 else width
