"""nvidia-smi's words: an absent value is no number, and an error is no absent value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.common.smi import APPS, cells, is_absent, is_integrated, mig, whole


@given(st.text())
def test_any_cell_can_be_read(text: str) -> None:
    assert whole(text) is None or str(whole(text)) == (text.lstrip("0") or "0")
    assert not (is_absent(text) and whole(text) is not None)
    row = cells(text, APPS)
    assert row is None or len(row) == len(APPS)


@pytest.mark.parametrize(
    ("cell", "cut"),
    [("Enabled", True), ("Disabled", False), ("[N/A]", False), ("[Unknown Error]", None)],
)
def test_whether_a_card_is_cut(cell: str, cut: bool | None) -> None:
    assert mig(cell) is cut


def test_cards_without_memory_of_their_own_are_known_by_name() -> None:
    assert is_integrated("NVIDIA GB10")
    assert not is_integrated("NVIDIA GB200")
