"""Every row of the catalogue is recognised, and says what to do with the numbers in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from facts.diagnosis import from_text
from facts.diagnosis.diagnose import diagnose
from facts.diagnosis.rule import Rank
from facts.diagnosis.rules import HARMLESS, RULES
from facts.journal.lines import read_journal
from tests.facts.diagnosis.examples import EXAMPLES, Example
from tests.facts.diagnosis.journals import ENTRIES

IDS = [f"{nth}-{example.cause}" for nth, example in enumerate(EXAMPLES)]


@pytest.mark.parametrize("example", EXAMPLES, ids=IDS)
def test_example(example: Example) -> None:
    found = from_text(example.journal, example.kernel, example.hints)
    assert found is not None
    assert (found.cause, found.known) == (example.cause, True)
    assert example.line in found.line.text
    for piece in example.remedy:
        assert piece in found.next_step
    assert {name: found.numbers.get(name) for name in example.numbers} == example.numbers
    assert not re.search(r"\{[a-z_]+\}", found.why + found.next_step)


def test_every_rule_has_an_example() -> None:
    """By cause and title: nothing in the catalogue is untested."""
    seen = set()
    for example in EXAMPLES:
        found = diagnose(read_journal(example.journal), example.kernel, example.hints)
        assert found is not None
        seen.add((found.cause, found.title))
    recorded = {entry["root_cause_id"] for entry in ENTRIES}
    missing = {
        (rule.cause, rule.title)
        for rule in RULES
        if rule.rank is not Rank.ECHO
        and (rule.cause, rule.title) not in seen
        and rule.cause not in recorded
    }
    assert missing == set()


def test_no_module_needs_a_host() -> None:
    """The package is a function of texts: it imports neither pyinfra nor what does."""
    modules = sorted((Path(__file__).parents[3] / "facts" / "diagnosis").rglob("*.py"))
    assert len(modules) > len(RULES) / 10
    for module in modules:
        assert not re.search(
            r"(?m)^\s*(?:from|import) (?:pyinfra|facts\.box|operations|deploys)\b",
            module.read_text(),
        )


def test_rules_are_complete() -> None:
    for rule in (*RULES, *HARMLESS):
        assert re.fullmatch(r"[MPADHCS]\d{1,2}[a-z]?(-[a-z-]+)?", rule.cause), rule.cause
        assert rule.title, rule.cause
        assert rule.source, rule.cause
        assert rule.patterns, rule.cause
    assert {rule.rank for rule in HARMLESS} == {Rank.HARMLESS}
