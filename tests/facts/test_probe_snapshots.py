"""The probe's look at a snapshot and at what lies beside it, run by sh on real folders."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
from pathlib import Path

import pytest

from facts.actual import Actual, read_actual
from facts.query import Query, script
from inventory.common.paths import FETCHING, INCOMING, MANIFEST, USERS

WANT, OLD = "a" * 40, "b" * 40
OWN = Path("/proc/sys/kernel/hostname").read_text().strip()
PROVEN = {
    "repo": "o/n",
    "commit": OLD,
    "problem": "",
    "files": [
        {"path": "x", "size": 3, "modified_ns": 1, "inode": 1, "digest": "sha256:" + "0" * 64}
    ],
}


def probe(home: Path, neighbours: bool = True, caches: tuple[str, ...] = ()) -> Actual:
    me = pwd.getpwuid(os.getuid()).pw_name
    query = Query(snapshot=str(home / WANT), neighbours=neighbours, caches=caches, account=me)
    done = subprocess.run(
        ["sh"], input=script(query, "cafe"), capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return read_actual(done.stdout, "cafe")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A repository's folder: the wanted commit, an older one, an interrupted fetch."""
    for name in (WANT, OLD):
        (tmp_path / name / USERS).mkdir(parents=True)
        (tmp_path / name / MANIFEST).write_text(json.dumps(PROVEN))
        (tmp_path / name / "x").write_bytes(b"x" * 70_000)
    (tmp_path / f"{FETCHING}{WANT}" / "sub").mkdir(parents=True)
    (tmp_path / f"{FETCHING}{WANT}" / "sub" / "y").write_bytes(b"yy")
    (tmp_path / f"{INCOMING}{OLD}").mkdir()
    (tmp_path / f"{INCOMING}{OLD}" / "z").write_bytes(b"zzz")
    return tmp_path


def test_a_snapshot_to_the_nanosecond_and_the_inode(home: Path) -> None:
    (file,) = probe(home).snapshot.files
    found = (home / WANT / "x").stat()
    assert (file.path, file.size) == ("x", 70_000)
    assert (file.modified_ns, file.inode) == (found.st_mtime_ns, found.st_ino)


def test_what_lies_beside_is_read_only_where_it_matters(home: Path) -> None:
    assert not probe(home, neighbours=False).neighbours.read
    (home / WANT / MANIFEST).unlink()
    assert probe(home, neighbours=False).neighbours.read


def test_neighbours_with_what_they_hold_and_free(home: Path) -> None:
    beside = probe(home).neighbours
    assert beside.read
    assert {path: size for path, (size, _) in beside.staged.items()} == {
        f"{WANT}/sub/y": 2,
        f"{OLD}/z": 3,
    }
    assert beside.proven == {"sha256:" + "0" * 64}
    old = next(one for one in beside.snapshots if one.name == OLD)
    assert 70_000 <= old.frees < 100_000
    assert (old.units, old.processes, old.boxes) == ((), (), ())
    (home / "link").hardlink_to(home / OLD / "x")
    old = next(one for one in probe(home).neighbours.snapshots if one.name == OLD)
    assert old.frees < 10_000, "a linked file frees nothing"


def test_a_process_and_other_boxes_hold_a_snapshot_and_the_box_itself_does_not(
    home: Path,
) -> None:
    for name in ("another", OWN):
        (home / OLD / USERS / name).touch()
    with (
        (home / OLD / "x").open("rb") as held,
        subprocess.Popen(["sleep", "60"], stdin=held) as reader,
    ):
        held.close()
        beside = probe(home).neighbours
        reader.kill()
    old = next(one for one in beside.snapshots if one.name == OLD)
    assert old.processes == (reader.pid,)
    assert old.boxes == ("another",)


def test_cached_blobs_count_on_the_same_file_system(home: Path) -> None:
    cache = home / "cache" / "models--o--n"
    (cache / "blobs").mkdir(parents=True)
    (cache / "blobs" / ("1" * 64)).write_bytes(b"12345")
    assert probe(home, caches=(str(cache),)).neighbours.cached == {"1" * 64: 5}
    assert probe(home, caches=("/nowhere",)).neighbours.cached == {}
