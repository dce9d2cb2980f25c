"""Which GPUs may be taken: healthy, whole, big enough, and not used by others."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inventory.base import Unknown
from inventory.common.smi import idle_limit
from inventory.hardware import Gpu, GpuProcess, Hardware
from inventory.placement.result import GpuUser, Rejected, gib
from inventory.service import Placement


@dataclass(frozen=True)
class Terms:
    """What a candidate is measured against.

    + own: units whose processes do not count: the service itself and those that it replaces
    + memory_needed: bytes a GPU; None asks for none
    + exclude: UUIDs never to take
    + named: UUIDs that the user named: for these, not knowing who uses a GPU is accepted
    """

    own: frozenset[str] = frozenset()
    memory_needed: int | None = None
    exclude: tuple[str, ...] = ()
    named: tuple[str, ...] = ()


def full_name(unit: str) -> str:
    """``vllm`` is ``vllm.service``, as systemctl takes it."""
    return unit if "." in unit else f"{unit}.service"


def in_bus_order(gpus: Iterable[Gpu]) -> tuple[Gpu, ...]:
    """GPUs by PCI address; those without one come last, by UUID."""

    def key(gpu: Gpu) -> tuple[int, str, str]:
        known = "" if isinstance(gpu.bus_id, Unknown) else gpu.bus_id
        # Domains have four hexadecimal digits or more: the longer ones are the higher.
        return (len(known) or 1 << 16, known, gpu.uuid)

    return tuple(sorted(gpus, key=key))


@dataclass(frozen=True)
class Uses:
    """Who is on one GPU.

    + own: processes of own units
    + others: all other processes, also those with an unknown unit
    + unknown: why the users of the GPU are not known; empty if they are
    """

    own: tuple[GpuProcess, ...] = ()
    others: tuple[GpuProcess, ...] = ()
    unknown: str = ""


def uses(gpu: Gpu, hardware: Hardware, own: frozenset[str]) -> Uses:
    """Who is on a GPU. A process whose GPU is not told may be on any of them."""
    if isinstance(hardware.processes, Unknown):
        return Uses(unknown=f"the processes are not told: {hardware.processes.unknown}")
    mine: list[GpuProcess] = []
    others: list[GpuProcess] = []
    somewhere = 0
    # nvidia-smi hides the GPU of a process in a MIG device: then it is on a card with MIG.
    sliced = any(card.mig_enabled is True for card in hardware.gpus)
    for process in hardware.processes:
        if process.gpu == gpu.uuid:
            (mine if is_own(process, own) else others).append(process)
        elif isinstance(process.gpu, Unknown) and not sliced:
            somewhere += 1
    reason = f"{somewhere} processes do not tell their GPU" if somewhere else ""
    return Uses(tuple(mine), tuple(others), reason)


def is_own(process: GpuProcess, own: frozenset[str]) -> bool:
    """Whether a process belongs to one of the units; an unknown unit is someone else's."""
    return isinstance(process.unit, str) and process.unit in own


def objection(gpu: Gpu, hardware: Hardware, terms: Terms) -> str:
    """Why a GPU may not be taken; empty if it may."""
    used = uses(gpu, hardware, terms.own)
    taken = _taken(gpu, used, named=gpu.uuid in terms.named)
    return _unfit(gpu, terms) or taken or _small(gpu, used, terms.memory_needed)


def _unfit(gpu: Gpu, terms: Terms) -> str:
    if gpu.uuid in terms.exclude:
        return "excluded by the placement"
    if gpu.health != "ok":
        return f"{gpu.health}: {gpu.health_reason or 'the driver does not tell of it'}"
    if not gpu.uuid.startswith("GPU-"):
        return "has no UUID to select it by"
    if gpu.mig_enabled is not False:
        sliced = gpu.mig_enabled is True
        return "cut into MIG devices" if sliced else f"MIG unknown: {_word(gpu.mig_enabled)}"
    if gpu.compute_mode == "Prohibited":
        return "compute mode Prohibited"
    return ""


