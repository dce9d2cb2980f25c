"""What crosses between controller and box."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.common.wire import Bounds, Wire, WireError


@dataclass(frozen=True)
class Inner(Wire):
    name: str
    size: int = 0


@dataclass(frozen=True)
class Outer(Wire):
    kind: Literal["a", "b"]
    seconds: float
    inner: Inner
    many: tuple[Inner, ...] = ()
    pair: tuple[str, int] = ("", 0)
    units: frozenset[str] = frozenset()
    place: Path | None = None
    share: Annotated[float, Bounds(0, 1)] | None = None
    times: Mapping[str, float] = field(default_factory=dict)
    anything: Any = None


@dataclass(frozen=True)
class Tolerant(Wire):
    tolerant: ClassVar[bool] = True
    name: str


INNERS = st.builds(Inner, st.text(), st.integers())
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.builds(
        Outer,
        st.sampled_from(["a", "b"]),
        FLOATS,
        INNERS,
        st.lists(INNERS).map(tuple),
        st.tuples(st.text(), st.integers()),
        st.frozensets(st.text()),
        st.none() | st.just(Path("/a")),
        st.none() | st.floats(0, 1),
        st.dictionaries(st.text(), FLOATS),
    )
)
def test_there_and_back(value: Outer) -> None:
    assert Outer.from_json(json.loads(json.dumps(value.to_json()))) == value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON | st.fixed_dictionaries({"kind": JSON, "seconds": JSON, "inner": JSON}))
def test_anything_else_is_one_kind_of_error(value: object) -> None:
    try:
        Outer.from_json(value)
    except WireError:
        return


GOOD = {"kind": "a", "seconds": 1, "inner": {"name": "n"}}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"seconds": True}, "seconds: bool instead of a finite number"),
        ({"seconds": float("nan")}, "seconds: a number instead of a finite number"),
        ({"inner": {"name": "n", "size": 1.5}}, "inner.size: a number instead of a whole number"),
        ({"inner": {}}, "inner: no name"),
        ({"kind": "c"}, "kind: text instead of 'a' or 'b'"),
        ({"many": [{"name": 1}]}, r"many\[0\].name: a whole number instead of text"),
        ({"seconds": 10**400}, "seconds: a whole number instead of a finite number"),
        ({"share": 1.5}, "share: not from 0 to 1"),
        ({"share": "half"}, "share: text instead of a finite number"),
        ({"pair": ["x"]}, "pair: list instead of a list"),
        ({"later": 1}, "Outer: unknown field later"),
        ({"times": {"x": None}}, "times.x: nothing instead of a finite number"),
    ],
)
def test_the_error_names_the_place(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(WireError, match=sentence):
        Outer.from_json({**GOOD, **wrong})


def test_an_error_never_shows_a_value() -> None:
    with pytest.raises(WireError) as caught:
        Outer.from_json({**GOOD, "seconds": "hf_secret"})
    assert "hf_secret" not in str(caught.value)


def test_what_a_later_version_notes_is_passed_over_where_that_is_said() -> None:
    assert Tolerant.from_json({"name": "n", "more": 1}) == Tolerant("n")
