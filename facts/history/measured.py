"""The figures of one recorded start: what the box clocked and what the engine said of itself."""

from typing import Any, Literal

from pydantic import field_serializer

from facts.journal.lines import Journal, read_journal
from facts.journal.numbers import EngineNumbers
from facts.journal.phases import phases
from facts.journal.settings import settings
from inventory.base import Frozen
from inventory.common.engine_log import COMPILED_COLD, COMPILED_WARM
from inventory.common.record import StartRecord
from inventory.common.throughput import Measurement
from inventory.common.units import GIB

TICK = 1e-6
"""Seconds that a clock can tell from nothing."""


class Measured(Frozen):
    """One start. ``None`` is not measured, never zero. Seconds, bytes, GiB, tokens."""

    service: str
    unit: str
    invocation: str
    ready: float
    """Seconds since the epoch."""
    commit: str
    engine: str
    """Package and version."""
    gpus: int
    total: float | None
    """Seconds from the start of the process until it answered."""
    phases: dict[str, float]
    """Seconds by phase."""
    eager: bool
    """Started with ``--enforce-eager``: no compilation, no graphs."""
    compilation: Literal["cold", "warm", "none"] | None
    """Whether compiled code came from the cache."""
    weights_bytes: int | None
    """On disk, all ranks together."""
    weights_s: float | None
    """Reading them, by the slowest rank."""
    stop_s: float | None
    release_s: float | None
    downtime_s: float | None
    model_gib_per_rank: float | None
    kv_cache_gib: float | None
    kv_cache_tokens: int | None
    max_concurrency: float | None
    cudagraph_gib: float | None
    warmed_bytes: float | None
    """Of the weights, brought into the page cache before the start."""
    throughput: Measurement | None

    @field_serializer("throughput")
    def _as_ladder(self, measured: Measurement | None) -> dict[str, Any]:
        """The form that ``boxwright history --json`` has: users, and what they get together."""
        load = {} if measured is None else measured.load.to_json()
        return {
            "rungs": [
                {"users": users, "tokens_per_s": rate}
                for users, rate in (measured.rates if measured else {}).items()
            ],
            "load": ", ".join(f"{name} {load[name]}" for name in sorted(load)),
        }

    @property
    def read(self) -> tuple[int, float] | None:
        """Bytes and seconds of reading the weights, where both were measured."""
        if not self.weights_bytes or self.weights_s is None or self.weights_s < TICK:
            return None
        return self.weights_bytes, self.weights_s

    @property
    def bytes_per_s(self) -> float | None:
        """Weights read a second."""
        return None if self.read is None else self.read[0] / self.read[1]


def measure(record: StartRecord) -> Measured:
    """Read the figures of one record.

    + record: as the box kept it; its journal may be empty
    """
    journal = read_journal("\n".join(record.journal))
    told = phases(journal)
    clocked = dict(record.phases) or told.seconds
    eager = "--enforce-eager" in record.argv or settings(journal.lines).eager
    return Measured(
        service=record.service,
        unit=record.unit,
        invocation=record.invocation,
        ready=record.ready,
        commit=record.commit,
        engine=f"{record.engine.package} {record.engine.version}".strip(),
        gpus=len(record.placement.gpus),
        total=_total(record, clocked),
        phases=clocked,
        eager=eager,
        compilation="none" if eager else _compilation(journal),
        weights_bytes=record.weights_bytes or _checkpoint(told.engine),
        weights_s=_clocked(told.engine.weights_s),
        stop_s=record.seconds.stop,
        release_s=record.seconds.release,
        downtime_s=record.seconds.downtime,
        model_gib_per_rank=told.engine.model_gib_per_rank,
        kv_cache_gib=told.engine.kv_cache_gib,
        kv_cache_tokens=told.engine.kv_cache_tokens,
        max_concurrency=told.engine.max_concurrency,
        cudagraph_gib=told.engine.cudagraph_gib,
        warmed_bytes=record.warm.get("bytes") if record.warm is not None else None,
        throughput=record.throughput,
    )


def _total(record: StartRecord, clocked: dict[str, float]) -> float | None:
    """By the box's own clock; the sum of the phases where it kept only those."""
    if record.seconds.load is not None:
        return record.seconds.load
    return sum(clocked.values()) if clocked else None


def _compilation(journal: Journal) -> Literal["cold", "warm"] | None:
    """Cold as soon as one rank compiled."""
    found: Literal["cold", "warm"] | None = None
    for line in journal.lines:
        if COMPILED_COLD.match(line.text):
            return "cold"
        if COMPILED_WARM.match(line.text):
            found = "warm"
    return found


def _checkpoint(engine: EngineNumbers) -> int | None:
    amount = engine.checkpoint_gib
    return round(amount * GIB) if amount is not None and amount > 0 else None


def _clocked(seconds: float | None) -> float | None:
    """A journal is text: what it says may be no duration."""
    return seconds if seconds is not None and seconds >= 0 else None
