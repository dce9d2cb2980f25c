"""Cards: the memory that the engine sees on them, which is less than NVML says.

The totals are those that engines printed ("Free memory on device (a/b GiB)"), collected in
tests/fixtures/fit/NOTES.md section 6; capabilities are NVIDIA's (developer.nvidia.com/cuda-gpus).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field

from inventory.base import NOT_ASKED, Frozen, Unknown, known
from inventory.common.units import GIB, MIB, from_gib, gib
from inventory.errors import DesiredStateError
from inventory.fit.memory.span import Span, around, exactly

if TYPE_CHECKING:
    from inventory.hardware import Gpu, GpuProcess

LinkKind = Literal["nvlink", "pcie"]


class Card(Frozen):
    """One GPU as the fit needs it."""

    name: str
    total: Span = Field(description="bytes that the engine sees: cudaMemGetInfo, not NVML")
    nvml_total: int | Unknown = Field(default=NOT_ASKED, description="bytes, as nvidia-smi says")
    capability: str | Unknown = Field(default=NOT_ASKED, description="compute, e.g. 12.0")
    link: LinkKind | Unknown = Field(
        default=NOT_ASKED, description="how cards of this class usually reach each other"
    )
    unified: bool = Field(default=False, description="shares the host's memory (GB10)")
    free: int | Unknown = Field(
        default=NOT_ASKED, description="bytes that NVML calls free; not asked: an idle card"
    )
    holders: tuple[str, ...] = Field(default=(), description="who holds the rest, for people")

    @property
    def compute(self) -> float | None:
        """The compute capability as a number, where it is known."""
        try:
            return float(known(self.capability, ""))
        except ValueError:
            return None


class _Class(NamedTuple):
    name: str
    pattern: str
    engine_gib: float
    nvml_mib: int | None
    capability: str
    link: LinkKind
    unified: bool = False


_CLASSES: tuple[_Class, ...] = (
    # The first pattern that is found in the name wins: the special before the general.
    _Class("RTX PRO 6000", r"rtx ?pro ?6000(?! ?d)", 94.97, 97887, "12.0", "pcie"),
    _Class("RTX 6000D", r"6000 ?d\b", 83.05, 85658, "12.0", "pcie"),
    _Class("GB10", r"gb ?10\b", 121.63, None, "12.1", "pcie", True),
    _Class("GB200", r"gb ?200", 184.31, None, "10.0", "nvlink"),
    _Class("B300", r"b ?300", 267.69, None, "10.3", "nvlink"),
    _Class("GH200", r"gh ?200", 142.5, None, "9.0", "nvlink"),
    _Class("H200", r"h ?200", 139.8, 143771, "9.0", "nvlink"),
    _Class("H100 NVL", r"h ?100 ?nvl", 93.02, 95830, "9.0", "pcie"),
    _Class("H100 80GB", r"h ?100", 79.18, 81559, "9.0", "nvlink"),
    _Class("H20 141GB", r"h ?20 ?141", 139.8, 143771, "9.0", "nvlink"),
    _Class("A100 40GB", r"a ?100.*40", 39.49, 40960, "8.0", "nvlink"),
    _Class("A100 80GB", r"a ?100", 79.25, 81920, "8.0", "nvlink"),
    _Class("A800 80GB", r"a ?800", 79.25, 81920, "8.0", "nvlink"),
    _Class("L40S", r"l ?40", 44.39, 46068, "8.9", "pcie"),
    _Class("L4", r"\bl ?4\b", 22.05, 23034, "8.9", "pcie"),
    _Class("A10", r"\ba ?10g?\b", 21.99, 23028, "8.6", "pcie"),
    _Class("T4", r"\bt ?4\b", 14.57, 15360, "7.5", "pcie"),
    _Class("V100 16GB", r"v ?100(?!.*32)", 15.77, 16384, "7.0", "nvlink"),
    _Class("RTX A6000", r"a ?6000", 47.37, 49140, "8.6", "pcie"),
    _Class("RTX 6000 Ada", r"6000 ?ada", 47.37, 49140, "8.9", "pcie"),
    _Class("RTX 3050 6GB", r"3050", 5.61, 6144, "8.6", "pcie"),
    _Class("RTX 3090", r"3090", 23.56, 24576, "8.6", "pcie"),
    _Class("RTX 4090", r"4090", 23.52, 24564, "8.9", "pcie"),
    _Class("RTX 5080", r"5080", 15.92, 16303, "12.0", "pcie"),
    _Class("RTX 5090", r"5090", 31.36, 32607, "12.0", "pcie"),
)

NVML_MINUS_ENGINE = around(from_gib(0.55), from_gib(0.3), from_gib(0.35))
"""What NVML counts and the engine does not see. Measured: 0.46 on H100 80 GB, 0.60 on H200,
0.62 on RTX PRO 6000 (NVML 95.59 GiB, engine 94.97), 0.60 on RTX 6000D (NOTES.md section 6)."""


def _class_of(name: str) -> _Class | None:
    plain = re.sub(r"[^a-z0-9]+", " ", name.lower()).strip()
    return next((one for one in _CLASSES if re.search(one.pattern, plain)), None)


def card(name: str) -> Card | Unknown:
    """A card by its name, as ``nvidia-smi`` or people write it.

    + name: "NVIDIA RTX PRO 6000 Blackwell Server Edition", "H100", "RTX 4090"

    >>> card("NVIDIA RTX PRO 6000 Blackwell Server Edition").total.shown()
    '94.97 GiB'
    >>> card("Voodoo 2").unknown
    "no published figures of a card named 'Voodoo 2'"
    """
    listed = _class_of(name)
    if listed is None:
        return Unknown(unknown=f"no published figures of a card named {name[:60]!r}")
    return Card(
        name=listed.name,
        total=exactly(from_gib(listed.engine_gib)),
        nvml_total=listed.nvml_mib * MIB if listed.nvml_mib else NOT_ASKED,
        capability=listed.capability,
        link=listed.link,
        unified=listed.unified,
    )


def card_of(
    gpu: Gpu,
    link: LinkKind | Unknown = NOT_ASKED,
    processes: tuple[GpuProcess, ...] = (),
    own_units: frozenset[str] = frozenset(),
) -> Card:
    """A GPU of a box.

    + gpu: as the probe read it. A total that NVML did not tell falls back on the card's class;
      a card of an unknown class gets NVML's total less what engines do not see
    + link: how it reaches the others of the same service, where that is known
    + processes: of the box; those on this GPU are named when memory is short
    + own_units: units that stop before the start: what they hold counts as free
    + raises: DesiredStateError if both the memory and the class are unknown
    """
    name = gpu.name if isinstance(gpu.name, str) else "unknown GPU"
    listed = _class_of(name)
    own = tuple(process for process in processes if process.gpu == gpu.uuid)
    if isinstance(gpu.memory_total, Unknown):
        if listed is None:
            raise DesiredStateError(
                wanted=f"the memory of GPU {gpu.uuid}",
                found=f"{name}: {gpu.memory_total.unknown}",
                why="without it nothing can be said about what fits",
                next_step="see why nvidia-smi does not report the card's memory",
            )
        total = exactly(from_gib(listed.engine_gib))
    elif listed is not None and listed.nvml_mib and _near(gpu.memory_total, listed.nvml_mib * MIB):
        unseen = listed.nvml_mib * MIB - from_gib(listed.engine_gib)
        total = exactly(gpu.memory_total - unseen)
    elif gpu.unified_memory:
        total = exactly(gpu.memory_total)
    else:
        total = exactly(gpu.memory_total) - NVML_MINUS_ENGINE
    return Card(
        name=name,
        total=total,
        nvml_total=gpu.memory_total,
        capability=gpu.compute_capability
        if isinstance(gpu.compute_capability, str)
        else (listed.capability if listed else gpu.compute_capability),
        link=link if not isinstance(link, Unknown) else (listed.link if listed else link),
        unified=gpu.unified_memory,
        free=_free_after(gpu, own, own_units),
        holders=tuple(_holder(process) for process in own if process.unit not in own_units),
    )


def _free_after(gpu: Gpu, own: tuple[GpuProcess, ...], own_units: frozenset[str]) -> int | Unknown:
    """What will be free once some units have left."""
    gone = [process for process in own if process.unit in own_units]
    if not gone or isinstance(gpu.memory_free, Unknown):
        return gpu.memory_free
    held = [process.memory for process in gone if isinstance(process.memory, int)]
    if len(held) < len(gone):
        return Unknown(unknown="what the service's own units hold was not told")
    return gpu.memory_free + sum(held)


def _holder(process: GpuProcess) -> str:
    who = process.unit if isinstance(process.unit, str) else f"{process.name} (no unit)"
    held = process.memory
    return f"{who} holds {gib(held) if isinstance(held, int) else 'an unknown amount'}"


def _near(a: int, b: int) -> bool:
    return abs(a - b) < b // 50


def parse_cards(text: str) -> tuple[Card, ...]:
    """Cards as one types them: a count, an x, a name or an amount of memory.

    + text: ``4x"RTX PRO 6000"``, ``8xH200``, ``H100``, ``2x48GiB``
    + raises: DesiredStateError where the count or the card is not understood

    >>> [c.name for c in parse_cards('2x"RTX PRO 6000"')]
    ['RTX PRO 6000', 'RTX PRO 6000']
    """
    found = re.fullmatch(r"\s*(?:(\d{1,4})\s*[x*]\s*)?[\"']?(.+?)[\"']?\s*", text)
    count = int(found.group(1) or 1) if found else 0
    name = found.group(2) if found else text
    memory = re.fullmatch(r"(\d+(?:\.\d+)?)\s*gib", name.strip(), re.IGNORECASE)
    if memory and float(memory.group(1)) > 0:
        one: Card | Unknown = Card(name=name, total=exactly(round(float(memory.group(1)) * GIB)))
    else:
        one = card(name)
    if isinstance(one, Unknown) or count < 1:
        names = ", ".join(one.name for one in _CLASSES)
        raise DesiredStateError(
            wanted=f"GPUs {text!r}",
            found=one.unknown if isinstance(one, Unknown) else "no count of at least one",
            why="the memory of the card decides what fits",
            next_step=f"write COUNTxNAME with one of {names}; or COUNTx96GiB with the memory that "
            "the engine sees",
        )
    return (one,) * count
