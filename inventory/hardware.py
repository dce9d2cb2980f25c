"""The hardware of a box, in the terms in which a placement is reasoned about.

Memory is in bytes. GPUs are told apart by UUID and ordered by PCI bus id. A field that the
box did not tell is :class:`~inventory.base.Unknown`, with the box's word for it.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from inventory.base import Frozen, Unknown

Health = Literal["ok", "reset-required", "lost", "excluded"]
"""``ok``; needs a reset before use; fallen off the bus; switched off by an administrator."""

AcceleratorState = Literal["ok", "degraded", "no-hardware", "no-driver", "driver-broken", "unknown"]
"""The five states that must not be read as each other, and not knowing.

``degraded`` is a working driver with at least one GPU that does not answer.
"""


class Gpu(Frozen):
    """One physical GPU."""

    uuid: str = Field(description="NVML UUID, e.g. GPU-1111…; the identity of the card")
    index: int | Unknown = Field(description="nvidia-smi index: for display, never for selection")
    bus_id: str | Unknown = Field(description="PCI address as sysfs writes it: 0000:3b:00.0")
    name: str | Unknown = Field(description="full product name")
    memory_total: int | Unknown = Field(description="bytes, as NVML says")
    memory_used: int | Unknown = Field(description="bytes")
    memory_free: int | Unknown = Field(description="bytes; less than total - used by the reserve")
    numa_node: int | Unknown = Field(description="NUMA node with CPUs that is nearest")
    health: Health = "ok"
    mig_enabled: bool | Unknown = False
    slices: tuple[str, ...] = Field(default=(), description="MIG device UUIDs of this GPU")
    unified_memory: bool = Field(default=False, description="shares the host's memory (GB10, Thor)")
    compute_mode: str | Unknown = "Default"
    compute_capability: str | Unknown = Field(
        default=Unknown(unknown="not asked"), description="e.g. 12.0"
    )
    pcie_width_current: int | Unknown = Unknown(unknown="not asked")
    pcie_width_max: int | Unknown = Unknown(unknown="not asked")
    persistence_mode: bool | Unknown = Unknown(unknown="not asked")


class NumaNode(Frozen):
    """One NUMA node of the host."""

    id: int
    cpus: str = Field(description="CPU list as the kernel writes it, e.g. 0-31,64-95; may be empty")
    memory_total: int | Unknown = Field(description="bytes; a node may have none")
    memory_free: int | Unknown = Field(description="bytes")
    socket: int | Unknown = Field(description="physical package: groups the nodes of SNC or NPS")


class Link(Frozen):
    """How two GPUs reach each other. Kept once per pair, lower bus id first."""

    a: str = Field(description="UUID")
    b: str = Field(description="UUID")
    kind: str | Unknown = Field(description="NV18, PIX, PXB, PHB, NODE, SYS as nvidia-smi prints")
    p2p: bool | Unknown = Field(description="whether the driver permits peer reads; a claim")


class GpuProcess(Frozen):
    """A process that holds memory of a GPU."""

    gpu: str | Unknown = Field(description="UUID")
    pid: int | Unknown
    memory: int | Unknown = Field(description="bytes")
    name: str
    unit: str | Unknown | None = Field(description="systemd unit whose control group holds the pid")


class Hardware(Frozen):
    """The part of the box that a placement can be made on."""

    state: AcceleratorState
    reason: str = Field(default="", description="why the state is not ok, in the tool's words")
    gpus: tuple[Gpu, ...] = ()
    numa_nodes: tuple[NumaNode, ...] = ()
    links: tuple[Link, ...] = ()
    processes: tuple[GpuProcess, ...] | Unknown = ()
    driver: str | Unknown = Unknown(unknown="not asked")
    cuda: str | Unknown = Field(
        default=Unknown(unknown="not asked"), description="highest CUDA version of the driver"
    )
    host_memory_total: int | Unknown = Unknown(unknown="not asked")
    host_memory_available: int | Unknown = Unknown(unknown="not asked")
    virtual_machine: bool | Unknown = Unknown(unknown="not asked")