def _taken(gpu: Gpu, used: Uses, named: bool) -> str:
    if used.others:
        (user, *more) = gpu_users(used.others, (gpu,))
        rest = f" and {len(more)} more" if more else ""
        return f"used by {who(user)}, {gib(user.memory)}{rest}"
    if used.unknown:
        return "" if named else f"use unknown, which counts as used: {used.unknown}"
    if isinstance(gpu.memory_used, Unknown):
        return "" if named else f"use unknown, which counts as used: {gpu.memory_used.unknown}"
    own = sum(process.memory for process in used.own if isinstance(process.memory, int))
    if any(isinstance(process.memory, Unknown) for process in used.own):
        return ""  # what the own processes hold is not told, so nothing is left to explain
    total = 0 if isinstance(gpu.memory_total, Unknown) else gpu.memory_total
    if gpu.memory_used - own > idle_limit(total):
        return f"{gib(gpu.memory_used - own)} used by processes that are not listed"
    return ""


def _small(gpu: Gpu, used: Uses, needed: int | None) -> str:
    if needed is None:
        return ""
    offered = offers(gpu, used)
    if isinstance(offered, Unknown):
        return f"memory unknown: {offered.unknown}"
    return f"{gib(offered)} free, {gib(needed)} needed" if offered < needed else ""


def offers(gpu: Gpu, used: Uses) -> int | Unknown:
    """Bytes that a start will find free, once the own units have left."""
    if not used.own:
        return gpu.memory_free
    held = [process.memory for process in used.own]
    known = [memory for memory in held if isinstance(memory, int)]
    if isinstance(gpu.memory_free, Unknown) or len(known) < len(held):
        return gpu.memory_total
    total = gpu.memory_total if isinstance(gpu.memory_total, int) else gpu.memory_free + sum(known)
    return min(total, gpu.memory_free + sum(known))


def _word(value: object) -> str:
    return value.unknown if isinstance(value, Unknown) else str(value)


def gpu_users(processes: Sequence[GpuProcess], gpus: Sequence[Gpu]) -> tuple[GpuUser, ...]:
    """Processes by their unit, those with the most GPUs first."""
    grouped: dict[str, list[GpuProcess]] = {}
    for process in processes:
        key = process.unit if isinstance(process.unit, str) else f"pid {_word(process.pid)}"
        grouped.setdefault(key, []).append(process)
    order = [gpu.uuid for gpu in gpus]
    found = [_gpu_user(group, order) for group in grouped.values()]
    return tuple(sorted(found, key=lambda user: (-len(user.gpus), who(user))))


def _gpu_user(group: Sequence[GpuProcess], order: Sequence[str]) -> GpuUser:
    amounts = [process.memory for process in group]
    known = [amount for amount in amounts if isinstance(amount, int)]
    names = sorted({f"{process.name} (pid {_word(process.pid)})" for process in group})
    first = ", ".join(names[:2]) + (f" and {len(names) - 2} more" if names[2:] else "")
    return GpuUser(
        unit=group[0].unit,
        process=first,
        gpus=tuple(uuid for uuid in order if any(process.gpu == uuid for process in group)),
        memory=sum(known)
        if len(known) == len(amounts)
        else Unknown(unknown="a process does not tell its memory"),
    )


def who(user: GpuUser) -> str:
    """A user of GPUs by its unit, or by its processes if the unit is not known."""
    return user.unit if isinstance(user.unit, str) else user.process


@dataclass(frozen=True)
class Search:
    """What a placement is chosen from. All GPUs are in bus order.

    + candidates: GPUs that may be taken
    + rejected: the others, and why
    """

    wish: Placement
    hardware: Hardware
    terms: Terms
    candidates: tuple[Gpu, ...]
    rejected: tuple[Rejected, ...]


def search(wish: Placement, hardware: Hardware, terms: Terms) -> Search:
    """The candidates and the rejected."""
    hardware = hardware.model_copy(update={"gpus": in_bus_order(hardware.gpus)})
    candidates, rejected = [], []
    for gpu in hardware.gpus:
        reason = objection(gpu, hardware, terms)
        if reason:
            rejected.append(Rejected(gpu=gpu.uuid, reason=reason))
        else:
            candidates.append(gpu)
    return Search(wish, hardware, terms, tuple(candidates), tuple(rejected))
