"""Phases of starts that are under way, and what is left of them."""

from __future__ import annotations

import pytest

from facts.diagnosis import phases, read_journal
from inventory.common.start_phases import seconds_left
from tests.facts.diagnosis.journals import Made, text_of


def test_phases_of_a_start_that_is_under_way() -> None:
    text = text_of("recreated-healthy-tp4-all-phases")
    whole = phases(read_journal(text))
    cut = text[: text.index("Starting torch.compile")].rpartition("\n")[0]
    now = phases(read_journal(cut))
    assert now.current is not None
    assert now.current.name == "compile"
    left = seconds_left(now.current.name, now.current.seconds, whole.seconds)
    assert left == pytest.approx(whole.total - now.total, abs=2)
    assert whole.engine.gb_per_s == pytest.approx(214.31 * 1.0737 / 64.2, rel=0.01)


def test_phases_grow_with_the_clock() -> None:
    journal = read_journal(Made().banner().workers().text)
    last = journal.lines[-1].time
    assert last is not None
    early, late = phases(journal, now=last), phases(journal, now=last + 50)
    assert late.total - early.total == 50
