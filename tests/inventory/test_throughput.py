"""What may be declared as a measurement of throughput."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.catalogue import MINIMAX_M25
from inventory.errors import DesiredStateError
from inventory.override import overridden
from inventory.throughput import Throughput

LADDERS = st.lists(st.integers(1, 4096), max_size=6, unique=True).map(sorted).map(tuple)


@given(LADDERS)
def test_the_single_stream_is_always_a_rung_and_the_first(ladder: tuple[int, ...]) -> None:
    rungs = Throughput(concurrency=ladder).rungs
    assert rungs[0] == 1
    assert set(rungs) == {1, *ladder}
    assert list(rungs) == sorted(rungs)


@given(LADDERS, LADDERS, st.integers(1, 9), st.integers(1, 9))
def test_another_load_has_another_digest(
    one: tuple[int, ...], two: tuple[int, ...], few: int, many: int
) -> None:
    first = Throughput(concurrency=one, requests=few)
    second = Throughput(concurrency=two, requests=many)
    same = (first.rungs, first.load) == (second.rungs, second.load)
    assert (first.digest == second.digest) is same


def test_the_threshold_is_no_part_of_the_load() -> None:
    assert Throughput(regression=0.5, timeout_seconds=60).digest == Throughput().digest


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"concurrency": (8, 1)}, "ascend"),
        ({"concurrency": (1, 1)}, "ascend"),
        ({"concurrency": (0,)}, "concurrency"),
        ({"output_tokens": 1}, "output_tokens"),
        ({"regression": 1}, "regression"),
        ({"rungs": (1,)}, "there is no such field"),
    ],
)
def test_nonsense_is_refused_with_its_field(fields: dict[str, object], words: str) -> None:
    with pytest.raises(DesiredStateError, match=words):
        Throughput(**fields)


def test_a_load_longer_than_the_context_is_refused() -> None:
    short = {"engine": {"max_model_len": 1024}}
    with pytest.raises(DesiredStateError, match=r"are 1280 together, more than .*\(1024\)"):
        overridden(MINIMAX_M25, {"*": {**short, "throughput": {}}})
    fits = overridden(MINIMAX_M25, {"*": {**short, "throughput": {"input_tokens": 768}}})
    assert fits.throughput == Throughput(input_tokens=768)
    assert MINIMAX_M25.throughput is None
