"""How much an idle GPU may show as used."""

from __future__ import annotations

import pytest

from inventory.common.gpu import idle_limit
from inventory.common.units import MIB


@pytest.mark.parametrize(
    ("total", "reserve"),
    [(81_559, 479), (143_771, 614), (183_359, 726)],
    ids=["H100", "H200", "B200"],
)
def test_the_reserve_that_an_older_driver_counts_is_idle(total: int, reserve: int) -> None:
    assert reserve * MIB <= idle_limit(total * MIB) < 2 * 1024 * MIB


def test_a_card_that_does_not_tell_its_size() -> None:
    assert idle_limit(0) == 500 * MIB
