"""Settings that follow: parallel sizes, sequences, utilisation, time to load."""

from __future__ import annotations

from pydantic import Field

from inventory.base import Frozen, Unknown
from inventory.fit.answer.load_time import LoadTime, load_time
from inventory.fit.legality.shapes import shape_verdicts
from inventory.fit.memory.memory import Memory, memory
from inventory.fit.model.architecture import Architecture
from inventory.fit.settings.card import Card
from inventory.fit.settings.resolve import Resolved, most_utilisation
from inventory.fit.settings.settings import EngineSettings, Release

SEQUENCES = (1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1)
ENOUGH_SEQUENCES = 256
"""More are not derived by themselves: the sampler pays for each, and few boxes serve that many
users at once. Who needs them asks for them."""


class Parallel(Frozen):
    """Parallel sizes."""

    tp: int
    pp: int = 1
    ep: bool = False
    reason: str


class Derived(Frozen):
    """What follows from the fit where the start leaves it open."""

    max_num_seqs: int | Unknown = Field(description="largest that works even at the worst end")
    most_seqs: int | Unknown = Field(description="largest that probably works")
    gpu_memory_utilization: float | Unknown
    max_model_len: int | Unknown = Field(description="that fits even at the worst end")
    load: LoadTime | Unknown


def parallel_sizes(
    architecture: Architecture, settings: EngineSettings, engine: Release | Unknown, gpus: int
) -> Parallel | Unknown:
    """Parallel sizes that use all GPUs.

    + settings: its other settings
    + gpus: how many the service has

    Tensor parallelism over all, where the shape allows it without a remark; else with whole
    experts on each rank; else as the engine's newest versions allow it; else over as many as
    divide, in pipeline stages.
    """
    plain = settings.model_copy(update={"tp": gpus, "pp": 1, "dp": 1, "ep": False})
    problems = shape_verdicts(architecture, plain, engine, gpus)
    if not problems:
        return Parallel(tp=gpus, reason=f"all {gpus} GPUs share every layer")
    if architecture.experts is not None:
        whole = plain.model_copy(update={"ep": True})
        if not shape_verdicts(architecture, whole, engine, gpus):
            return Parallel(
                tp=gpus,
                ep=True,
                reason=f"whole experts on each rank, because {problems[0].found}",
            )
    if not any(problem.certain for problem in problems):
        return Parallel(tp=gpus, reason=f"allowed with a remark: {problems[0].why}")
    for tp in range(gpus - 1, 0, -1):
        stages = plain.model_copy(update={"tp": tp, "pp": gpus // tp})
        if gpus % tp == 0 and not shape_verdicts(architecture, stages, engine, gpus):
            return Parallel(
                tp=tp,
                pp=gpus // tp,
                reason=f"{gpus // tp} pipeline stages, because {problems[0].found}",
            )
    return Unknown(unknown=f"no parallel sizes use {gpus} GPUs: {problems[0].found}")


def derive(
    architecture: Architecture,
    resolved: Resolved,
    cards: tuple[Card, ...],
    found: Memory | Unknown,
) -> Derived:
    """What follows from a memory.

    + found: the memory of the start as resolved
    """
    if isinstance(found, Unknown):
        size = Unknown(unknown=found.unknown)
        return Derived(
            max_num_seqs=size,
            most_seqs=size,
            gpu_memory_utilization=size,
            max_model_len=size,
            load=_load_time(architecture, size, resolved.settings),
        )
    safe, most = _sequences(architecture, resolved, cards, found)
    longest = found.longest
    settings = resolved.settings
    total = sum(part.total for part in found.weights.parts)
    weight_bytes = total or found.weights.per_rank.likely * settings.tp * settings.pp
    return Derived(
        max_num_seqs=safe,
        most_seqs=most,
        gpu_memory_utilization=_utilisation(resolved, found),
        max_model_len=longest if isinstance(longest, Unknown) else longest.low,
        load=_load_time(architecture, weight_bytes, settings),
    )


def _load_time(
    architecture: Architecture, weight_bytes: int | Unknown, settings: EngineSettings
) -> LoadTime | Unknown:
    return load_time(
        architecture,
        weight_bytes,
        given=settings.load_seconds,
        eager=settings.enforce_eager,
        engines=settings.dp,
    )


def _sequences(
    architecture: Architecture,
    resolved: Resolved,
    cards: tuple[Card, ...],
    found: Memory,
) -> tuple[int, int]:
    """The largest number that works at the worst end, and the largest that probably does."""
    safe = most = 0
    for seqs in SEQUENCES:
        other = memory(
            architecture,
            resolved.model_copy(update={"max_num_seqs": seqs}),
            cards,
            found.weights,
        )
        if isinstance(other, Unknown):
            continue
        lefts = [margin.left for margin in other.margins]
        if not most and all(left.likely >= 0 for left in lefts):
            most = seqs
        if seqs <= ENOUGH_SEQUENCES and all(left.low >= 0 for left in lefts):
            safe = seqs
            break
    return safe, most


def _utilisation(resolved: Resolved, found: Memory) -> float:
    """The utilisation as it is, less where the cards do not have so much free."""
    most = most_utilisation(resolved.settings.gpus)
    free = found.margin("free")
    if free is None or free.low >= 0:
        return min(resolved.utilisation, most)
    room = (found.requested.low + free.low) / found.total.likely
    return max(0.0, min(resolved.utilisation, most, int(room * 100) / 100))
