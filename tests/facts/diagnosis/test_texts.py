"""Texts of the catalogue are recognised in whatever way a journal shows them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from facts.diagnosis import from_text
from facts.journal.lines import read_journal
from facts.journal.phases import phases
from tests.facts.diagnosis.journals import NAMES, text_of
from tests.facts.diagnosis.texts import TEXTS, WAYS, Text, clock_set_back

IDS = [f"{nth}-{text.cause}" for nth, text in enumerate(TEXTS)]


@pytest.mark.parametrize("text", TEXTS, ids=IDS)
def test_text(text: Text) -> None:
    found = from_text(text.journal)
    assert found is not None
    assert found.cause == text.cause
    assert found.line.text[:40] in text.text
    assert found.next_step


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", TEXTS, ids=IDS)
def test_text_shown_in_another_way(text: Text, way: Callable[[str], str]) -> None:
    plain, found = from_text(text.journal), from_text(way(text.journal))
    assert plain is not None
    assert found is not None
    assert (found.cause, found.line.text) == (text.cause, plain.line.text)


@pytest.mark.parametrize("name", NAMES)
def test_a_clock_that_is_set_back_makes_no_negative_phases(name: str) -> None:
    found = phases(read_journal(clock_set_back(text_of(name))))
    assert all(part.seconds >= 0 for part in found.parts)
    assert found.total >= 0
