"""Any two starts: the sums hold, the product holds, nothing missing becomes a number."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.history.comparison import compare, history
from facts.history.measured import Measured
from facts.history.parts import READING
from facts.history.render import render
from inventory.common.record import RecordedSeconds, StartRecord
from inventory.common.start_phases import PHASES
from tests.facts.history.recorded import NOW, TP4, measured, record, sums_hold

WHOLE = measured(TP4)
numbers = st.floats(min_value=0, max_value=1e6) | st.sampled_from([0.0, 1e-9])
phase_names = st.sampled_from([*PHASES, "answer"])
figures = st.none() | st.floats(min_value=-1e6, max_value=1e6) | st.just(0.0)


@st.composite
def starts(draw: st.DrawFn) -> Measured:
    """Any start: whatever is missing, zero, or does not go together."""
    return WHOLE.model_copy(
        update={
            "total": draw(st.none() | numbers),
            "phases": draw(st.dictionaries(phase_names, numbers)),
            "eager": draw(st.booleans()),
            "compilation": draw(st.sampled_from([None, "cold", "warm", "none"])),
            "weights_bytes": draw(st.none() | st.integers(0, 1 << 62)),
            "weights_s": draw(st.none() | numbers),
            **{
                name: draw(figures)
                for name in ("stop_s", "downtime_s", "kv_cache_gib", "max_concurrency")
            },
        }
    )


@given(this=starts(), that=starts())
def test_the_parts_add_up_whatever_is_missing(this: Measured, that: Measured) -> None:
    found = compare(this, that)
    assert sums_hold(found)
    covered = [phase for part in found.parts for phase in part.phases]
    once = [one for part in found.parts if part.name != READING for one in part.phases]
    assert len(once) == len(set(once))
    if found.parts:
        both = this.phases.keys() & that.phases.keys()
        assert both <= set(covered)
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))


@given(this=starts(), that=starts())
def test_the_read_is_a_product(this: Measured, that: Measured) -> None:
    read = compare(this, that).read
    if read is not None:
        assert read.bytes * read.rate == pytest.approx(read.seconds, rel=1e-9)
        assert min(read.bytes, read.rate, read.seconds) > 0
    else:
        sides = (this.weights_bytes, this.weights_s, that.weights_bytes, that.weights_s)
        assert any(side is None or side < 1e-6 for side in sides)


@given(this=starts(), that=starts())
def test_the_other_way_round_is_the_opposite(this: Measured, that: Measured) -> None:
    one, other = compare(this, that), compare(that, this)
    assert [part.difference for part in one.parts] == pytest.approx(
        [-part.difference for part in other.parts]
    )


@given(st.lists(starts(), max_size=4))
def test_any_history_can_be_shown(found: Sequence[Measured]) -> None:
    comparisons = [compare(found[0], other) for other in found[1:]] if found else []
    for one in comparisons:
        assert one.sentence
    records: Any = [
        StartRecord.from_json(
            {
                **record(TP4, journal=[]).to_json(),
                "ready": NOW + number,
                "phases": start.phases,
                "seconds": RecordedSeconds(load=start.total).to_json(),
                "weights_bytes": start.weights_bytes,
            }
        )
        for number, start in enumerate(found)
    ]
    text = render(history({"gpu1": tuple(records)}))
    assert text.count("vllm-minimax-m25") >= len(found)
