"""The one form of a recorded start: of today's files, of a later version's, and damaged."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.common.record import FILE_NAME, Declared, RecordedEngine, StartRecord
from inventory.common.throughput import Load, Measurement, Rung
from inventory.common.wire import WireError

FILE: dict[str, Any] = {
    "service": "vllm-minimax-m25",
    "model": "MiniMaxAI/MiniMax-M2.5",
    "repo": "MiniMaxAI/MiniMax-M2.5",
    "commit": "c" * 40,
    "weights_bytes": 230_113_000_000,
    "engine": {"package": "vllm", "version": "0.32.0"},
    "argv": ["bin/vllm", "serve"],
    "environment": ["NCCL_PROTO"],
    "placement": {"gpus": ["GPU-1"], "numa_nodes": [None], "tensor_parallel_size": 1},
    "host": {"driver": "580.95.05"},
    "started": 1_795_553_811.0,
    "ready": 1_795_554_000.5,
    "invocation": "0123456789abcdef" * 2,
    "seconds": {"stop": 3.9, "load": 189},
    "warm": {"bytes": 230_113_000_000.0, "seconds": 92.0},
    "phases": {"import": 10.0},
    "journal": ["a line"],
    "replaced": ["vllm-kimi-k25.service"],
    "format": 1,
    "unit": "vllm-minimax-m25.service",
    "throughput": {
        "measured": 1_795_555_000,
        "tool": "vllm bench serve 0.32.0",
        "load": {"input_tokens": 1024, "output_tokens": 256, "requests": 4},
        "rungs": [
            {
                "concurrency": 1,
                "requests": 4,
                "output_tokens_per_second": 61.2,
                "ttft_ms_median": 120.0,
                "ttft_ms_p99": 140.0,
                "tpot_ms_median": 16.1,
                "tpot_ms_p99": 16.9,
            }
        ],
        "others": 0,
        "accepted": True,
    },
}
"""As version 0.1.0 wrote it."""


def test_a_file_of_format_1_is_read() -> None:
    found = StartRecord.from_json(FILE)
    assert (found.unit, found.engine.version, found.seconds.load) == (
        "vllm-minimax-m25.service",
        "0.32.0",
        189.0,
    )
    assert found.throughput is not None
    assert found.throughput.rungs == (Rung(1, 4, 61.2, 120.0, 140.0, 16.1, 16.9),)
    assert found.throughput.rates == {1: 61.2}
    assert found.throughput.load == Load(1024, 256, 4)
    assert StartRecord.from_json(json.loads(json.dumps(found.to_json()))) == found
    assert found.file_name == "1795554000-01234567.json"
    assert re.fullmatch(FILE_NAME, found.file_name)


def test_what_was_declared_stands_beside_what_was_seen() -> None:
    declared = Declared(service="s", engine=RecordedEngine("vllm", "0.32.0"))
    found = StartRecord(**vars(declared), unit="s.service", invocation="a" * 32, ready=1.0)
    assert found.to_json().items() >= declared.to_json().items()
    assert Declared.from_json(found.to_json()) == declared


def test_what_a_later_version_notes_is_passed_over() -> None:
    later: dict[str, Any] = {**FILE, "more": 1, "engine": {"version": "1", "more": 1}}
    assert StartRecord.from_json(later).engine == RecordedEngine("", "1")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"format": 2}, "format: a whole number instead of 1"),
        ({"phases": {"load": -1}}, "phases.load: not from 0 to 1e"),
        ({"seconds": {"load": 1e13}}, "seconds.load: not from 0 to 1e"),
        ({"weights_bytes": 1 << 63}, "weights_bytes: not from 0"),
        ({"ready": None}, "ready: nothing instead of a finite number"),
        ({"throughput": "fast"}, "throughput: text instead of an object"),
        ({"throughput": {}}, "throughput: no measured"),
    ],
)
def test_a_damaged_one_says_where(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(WireError, match=sentence):
        StartRecord.from_json({**FILE, **wrong})


RUNGS = st.builds(
    Rung, st.integers(1, 4096), st.integers(0, 1 << 40), *[st.floats(0, 1e12) for _ in range(5)]
)


@given(
    st.builds(
        Measurement,
        st.integers(0, 1 << 40),
        st.builds(Load, st.integers(), st.integers(), st.integers()),
        st.lists(RUNGS).map(tuple),
        st.text(),
        st.integers(),
        st.booleans(),
    )
)
def test_a_measurement_is_read_as_it_was_written(value: Measurement) -> None:
    assert Measurement.from_json(json.loads(json.dumps(value.to_json()))) == value
    assert all("nan" not in rung.line and "inf" not in rung.line for rung in value.rungs)


MEASUREMENTS = st.fixed_dictionaries(
    {"measured": st.just(1) | st.floats(), "load": st.just(FILE["throughput"]["load"])},
    optional={
        "rungs": st.none()
        | st.lists(
            st.none()
            | st.dictionaries(
                st.sampled_from(sorted(FILE["throughput"]["rungs"][0])),
                st.none() | st.integers() | st.floats() | st.text(),
            )
            | st.builds(dict, st.just(FILE["throughput"]["rungs"][0]), concurrency=st.integers())
        ),
        "accepted": st.none() | st.booleans(),
    },
)


@given(MEASUREMENTS | st.none() | st.text())
def test_any_throughput_is_a_measure_or_damage(recorded: Any) -> None:
    try:
        found = StartRecord.from_json({**FILE, "throughput": recorded}).throughput
    except WireError:
        return
    rates = {} if found is None else found.rates
    assert all(users > 0 and 0 <= rate <= 1e12 for users, rate in rates.items())
