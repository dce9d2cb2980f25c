"""nvidia-smi's words: an absent value is no number, and an error is no absent value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.common.smi import APPS, cells, idle_limit, is_absent, is_integrated, mig, whole
from inventory.common.units import MIB


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


@pytest.mark.parametrize(
    ("total", "reserve"),
    [(81_559, 479), (143_771, 614), (183_359, 726)],
    ids=["H100", "H200", "B200"],
)
def test_the_reserve_that_an_older_driver_counts_is_idle(total: int, reserve: int) -> None:
    assert reserve * MIB <= idle_limit(total * MIB) < 2 * 1024 * MIB


def test_a_card_that_does_not_tell_its_size() -> None:
    assert idle_limit(0) == 500 * MIB
