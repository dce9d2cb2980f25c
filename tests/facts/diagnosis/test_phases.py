"""Phases of starts that are under way, and what is left of them."""

from __future__ import annotations

import pytest

from facts.journal.lines import read_journal
from facts.journal.phases import phases
from inventory.common.start_phases import seconds_left
from tests.facts.diagnosis.journals import text_of


def test_phases_of_a_start_that_is_under_way() -> None:
    text = text_of("recreated-healthy-tp4-all-phases")
    whole = phases(read_journal(text))
    cut = text[: text.index("Starting torch.compile")].rpartition("\n")[0]
    now = phases(read_journal(cut))
    assert now.current is not None
    assert now.current.name == "compile"
    left = seconds_left(now.current.name, now.current.seconds, whole.seconds)
    assert left == pytest.approx(whole.total - now.total, abs=2)
