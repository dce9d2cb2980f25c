"""Every recorded journal is diagnosed as its index says."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

from facts.diagnosis import from_text
from facts.diagnosis.result import Diagnosis, explain
from facts.journal.lines import read_journal
from facts.journal.phases import phases
from tests.facts.diagnosis.journals import ENTRIES, MORE, NAMES, hints_of, text_of

FAILED = [entry for entry in ENTRIES if entry["root_cause_id"] is not None]
HEALTHY = [entry for entry in ENTRIES if entry["root_cause_id"] is None]
HANDLES = re.compile(
    r"--[a-z][a-z0-9-]+|\b[A-Z][A-Z0-9]+_[A-Z0-9_]+\b|\b[A-Z][a-z]+[A-Za-z]*=[\w-]*"
)
"""Flags, environment variables and directives in a remedy."""


def names(entries: list[dict[str, Any]]) -> list[str]:
    return [str(entry["name"]) for entry in entries]


@cache
def by_name(name: str) -> Diagnosis:
    entry = next(entry for entry in ENTRIES if entry["name"] == name)
    found = from_text(text_of(name), hints=hints_of(entry))
    assert found is not None
    return found


def diagnosed(entry: dict[str, Any]) -> Diagnosis:
    return by_name(entry["name"])


@pytest.mark.parametrize("entry", FAILED, ids=names(FAILED))
def test_cause_and_its_line(entry: dict[str, Any]) -> None:
    found = diagnosed(entry)
    assert found.cause == entry["root_cause_id"]
    # Where all ranks fail at the same allocation, the index names one of them.
    assert any(entry["root_line"] in quote.text for quote in (found.line, *found.same))
    lines = text_of(entry["name"]).split("\n")
    assert found.line.text.removesuffix("…") in lines[found.line.no - 1]
    generic = re.compile(r"Engine core initialization failed|EngineDeadError|failed to start\.$")
    assert not generic.search(found.line.text) or found.cause == "H19"
    assert found.line not in found.echoes


@pytest.mark.parametrize("entry", FAILED, ids=names(FAILED))
def test_numbers_and_remedy(entry: dict[str, Any]) -> None:
    """Every number is echoed; every flag, variable and directive of the index is proposed."""
    found = diagnosed(entry)
    assert {name: found.numbers.get(name) for name in entry["numbers"]} == entry["numbers"]
    told = explain(found)
    assert [handle for handle in HANDLES.findall(entry["remedy"]) if handle not in told] == []
    for text in (found.title, found.why, found.next_step, found.source):
        assert text
    assert not re.search(r"\{[a-z_]+\}", found.why + found.next_step)


@pytest.mark.parametrize("entry", HEALTHY, ids=names(HEALTHY))
def test_healthy_is_no_failure(entry: dict[str, Any]) -> None:
    assert from_text(text_of(entry["name"]), hints=hints_of(entry)) is None


@pytest.mark.parametrize("entry", HEALTHY, ids=names(HEALTHY))
def test_engine_numbers(entry: dict[str, Any]) -> None:
    engine = phases(read_journal(text_of(entry["name"]))).engine
    assert {name: getattr(engine, name) for name in entry["numbers"]} == entry["numbers"]


@pytest.mark.parametrize("entry", MORE, ids=names(MORE))
def test_more(entry: dict[str, Any]) -> None:
    found = from_text(text_of(f"more/{entry['name']}"))
    if entry["root_cause_id"] is None:
        assert found is None
        return
    assert found is not None
    assert found.cause == entry["root_cause_id"]
    assert entry["root_line"] in found.line.text
    assert {name: found.numbers.get(name) for name in entry["numbers"]} == entry["numbers"]
    assert [piece for piece in entry["remedy"] if piece not in found.next_step] == []


PHASES = {
    "import": "import_s",
    "configuration": "config_and_engine_spawn_s",
    "workers": "worker_spawn_s",
    "distributed": "distributed_init_s",
    "load": "load_s",
}
REPORTED = {
    "weights_s": "weights_reported_s",
    "model_load_s": "model_load_reported_s",
    "compile_s": "compile_reported_s",
    "jit_warmup_s": "jit_warmup_reported_s",
    "capture_s": "capture_reported_s",
    "init_engine_s": "init_engine_reported_s",
}


@pytest.mark.parametrize("entry", ENTRIES, ids=NAMES)
def test_phases(entry: dict[str, Any]) -> None:
    found = phases(read_journal(text_of(entry["name"])))
    wanted = entry["phases"]
    total = wanted.get("ready_s", wanted.get("until_exit_s"))
    if total is not None:
        assert found.total == pytest.approx(total, rel=0.02)
    assert found.ready == (None if "ready_s" not in wanted else pytest.approx(wanted["ready_s"]))
    if "until_exit_s" in wanted:
        assert found.until_exit == pytest.approx(wanted["until_exit_s"], abs=1)
    done = {part.name: part.seconds for part in found.parts if part.done}
    for name, key in PHASES.items():
        if name in done and key in wanted:
            assert done[name] == pytest.approx(wanted[key], abs=1), name
    for name, key in REPORTED.items():
        if key in wanted:
            assert getattr(found.engine, name) == pytest.approx(wanted[key], abs=0.5), name
