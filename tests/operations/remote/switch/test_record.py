"""The record on the box: whole or not there, and never in the way."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.common.record import RecordedSeconds, StartRecord
from inventory.common.throughput import Load, Measurement
from operations.remote.switch.record import KEPT, amend, good_text, keep_good, last, save
from tests.facts.history.recorded import NOW, TP4, record

UNIT = "vllm-minimax-m25.service"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


MEASURED = Measurement(int(NOW), Load(1024, 256, 4), ())


def start(number: int, **more: Any) -> StartRecord:
    return record(TP4, UNIT, ready=NOW + number, invocation=f"{number:08x}" * 4, journal=[], **more)


def test_the_last_is_the_newest(tmp_path: Path) -> None:
    assert last(UNIT, tmp_path) is None
    first = save(start(1), tmp_path)
    assert first == tmp_path / UNIT / f"{int(NOW) + 1}-00000001.json"
    save(start(10), tmp_path)
    save(start(9), tmp_path)
    assert last(UNIT, tmp_path) == start(10)
    assert last("another.service", tmp_path) is None


def test_files_are_readable_by_all_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        path = save(start(1), tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_the_newest_are_kept(tmp_path: Path) -> None:
    for number in range(KEPT + 3):
        save(start(number), tmp_path)
    names = sorted(path.name for path in (tmp_path / UNIT).iterdir())
    assert len(names) == KEPT
    assert names[0] == f"{int(NOW) + 3}-00000003.json"


def test_an_old_draft_goes_and_a_fresh_one_stays(tmp_path: Path) -> None:
    folder = save(start(1), tmp_path).parent
    old, fresh = folder / ".boxwright.old", folder / ".boxwright.fresh"
    for path in (old, fresh):
        path.write_text("{")
    os.utime(old, (0, 0))
    save(start(2), tmp_path)
    assert (old.exists(), fresh.exists()) == (False, True)


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b'{"format": 1, "invoc',
        b"\xff\xfe",
        b"[]",
        b"[" * 100_000,
        b'{"format": 2, "invocation": "00000009"}',
        b'{"format": 1}',
        b'{"service": "s", "unit": "s.service", "ready": 1, "invocation": "00000009", '
        b'"phases": {"load": "long"}}',
    ],
    ids=["empty", "cut", "no-utf8", "list", "deep", "later", "nobody", "phases"],
)
def test_a_damaged_entry_is_passed_over(tmp_path: Path, damage: bytes) -> None:
    folder = save(start(1), tmp_path).parent
    (folder / f"{int(NOW) + 9}-00000009.json").write_bytes(damage)
    assert last(UNIT, tmp_path) == start(1)
    assert amend(UNIT, start(1).invocation, MEASURED, tmp_path)


def test_what_is_no_file_of_ours_is_passed_over(tmp_path: Path) -> None:
    folder = save(start(1), tmp_path).parent
    (folder / "notes.txt").write_text("by hand")
    (folder / f"{int(NOW) + 9}-00000009.json").mkdir()
    assert last(UNIT, tmp_path) == start(1)
    save(start(2), tmp_path)
    assert (folder / "notes.txt").exists()


def test_an_entry_without_read_permission_is_no_crash(tmp_path: Path) -> None:
    folder = save(start(1), tmp_path).parent
    (folder / f"{int(NOW) + 9}-00000009.json").symlink_to("/nowhere")
    assert last(UNIT, tmp_path) == start(1)


@given(content=JSON)
def test_any_json_is_no_crash(tmp_path_factory: pytest.TempPathFactory, content: Any) -> None:
    root = tmp_path_factory.mktemp("any")
    folder = root / UNIT
    folder.mkdir(parents=True)
    (folder / f"{int(NOW)}-00000009.json").write_text(json.dumps(content))
    assert last(UNIT, root) is None
    assert not amend(UNIT, "00000009", MEASURED, root)


def test_throughput_is_added_to_the_start_that_it_belongs_to(tmp_path: Path) -> None:
    for number in (1, 2):
        save(start(number), tmp_path)
    want = start(2, throughput=MEASURED.to_json())
    assert amend(UNIT, start(2).invocation, MEASURED, tmp_path) == want
    assert last(UNIT, tmp_path) == want
    assert not amend(UNIT, "f" * 32, MEASURED, tmp_path)
    files = sorted((tmp_path / UNIT).iterdir())
    assert json.loads(files[0].read_text()) == start(1).to_json()


def test_what_a_later_version_noted_stays_where_throughput_is_added(tmp_path: Path) -> None:
    path = save(start(1), tmp_path)
    path.write_text(json.dumps({**start(1).to_json(), "more": {"a": 1}}))
    assert amend(UNIT, start(1).invocation, MEASURED, tmp_path)
    assert json.loads(path.read_text())["more"] == {"a": 1}


@pytest.mark.parametrize(
    "unit", ["../x.service", "a/b.service", ".service", "x.timer", "a b.service"]
)
def test_a_name_that_is_no_service_leads_nowhere(tmp_path: Path, unit: str) -> None:
    for use in (
        lambda: save(replace(start(1), unit=unit), tmp_path),
        lambda: good_text(unit, tmp_path),
    ):
        with pytest.raises(ValueError, match="not the name of a service"):
            use()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "wrong", [{"ready": -5.0}, {"invocation": "short"}, {"invocation": "../../xx"}]
)
def test_an_entry_that_is_none_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not hold a time and an InvocationID"):
        save(replace(start(1), **wrong), tmp_path)
    with pytest.raises(ValueError, match="JSON"):
        save(replace(start(1), seconds=RecordedSeconds(load=float("nan"))), tmp_path)
    assert last(UNIT, tmp_path) is None


def test_the_good_unit_is_kept_as_it_was(tmp_path: Path) -> None:
    units = tmp_path / "units"
    units.mkdir()
    text = "[Service]\nExecStart=/bin/true\n# é\n"
    (units / UNIT).write_text(text)
    (units / UNIT).chmod(0o640)
    assert good_text(UNIT, tmp_path) is None
    keep_good(UNIT, tmp_path, units)
    (units / UNIT).write_text("broken")
    assert good_text(UNIT, tmp_path) == text
    assert stat.S_IMODE((tmp_path / UNIT).stat().st_mode) == 0o640
    (units / UNIT).write_bytes(b"[Service]\n# \xff\n")
    keep_good(UNIT, tmp_path, units)
    assert good_text(UNIT, tmp_path) == "[Service]\n# \ufffd\n"
    with pytest.raises(FileNotFoundError):
        keep_good("vllm-none.service", tmp_path, units)
    assert good_text("vllm-none.service", tmp_path) is None


def test_killed_while_writing_leaves_the_whole_entry(tmp_path: Path) -> None:
    """Writers that are killed at any moment: the newest readable entry is whole at each."""
    code = (
        "import sys; from pathlib import Path\n"
        "from inventory.common.record import StartRecord\n"
        "from inventory.common.throughput import Load, Measurement\n"
        "from operations.remote.switch.record import save, amend\n"
        "root, more = Path(sys.argv[1]), Measurement(1, Load(1, 1, 1), ())\n"
        f"e = dict(service='s', unit={UNIT!r}, ready={NOW}, invocation='a' * 32)\n"
        "e = StartRecord(**e, journal=('x' * 1000,) * 200)\n"
        "save(e, root); print(flush=True)\n"
        "while True: amend(e.unit, e.invocation, more, root)\n"
    )
    for _ in range(5):
        writer = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout
        writer.stdout.readline()
        for _ in range(20):
            found = last(UNIT, tmp_path)
            assert found is not None
            assert len(found.journal) == 200
        writer.kill()
        writer.wait()
        writer.stdout.close()
        found = last(UNIT, tmp_path)
        assert found is not None
        assert len(found.journal) == 200
