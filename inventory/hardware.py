"""The hardware of a box, in the terms in which a placement is reasoned about.

Memory is in bytes. GPUs are told apart by UUID and ordered by PCI bus id. A field that the
box did not tell is :class:`~inventory.base.Unknown`, with the box's word for it.
"""

from typing import Literal

from pydantic import Field

from inventory.base import NOT_ASKED, Frozen, Unknown

Health = Literal["ok", "reset-required", "lost", "excluded", "memory-failed", "unknown"]
"""``ok``; needs a reset before use; fallen off the bus; taken from the driver by an
administrator (excluded, or given to a virtual machine); no spare rows left for bad memory;
``unknown`` while the driver does not tell of any card."""

AcceleratorState = Literal["ok", "degraded", "no-hardware", "no-driver", "driver-broken", "unknown"]
"""The five states that must not be read as each other, and not knowing.

``degraded`` is a working driver with at least one GPU that does not answer.
"""


class GpuSlice(Frozen):
    """One MIG device: a part of a GPU, with memory of its own and no peer access."""

    uuid: str | Unknown = Field(description="MIG device UUID")
    profile: str | Unknown = Field(description="e.g. 1g.18gb; 1c.3g.71gb shares 3g.71gb")
    memory_total: int | Unknown = Field(description="bytes")


class Gpu(Frozen):
    """One physical GPU."""

    uuid: str = Field(
        description="NVML UUID, e.g. GPU-1111…; the identity of the card. A card that the driver "
        "cannot read has none and is called PCI-<bus id>"
    )
    index: int | Unknown = Field(description="nvidia-smi index: for display, never for selection")
    bus_id: str | Unknown = Field(description="PCI address as sysfs writes it: 0000:3b:00.0")
    name: str | Unknown = Field(description="full product name")
    memory_total: int | Unknown = Field(description="bytes, as NVML says")
    memory_used: int | Unknown = Field(description="bytes")
    memory_free: int | Unknown = Field(description="bytes; less than total - used by the reserve")
    numa_node: int | Unknown = Field(description="NUMA node with CPUs that is nearest")
    health: Health = "ok"
    health_reason: str = Field(default="", description="the tool's words, where health is not ok")
    reset_pending: bool | Unknown = Field(
        default=False, description="works, but asks for a reset (row remapping, recovery action)"
    )
    mig_enabled: bool | Unknown = False
    slices: tuple[GpuSlice, ...] = Field(default=(), description="MIG devices of this GPU")
    unified_memory: bool = Field(default=False, description="shares the host's memory (GB10, Thor)")
    compute_mode: str | Unknown = "Default"
    compute_capability: str | Unknown = Field(default=NOT_ASKED, description="e.g. 12.0")
    pcie_width_current: int | Unknown = Field(default=NOT_ASKED, description="lanes")
    pcie_width_max: int | Unknown = Field(default=NOT_ASKED, description="lanes")
    persistence_mode: bool | Unknown = NOT_ASKED
    iommu: str | Unknown = Field(
        default=NOT_ASKED,
        description="type of the card's IOMMU group: identity passes through, DMA translates; "
        "none where the kernel runs no IOMMU for it",
    )


class NumaNode(Frozen):
    """One NUMA node of the host."""

    id: int
    cpus: str = Field(description="CPU list as the kernel writes it, e.g. 0-31,64-95; may be empty")
    memory_total: int | Unknown = Field(description="bytes; a node may have none")
    memory_free: int | Unknown = Field(description="bytes")
    socket: int | Unknown = Field(description="physical package: groups the nodes of SNC or NPS")
    distances: tuple[tuple[int, int], ...] = Field(
        default=(), description="(node id, distance), 10 being the node itself"
    )


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
    unit: str | Unknown | None = Field(
        description="systemd unit whose control group holds the pid; None outside any unit"
    )


class Accelerator(Frozen):
    """An accelerator that is not an NVIDIA GPU: shown, never placed on."""

    vendor: Literal["amd", "habana"]
    bus_id: str = Field(description="PCI address as sysfs writes it")
    name: str | Unknown = NOT_ASKED
    numa_node: int | Unknown = NOT_ASKED
    memory_total: int | Unknown = Field(default=NOT_ASKED, description="bytes")
    driver: str | Unknown | None = Field(default=NOT_ASKED, description="None when unbound")


class Hardware(Frozen):
    """The part of the box that a placement can be made on."""

    state: AcceleratorState
    reason: str = Field(default="", description="why the state is not ok, in the tool's words")
    gpus: tuple[Gpu, ...] = Field(default=(), description="in PCI bus order")
    accelerators: tuple[Accelerator, ...] = Field(default=(), description="of other vendors")
    numa_nodes: tuple[NumaNode, ...] = ()
    links: tuple[Link, ...] = ()
    processes: tuple[GpuProcess, ...] | Unknown = ()
    driver: str | Unknown = Field(default=NOT_ASKED, description="version in user space")
    kernel_driver: str | Unknown = Field(
        default=NOT_ASKED, description="of the loaded kernel module"
    )
    cuda: str | Unknown = Field(default=NOT_ASKED, description="highest CUDA version of the driver")
    host_memory_total: int | Unknown = Field(default=NOT_ASKED, description="bytes")
    host_memory_available: int | Unknown = Field(default=NOT_ASKED, description="bytes")
    virtual_machine: bool | Unknown = NOT_ASKED
    iommu_groups: int | Unknown = Field(default=NOT_ASKED, description="0 without an IOMMU")
    numactl: bool | Unknown = Field(default=NOT_ASKED, description="the command exists")
    bindable_nodes: tuple[int, ...] | Unknown = Field(
        default=NOT_ASKED,
        description="nodes on which `numactl --cpunodebind --membind true` was tried and worked",
    )
