"""Entries of the record, made from recorded journals as the switch makes them from live ones."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import Any

import pytest

from facts.history.comparison import Comparison
from facts.history.measured import Measured, measure
from facts.journal.lines import Journal, read_journal
from facts.journal.numbers import EngineNumbers, engine_numbers
from facts.journal.phases import Phases, phases
from inventory.common.record import StartRecord
from inventory.common.start_phases import MILESTONES
from inventory.common.throughput import Load, Measurement, Rung
from tests.facts.diagnosis.journals import text_of

NOW = 1_795_554_000.0
DAY = 86_400.0
COMPILATION = re.compile(r"Compiling a graph for|Directly load AOT")

TP4 = "recreated-healthy-tp4-all-phases"
TP8 = "recreated-healthy-shm-messages"
OLD = "recreated-healthy-0.19-two-line-kv"
QWEN = "recreated-healthy-free-memory-info"
EAGER = "real-healthy-tp2-then-stop"


@cache
def kept(name: str) -> tuple[str, ...]:
    """The lines of a recorded journal that hold milestones and the engine's numbers."""
    text = text_of(name)
    journal, raw = read_journal(text), text.split("\n")
    return tuple(raw[line.no - 1] for line in journal.lines if _is_kept(Journal((line,))))


def _is_kept(one: Journal) -> bool:
    (line,) = one.lines
    return (
        line.role == "systemd"
        or any(stone.pattern.match(line.text) for stone in MILESTONES)
        or bool(COMPILATION.match(line.text))
        or engine_numbers(one.lines) != EngineNumbers()
    )


@cache
def _told(name: str) -> Phases:
    return phases(read_journal(text_of(name)))


def entry(name: str, unit: str, *, gpus: int, ready: float = NOW, **more: Any) -> dict[str, Any]:
    """What the box records of the start in a recorded journal.

    + name: of the journal
    + unit: with its ending
    + more: keys that differ
    """
    told = _told(name)
    seconds = {"stop": 3.9, "release": 0.6, "load": told.total, "downtime": told.total + 4.6}
    return {
        "format": 1,
        "service": unit.removesuffix(".service"),
        "unit": unit,
        "model": "MiniMaxAI/MiniMax-M2.5",
        "repo": "MiniMaxAI/MiniMax-M2.5",
        "commit": hashlib.sha1(unit.encode(), usedforsecurity=False).hexdigest(),
        "weights_bytes": 230_113_000_000,
        "engine": {"package": "vllm", "version": "0.32.0"},
        "argv": ["bin/vllm", "serve", "/shared/models/MiniMaxAI/MiniMax-M2.5"],
        "environment": ["CUDA_VISIBLE_DEVICES", "NCCL_PROTO"],
        "placement": {
            "gpus": [f"GPU-{number}" for number in range(gpus)],
            "numa_nodes": [0, None][: 1 if gpus < 8 else 2],
            "tensor_parallel_size": gpus,
        },
        "host": {"driver": "580.95.05"},
        "started": ready - told.total,
        "ready": ready,
        "invocation": hashlib.md5(f"{unit}{ready}".encode(), usedforsecurity=False).hexdigest(),
        "seconds": seconds,
        "warm": {"bytes": 230_113_000_000.0, "seconds": 92.0},
        "phases": dict(told.seconds),
        "journal": list(kept(name)),
        "replaced": ["vllm-kimi-k25.service"],
        **more,
    }


def record(name: str, unit: str = "vllm-minimax-m25.service", **more: Any) -> StartRecord:
    """The same as the fact reads it."""
    return StartRecord.from_json(entry(name, unit, **{"gpus": 4, **more}))


def measured(name: str, **more: Any) -> Measured:
    """The same in figures."""
    return measure(record(name, **more))


def sums_hold(comparison: Comparison) -> bool:
    """Parts of each start sum to its total, and their differences to the totals' difference."""
    this, that = comparison.this.total, comparison.that.total
    if this is None or that is None:
        return comparison.parts == ()
    sums = [
        sum(getattr(part, side) for part in comparison.parts)
        for side in ("this", "that", "difference")
    ]
    return sums == pytest.approx([this, that, this - that], rel=1e-9, abs=1e-6)


def throughput(rates: dict[int, float], output_tokens: int = 256) -> dict[str, Any]:
    """A measurement as operations/remote/throughput records it.

    + rates: tokens a second by users
    """
    rungs = tuple(
        Rung(users, 4 * users, rate, 100.0, 200.0, 15.0, 20.0) for users, rate in rates.items()
    )
    load = Load(1024, output_tokens, 4)
    return Measurement(int(NOW), load, rungs, accepted=True).to_json()


def example() -> tuple[StartRecord, ...]:
    """The starts that docs/history.md shows."""
    fast, wide = throughput({1: 68.0, 32: 1130.0}), throughput({1: 55.0, 32: 1490.0, 128: 3200.0})
    wider = "vllm-minimax-m25-throughput.service"
    return (
        record(TP4, ready=NOW, throughput=fast),
        record(TP8, wider, gpus=8, ready=NOW - 8 * DAY, throughput=wide),
        record(
            OLD,
            ready=NOW - 200 * DAY,
            engine={"package": "vllm", "version": "0.19.1"},
            seconds={"load": 215.0},
            warm=None,
        ),
    )
