"""Settings that follow: parallel sizes, sequences, utilisation, time to load.

Figures (vllm-project issues and field logs): MiniMax-M2.5, 230 GB, 75 s from a warm NVMe and 250 s
from another (vllm#39610); Kimi-K2.5 NVFP4, 540 GB, 13 minutes; 158 GB from the page cache 25 s,
6.2 GB/s (vllm-omni#4896); GLM-5.1 on eight RTX PRO 6000: 233 s, of them 43 for the weights.
"""

from typing import Any

from pydantic import Field

from inventory.base import Frozen, Unknown
from inventory.fit.legality.shapes import shape_verdicts
from inventory.fit.memory.memory import Memory, with_sequences
from inventory.fit.model.architecture import Architecture
from inventory.fit.settings.card import Card
from inventory.fit.settings.resolve import Resolved, most_utilisation
from inventory.fit.settings.settings import EngineSettings, Release
from inventory.start_limits import start_limits

SEQUENCES = (1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1)
_FROM_MEMORY = ("max_num_seqs", "most_seqs", "gpu_memory_utilization", "max_model_len")
ENOUGH_SEQUENCES = 256
"""The most that is derived: the sampler pays for each sequence, and few boxes serve more users at
once. A service can ask for more."""

LOADER = 6.2e9, 2.0e9, 0.8e9
"""Bytes a second of the loader: from the page cache; from one NVMe; the slower field logs."""
BESIDES = 35, 110, 180
"""Seconds of imports, NCCL, compilation, profile run, capture: warm caches; likely; cold."""
BESIDES_EAGER = 45
"""The same without compilation and capture, at most."""

LEAST_LOAD = 150
"""Even the smallest model gets this: imports from a cold disk alone may take a minute."""
ENGINE_PATIENCE = 600
"""VLLM_ENGINE_READY_TIMEOUT_S as it ships; it counts with data parallelism or several API
servers (v1/engine/core_client.py:743)."""


class Parallel(Frozen):
    """Parallel sizes."""

    tp: int
    pp: int = 1
    ep: bool = False
    reason: str


class LoadTime(Frozen):
    """Seconds from start to ready, and the limits that follow."""

    fastest: int
    likely: int
    slowest: int
    given: int = Field(description="load_seconds of the service, else the slowest")
    patience: int = Field(description="how long the switch waits for readiness")
    start_limit_interval: int = Field(
        description="StartLimitIntervalSec: three starts that fail slowly must fall into it"
    )
    start_limit_burst: int
    stop: int = Field(description="TimeoutStopSec")
    engine_patience: int | None = Field(
        default=None, description="VLLM_ENGINE_READY_TIMEOUT_S, where the default is too short"
    )


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

    Tried in this order: tensor parallelism over all GPUs; the same with whole experts on each
    rank; the same with a remark, if only some engines allow it; pipeline stages.
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
    """What follows from a memory."""
    settings = resolved.settings
    weight_bytes: int | Unknown
    open_settings: dict[str, Any]
    if isinstance(found, Unknown):
        weight_bytes = found
        open_settings = dict.fromkeys(_FROM_MEMORY, found)
    else:
        total = sum(part.total for part in found.weights.parts)
        weight_bytes = total or found.weights.per_rank.likely * settings.tp * settings.pp
        safe, most = _sequences(architecture, cards, found)
        utilisation = _utilisation(resolved, found)
        length = found.longest if isinstance(found.longest, Unknown) else found.longest.low
        open_settings = dict(zip(_FROM_MEMORY, (safe, most, utilisation, length), strict=True))
    return Derived(
        **open_settings,
        load=load_time(
            architecture,
            weight_bytes,
            given=settings.load_seconds,
            eager=settings.enforce_eager,
            engines=settings.dp,
        ),
    )


def _sequences(
    architecture: Architecture, cards: tuple[Card, ...], found: Memory
) -> tuple[int, int]:
    """The largest number that works at the worst end, and the largest that probably does."""
    safe = most = 0
    for seqs in SEQUENCES:
        other = with_sequences(architecture, found, cards, seqs)
        if not most and all(margin.left.likely >= 0 for margin in other.margins):
            most = seqs
        if seqs <= ENOUGH_SEQUENCES and all(margin.left.low >= 0 for margin in other.margins):
            safe = seqs
            break
    return safe, most


def _utilisation(resolved: Resolved, found: Memory) -> float:
    """The utilisation as it is, or less if the cards have less free."""
    most = most_utilisation(resolved.settings.gpus)
    free = found.margin("free")
    if free is None or free.low >= 0:
        return min(resolved.utilisation, most)
    room = (found.requested.low + free.low) / found.total.likely
    return max(0.0, min(resolved.utilisation, most, int(room * 100) / 100))


def load_time(
    architecture: Architecture,
    weight_bytes: int | Unknown,
    *,
    given: int | None = None,
    eager: bool = False,
    engines: int = 1,
) -> LoadTime | Unknown:
    """How long a start takes.

    + weight_bytes: of the checkpoint; used where the files do not tell it
    + given: seconds that the service gives a load; None: as many as the slowest takes
    + eager: without CUDA graphs and compilation
    """
    size = weight_bytes
    if architecture.checkpoint and not isinstance(architecture.checkpoint.size, Unknown):
        size = architecture.checkpoint.size
    if not isinstance(size, Unknown):
        fastest, likely, slowest = (
            round(size / speed) + (min(seconds, BESIDES_EAGER) if eager else seconds)
            for speed, seconds in zip(LOADER, BESIDES, strict=True)
        )
    elif given is None:
        return size
    else:
        fastest = likely = slowest = given
    limits = start_limits(given or max(LEAST_LOAD, slowest))
    patience = limits.patience
    return LoadTime(
        fastest=fastest,
        likely=likely,
        slowest=slowest,
        given=limits.load,
        patience=patience,
        start_limit_interval=limits.interval,
        start_limit_burst=limits.burst,
        stop=limits.stop,
        engine_patience=patience if engines > 1 and patience > ENGINE_PATIENCE else None,
    )
