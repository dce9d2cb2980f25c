"""The fields of ``nvidia-smi --query-gpu`` and what a simulated card answers.

The names are those that driver 580 lists (``--help-query-gpu``); a field without an entry in
ANSWERS is known and not supported, as most are on any one card.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .description import Box, Gpu

ALIASES = {
    "gpu_name": "name",
    "gpu_serial": "serial",
    "gpu_uuid": "uuid",
    "gpu_bus_id": "pci.bus_id",
    "clocks.gr": "clocks.current.graphics",
    "clocks.sm": "clocks.current.sm",
    "clocks.mem": "clocks.current.memory",
}
_NOT_SUPPORTED = """
    accounting.mode c2c.mode clocks.current.graphics clocks.current.memory
    clocks.current.sm clocks.max.graphics clocks.max.memory clocks.max.sm
    clocks_event_reasons.active clocks_event_reasons.hw_slowdown
    clocks_event_reasons.hw_thermal_slowdown clocks_event_reasons.sw_power_cap display_active
    display_attached display_mode driver_model.current ecc.errors.corrected.volatile.total
    ecc.errors.uncorrected.volatile.total ecc.mode.pending encoder.stats.sessionCount
    enforced.power.limit fabric.state fabric.status fan.speed gom.current gsp.mode.current
    inforom.ecc inforom.img mig.mode.pending pcie.link.gen.gpucurrent pcie.link.gen.gpumax
    pcie.link.gen.hostmax pci.device_id pci.domain pci.bus pci.device pci.sub_device_id
    platform.module_id platform.slot_number power.default_limit power.draw.average
    power.draw.instant power.management power.max_limit power.min_limit
    remapped_rows.correctable remapped_rows.uncorrectable retired_pages.dbe
    retired_pages.pending retired_pages.sbe serial temperature.gpu.tlimit temperature.memory
    utilization.decoder utilization.encoder utilization.memory vbios_version
"""
NOT_SUPPORTED = frozenset(_NOT_SUPPORTED.split())
UNITS: Mapping[str, str] = {
    "memory.": "MiB",
    "utilization.": "%",
    "power.draw": "W",
    "power.limit": "W",
    "clocks.current.": "MHz",
    "clocks.max.": "MHz",
}


@dataclass(frozen=True)
class Reading:
    """One card at one moment. Memory in MiB."""

    box: Box
    gpu: Gpu
    index: int
    used: int

    @property
    def busy(self) -> bool:
        """Whether anything runs on it."""
        return self.used > 0


ANSWERS: Mapping[str, Callable[[Reading], str]] = {
    "timestamp": lambda _: time.strftime("%Y/%m/%d %H:%M:%S.000"),
    "driver_version": lambda r: r.box.driver,
    "count": lambda r: str(len(r.box.gpus)),
    "name": lambda r: r.gpu.name,
    "uuid": lambda r: r.gpu.uuid,
    "pci.bus_id": lambda r: long_bus_id(r.gpu.bus_id),
    "index": lambda r: str(r.index),
    "pstate": lambda r: "P0" if r.busy else "P8",
    "memory.total": lambda r: str(r.gpu.memory_total),
    "memory.reserved": lambda r: str(r.gpu.memory_reserved),
    "memory.used": lambda r: str(r.used),
    "memory.free": lambda r: str(r.gpu.memory_total - r.gpu.memory_reserved - r.used),
    "persistence_mode": lambda r: "Enabled" if r.box.persistence else "Disabled",
    "compute_mode": lambda _: "Default",
    "compute_cap": lambda r: r.gpu.compute_cap,
    "mig.mode.current": lambda _: "Disabled",
    "ecc.mode.current": lambda _: "Enabled",
    "addressing_mode": lambda _: "HMM",
    "gpu_recovery_action": lambda _: "None",
    "remapped_rows.pending": lambda _: "No",
    "remapped_rows.failure": lambda _: "No",
    "pcie.link.gen.current": lambda r: "5" if r.busy else "1",
    "pcie.link.gen.max": lambda _: "5",
    "pcie.link.width.current": lambda r: str(r.gpu.width),
    "pcie.link.width.max": lambda r: str(r.gpu.width_max),
    "temperature.gpu": lambda r: "52" if r.busy else "31",
    "utilization.gpu": lambda _: "0",
    "power.draw": lambda r: "85.40" if r.busy else "31.20",
    "power.limit": lambda _: "600.00",
}
KNOWN = NOT_SUPPORTED | ANSWERS.keys() | ALIASES.keys()


def long_bus_id(bus_id: str) -> str:
    """A PCI address as nvidia-smi prints it: eight digits of domain, upper case.

    >>> long_bus_id("0000:a1:00.0")
    '00000000:A1:00.0'
    """
    domain, _, rest = bus_id.partition(":")
    return f"{domain:0>8}:{rest}".upper()


def unit(field: str) -> str:
    """The unit of a field; empty where it has none."""
    return next((word for prefix, word in UNITS.items() if field.startswith(prefix)), "")


def answer(field: str, reading: Reading, with_unit: bool) -> str:
    """A card's cell for one field.

    + with_unit: False for ``nounits``
    """
    name = ALIASES.get(field, field)
    if name not in ANSWERS:
        return "[N/A]"
    text = ANSWERS[name](reading)
    return f"{text} {unit(name)}".rstrip() if with_unit else text
