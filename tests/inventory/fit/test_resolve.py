"""What the engine fills in for a card by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.common.units import GIB
from inventory.fit.settings.resolve import default_max_num_seqs, most_utilisation


@pytest.mark.parametrize(
    ("gib", "name", "seqs"),
    [
        (79.18, "NVIDIA H100 80GB HBM3", 1024),
        (80, "NVIDIA A100-SXM4-80GB", 256),
        (79.25, "A100 80GB", 256),
        (94.97, "NVIDIA RTX PRO 6000 Blackwell Server Edition", 1024),
        (44.39, "NVIDIA L40S", 256),
        (79.18, "", 1024),
    ],
)
def test_sequences_of_a_card(gib: float, name: str, seqs: int) -> None:
    assert default_max_num_seqs(round(gib * GIB), name) == seqs


def test_older_engines_and_runners() -> None:
    assert default_max_num_seqs(24 * GIB, "RTX 3090", "V1", (0, 8, 4)) == 1024
    assert default_max_num_seqs(24 * GIB, "RTX 3090", "V1", (0, 8, 5)) == 256
    assert default_max_num_seqs(80 * GIB, "H100", "V0", (0, 7, 3)) == 256


@given(st.integers(min_value=2, max_value=64))
def test_several_gpus_leave_room_for_nccl(gpus: int) -> None:
    assert most_utilisation(gpus) == 0.93
    assert most_utilisation(1) == 1.0
