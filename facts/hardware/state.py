"""In which of the five states the accelerators are, and which cards do not answer.

No hardware, hardware without a driver, a broken driver, a bad card and a sound box must not be
read as each other: on a broken driver a running server still serves.
"""

from collections.abc import Sequence

from facts.hardware.cells import unknown
from facts.hardware.pci import Module, PciDevice
from facts.hardware.smitext import failure
from facts.sections import Section
from inventory.base import Unknown
from inventory.hardware import Accelerator, AcceleratorState, Gpu, Health

_SILENT = Unknown(unknown="the card does not answer")


def missing_gpus(
    gpus: Sequence[Gpu], devices: Sequence[PciDevice], module: Module, named: Sequence[str]
) -> tuple[Gpu, ...]:
    """The cards that PCI sees, or that an error names, and that have no row.

    + gpus: rows of nvidia-smi
    + devices: NVIDIA's PCI devices
    + module: what the loaded module knows about each card
    + named: bus ids in errors

    With rows beside it, a card without a row is lost, unless an administrator took it from
    the driver. Without any row nothing can be said about the health of one card.
    """
    rows = {gpu.bus_id for gpu in gpus}
    known = {gpu.bus_id: gpu for gpu in module.gpus}
    drivers = {device.bus_id: device.driver for device in devices}
    addresses = [*drivers, *(address for address in named if address not in drivers)]
    found = []
    for address in addresses:
        if address in rows:
            continue
        card, driver = known.get(address), drivers.get(address)
        health: Health = "unknown"
        reason = ""
        if card and card.excluded:
            health, reason = "excluded", "GPU Excluded: Yes"
        elif isinstance(driver, str) and driver != "nvidia":
            health, reason = "excluded", f"held by the kernel driver {driver}"
        elif address in named or gpus:
            health, reason = "lost", "seen on the PCI bus, not by nvidia-smi"
        found.append(
            Gpu(
                uuid=card.uuid if card and isinstance(card.uuid, str) else f"PCI-{address}",
                index=_SILENT,
                bus_id=address,
                name=card.name if card else _SILENT,
                memory_total=_SILENT,
                memory_used=_SILENT,
                memory_free=_SILENT,
                numa_node=_SILENT,
                health=health,
                health_reason=reason,
                mig_enabled=_SILENT,
                compute_mode=_SILENT,
                reset_pending=_SILENT,
            )
        )
    return tuple(found)


def state_of(
    answer: Section,
    gpus: Sequence[Gpu],
    devices: Sequence[PciDevice] | None,
    module: Module,
    others: Sequence[Accelerator],
) -> tuple[AcceleratorState, str]:
    """The state, and why it is not ``ok`` in the tool's words.

    + answer: the section of ``--query-gpu``
    + gpus: all cards, also those that do not answer
    + devices: NVIDIA's PCI devices; None where the PCI bus was not read
    + module: the loaded module
    + others: accelerators of other vendors
    """
    kind = failure(answer.rc, answer.lines)
    said = _said(answer)
    if kind == "none":
        return _working(gpus, said)
    if kind == "lost-device":
        return "degraded", said
    if kind == "hung":
        return "unknown", "nvidia-smi did not answer in time"
    if kind == "mismatch":
        return "driver-broken", f"{said} (loaded module: {_version(module)})"
    if kind in ("no-tool", "no-module", "no-devices"):
        return _absent(kind, said, devices, module, others)
    return "unknown", said or "nvidia-smi was not asked"


def _working(gpus: Sequence[Gpu], said: str) -> tuple[AcceleratorState, str]:
    if all(gpu.health in ("unknown", "excluded") for gpu in gpus):
        return "unknown", said or "nvidia-smi listed no GPU"
    bad = [gpu for gpu in gpus if gpu.health not in ("ok", "excluded")]
    if bad:
        return "degraded", "; ".join(f"{gpu.bus_id} {gpu.health}" for gpu in bad)
    return "ok", ""


def _absent(
    kind: str,
    said: str,
    devices: Sequence[PciDevice] | None,
    module: Module,
    others: Sequence[Accelerator],
) -> tuple[AcceleratorState, str]:
    reason = "nvidia-smi is not installed" if kind == "no-tool" else said
    if devices is None:
        return "unknown", f"{reason}; the PCI bus was not read"
    if not devices and others:
        names = ", ".join(sorted({other.vendor for other in others}))
        return "unknown", f"{len(others)} accelerators of {names}, none of NVIDIA"
    if not devices:
        return "no-hardware", reason
    bound = any(device.driver == "nvidia" for device in devices)
    if module.version is None or (kind == "no-devices" and not bound):
        return "no-driver", reason
    reason = f"{reason}; module {_version(module)} is loaded"
    return ("unknown" if kind == "no-tool" else "driver-broken"), reason


def _version(module: Module) -> str:
    return module.version if isinstance(module.version, str) else "unknown"


def _said(answer: Section) -> str:
    return unknown(" ".join(answer.lines[:3])).unknown if answer.text.strip() else ""
