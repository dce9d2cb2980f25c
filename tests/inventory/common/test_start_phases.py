"""Seconds by phase, from any lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.common.start_phases import PHASES, PhaseEnds, following, seconds_left

SAYS = {
    "import": "non-default args: {}",
    "configuration": "Initializing a V1 LLM engine (v0.32.0)",
    "workers": "world_size=2 rank=0",
    "distributed": "Loading model from scratch...",
    "load": "Loading weights took 3 seconds",
    "compile": "torch.compile took 3.0 s in total",
    "profile": "GPU KV cache size: 8 tokens",
    "kernels": "JIT kernel warmup finished in 1s",
    "capture": "Graph capturing finished in 1 secs, took 1.3 GiB",
    "warm-up": "init engine (profile, create kv cache, warmup model) took 9 s",
    "server": "Application startup complete.",
}
BEFORE = st.dictionaries(st.sampled_from([*PHASES, "teardown", "x"]), st.floats(0, 1000))


def test_each_phase_has_its_line() -> None:
    ends = PhaseEnds()
    assert [ends.take(text, 0.0) for text in SAYS.values()] == list(PHASES)


@given(
    st.lists(st.tuples(st.sampled_from([*SAYS.values(), "x"]), st.floats(0, 2e9))),
    st.floats(0, 2e9),
    st.floats(0, 2e9),
)
def test_parts_follow_each_other_and_end_where_the_whole_ends(
    said: list[tuple[str, float]], began: float, until: float
) -> None:
    ends = PhaseEnds()
    for text, at in said:
        ends.take(text, at)
    parts, last = ends.split(began, until)
    assert set(parts) == {name for name, text in SAYS.items() if text in dict(said)}
    assert all(seconds >= 0 for seconds in parts.values())
    assert began <= last <= max(began, until)
    assert sum(parts.values()) == pytest.approx(last - began)


def test_the_first_rank_ends_a_phase_or_the_last() -> None:
    ends = PhaseEnds()
    for at in (2.0, 5.0):
        for phase in ("workers", "load"):
            ends.take(SAYS[phase], at)
    assert ends.at == {"workers": 2.0, "load": 5.0}


@given(st.sampled_from([*PHASES, "teardown"]), st.floats(0, 2000), BEFORE)
def test_what_is_left_falls_with_time_and_with_each_phase(
    phase: str, spent: float, before: dict[str, float]
) -> None:
    left = seconds_left(phase, spent, before)
    if phase == "teardown" or not set(before) & set(PHASES):
        assert left is None
        return
    assert left is not None
    assert 0 <= left <= sum(before.get(name, 0.0) for name in PHASES) + 1e-6
    later = seconds_left(phase, spent + 1, before)
    assert later is not None
    assert later <= left
    for other in following(phase)[:1]:
        assert seconds_left(other, 0.0, before) == pytest.approx(
            left - max(0.0, before.get(phase, 0.0) - spent)
        )


def test_what_is_left_of_a_known_start() -> None:
    assert seconds_left("load", 1, {"load": 5, "server": 2}) == 6
    assert seconds_left("teardown", 1, {"load": 5}) is None
    assert seconds_left("load", 1, {}) is None
