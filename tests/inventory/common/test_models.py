"""What a server says of its models."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inventory.common.models import models


@given(st.binary() | st.text().map(str.encode))
def test_any_answer_can_be_read(text: bytes) -> None:
    assert isinstance(models(text), tuple)


def test_a_list_of_models() -> None:
    one, two, three = b'{"id": "a", "max_model_len": 8}', b'{"id": "b"}', b'{"id": 3}'
    text = b'{"data": [' + b",".join((one, two, three)) + b"]}"
    assert models(text) == (("a", 8), ("b", None), ("3", None))
    assert models(b'{"data": [1]}') == models(b"[]") == models(b"<html>") == ()
