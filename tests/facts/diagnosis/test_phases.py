"""Phases of starts that are under way, and what is left of them."""

from __future__ import annotations

import pytest

from facts.diagnosis import MILESTONES, Phase, Phases, phases, read_journal, remaining
from tests.facts.diagnosis.journals import Made, text_of


def test_phases_of_a_start_that_is_under_way() -> None:
    text = text_of("recreated-healthy-tp4-all-phases")
    whole = phases(read_journal(text))
    cut = text[: text.index("Starting torch.compile")].rpartition("\n")[0]
    now = phases(read_journal(cut))
    assert now.current is not None
    assert now.current.name == "compile"
    left = remaining(now, whole.seconds)
    assert left == pytest.approx(whole.total - now.total, abs=2)
    assert remaining(whole, whole.seconds) == 0
    assert remaining(now, {}) is None
    assert whole.engine.gb_per_s == pytest.approx(214.31 * 1.0737 / 64.2, rel=0.01)


def test_phases_grow_with_the_clock() -> None:
    journal = read_journal(Made().banner().workers().text)
    last = journal.lines[-1].time
    assert last is not None
    early, late = phases(journal, now=last), phases(journal, now=last + 50)
    assert late.total - early.total == 50


def test_nothing_remains_to_be_told_of_a_failed_start() -> None:
    failed = Phases(parts=(Phase(name="load", seconds=1, done=False),))
    assert remaining(failed, {"load": 5, "server": 2}) == 6
    dead = Phases(parts=(Phase(name="teardown", seconds=1, done=False),))
    assert remaining(dead, {"load": 5}) is None


def test_milestones_are_plain_strings() -> None:
    assert MILESTONES[0].phase == "import"
    assert all(isinstance(part, str) for stone in MILESTONES for part in stone)
