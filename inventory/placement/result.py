"""What a placement says."""

from typing import Literal

from pydantic import Field

from inventory.base import Frozen, Unknown
from inventory.common.units import gibibytes
from inventory.hardware import Gpu

Closeness = Literal["cpu", "nvlink", "numa-node", "socket", "host", "unknown"]
"""The closest thing that all chosen GPUs share. ``unknown``: the box does not tell."""


class GpuUser(Frozen):
    """Someone who holds memory of GPUs."""

    unit: str | Unknown | None = Field(description="systemd unit; None outside any unit")
    process: str = Field(description="its processes as people name them: VLLM::Worker_TP0 (pid 71)")
    gpus: tuple[str, ...] = Field(description="UUIDs, in bus order")
    memory: int | Unknown = Field(description="bytes, over all of these GPUs")


class Rejected(Frozen):
    """A GPU that was not taken."""

    gpu: str = Field(description="UUID")
    reason: str


class Chosen(Frozen):
    """The GPUs of a service, in PCI bus order, and why it is these."""

    gpus: tuple[str, ...] = Field(description="UUIDs")
    numa_nodes: tuple[int | Unknown, ...] = Field(description="of each GPU, in the same order")
    closeness: Closeness
    why: tuple[str, ...] = Field(description="sentences")
    warnings: tuple[str, ...] = ()
    rejected: tuple[Rejected, ...] = Field(default=(), description="the other GPUs of the box")
    held_by: tuple[GpuUser, ...] = Field(
        default=(), description="own units that hold these GPUs now and leave before the start"
    )
    environment: dict[str, str] = Field(description="variables of the unit that select the GPUs")
    numa_bind_nodes: tuple[int, ...] | None = Field(
        description="for --numa-bind-nodes, one a GPU; None where the flag must not be given"
    )
    numa_bind_reason: str = Field(description="why the service is bound or is not")


def called(gpu: Gpu) -> str:
    """How messages name a GPU: by index and address, which people can find on the box."""
    index = "GPU" if isinstance(gpu.index, Unknown) else f"GPU {gpu.index}"
    return f"{index} ({gpu.uuid if isinstance(gpu.bus_id, Unknown) else gpu.bus_id})"


def gib(memory: int | Unknown) -> str:
    """Bytes as people read them."""
    if isinstance(memory, Unknown):
        return "an unknown amount"
    return gibibytes(memory)
