"""The records as the fact reads them: by the shell on real files, whatever these hold."""

from __future__ import annotations

import json
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.reading.records import read_records, records_from_json
from facts.record import script
from facts.sections import MISSING, Section, sections
from inventory.base import Unknown
from inventory.common.record import StartRecord
from operations.remote.switch.record import save
from tests.facts.history.recorded import NOW, OLD, TP4, entry, record

UNIT, OTHER = "vllm-minimax-m25.service", "vllm-kimi-k25.service"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
KEYS = st.sampled_from([*(one.name for one in fields(StartRecord)), "later"])


def read(root: Path, **asked: Any) -> tuple[StartRecord | Unknown, ...]:
    done = subprocess.run(
        ["sh"],
        input=script("cafe", records=str(root), **asked),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    found = read_records(sections(done.stdout, "cafe"))
    assert not isinstance(found, Unknown), found
    return found


def times(found: tuple[StartRecord | Unknown, ...]) -> list[float]:
    assert all(isinstance(one, StartRecord) for one in found), found
    return [one.ready - NOW for one in found if isinstance(one, StartRecord)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three starts of one service, one of another."""
    for number in (1, 2, 11):
        save(record(TP4, UNIT, ready=NOW + number), tmp_path / "record")
    save(record(OLD, OTHER, gpus=8, ready=NOW + 5), tmp_path / "record")
    return tmp_path / "record"


def test_what_was_saved_is_what_is_read(root: Path) -> None:
    found = read(root)
    assert times(found) == [11, 5, 2, 1]
    first = found[0]
    assert isinstance(first, StartRecord)
    saved = entry(TP4, UNIT, gpus=4, ready=NOW + 11)
    want = {**saved, "host": {"kernel": None, "driver": "580.95.05"}}
    assert {key: first.to_json()[key] for key in saved} == want
    assert first.placement.numa_nodes == (0,)


def test_only_what_was_asked_for(root: Path) -> None:
    assert times(read(root, unit=OTHER)) == [5]
    assert times(read(root, newest=1)) == [11, 5]
    assert read(root, unit="none.service") == ()


def test_no_folder_is_no_record(tmp_path: Path) -> None:
    assert read(tmp_path / "record") == ()
    (tmp_path / "record").mkdir()
    assert read(tmp_path / "record") == ()


def test_a_damaged_entry_is_unknown_and_the_others_are_read(root: Path) -> None:
    folder = root / UNIT
    later = int(NOW) + 50
    (folder / f"{later}-0000000a.json").write_text('{"format": 1, "serv')
    (folder / f"{later}-0000000b.json").write_text('{"format": 7, "new": 1}')
    (folder / f"{later}-0000000c.json").write_text('{"format": 1, "service": "x"}')
    (folder / f"{later}-0000000d.json").mkdir()
    (folder / f"{later}-0000000e.json").write_text("@@cafe end 0\n")
    (folder / f"{later}-0000000f.json").write_text(
        json.dumps({**entry(TP4, UNIT, gpus=4), "phases": {"load": -1}})
    )
    (folder / "a file; $(touch x)").write_text("no entry")
    (root / "a b.service").mkdir()
    found = read(root)
    assert times(found[:4]) == [11, 5, 2, 1]
    reasons = [one.unknown for one in found[4:] if isinstance(one, Unknown)]
    assert len(reasons) == len(found) - 4 == 6
    assert all(reason.startswith(f"{UNIT}/{later}-") for reason in reasons)
    for words in (
        "not whole",
        "format that",
        "no unit",
        "s a directory",
        "phases.load",
    ):
        assert any(words.lower() in reason.lower() for reason in reasons), (words, reasons)


def test_a_file_that_is_far_too_large_is_damaged(root: Path) -> None:
    path = root / UNIT / f"{int(NOW) + 50}-0000000a.json"
    path.write_text(json.dumps({"format": 1, "journal": ["x" * (2 << 20)]}))
    assert [one.unknown for one in read(root) if isinstance(one, Unknown)] == [
        f"{UNIT}/{path.name}: is not whole"
    ]


def test_unread_is_not_empty() -> None:
    assert read_records({"records": MISSING}) == Unknown(unknown="the records were not read")
    assert read_records({"records": Section(2, ("ls: Permission denied",))}) == Unknown(
        unknown="ls: Permission denied"
    )


def test_printed_and_read_again(root: Path) -> None:
    (root / UNIT / f"{int(NOW) + 50}-0000000a.json").write_text("{")
    found = read(root)
    printed = json.loads(json.dumps([one.to_json() for one in found]))
    assert records_from_json(printed) == found
    assert records_from_json({"unknown": "no root"}) == Unknown(unknown="no root")


@given(value=JSON, more=st.dictionaries(KEYS, JSON))
def test_any_entry_is_a_record_or_says_why_not(value: Any, more: dict[str, Any]) -> None:
    texts = [json.dumps(value), json.dumps({**entry(TP4, UNIT, gpus=4), **more}), str(value)]
    found = read_records(
        {
            "records": Section(0),
            **{f"record:u/{n}": Section(0, (text,)) for n, text in enumerate(texts)},
        }
    )
    assert not isinstance(found, Unknown)
    assert len(found) == 3
    assert all(isinstance(one, StartRecord) or one.unknown for one in found)
    printed = [one.to_json() for one in found]
    assert records_from_json(json.loads(json.dumps(printed, allow_nan=False))) == found
    records_from_json(value)
