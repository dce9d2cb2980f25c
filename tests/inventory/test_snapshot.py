"""The lock file: what a snapshot is, in text that git can diff."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.errors import DesiredStateError
from inventory.service import Model
from inventory.snapshot import (
    LocalSnapshot,
    Snapshot,
    SnapshotFile,
    lock_name,
    lock_text,
    read_lock,
)

MODEL = Model(repo="org/name")


def snapshot(*paths: str) -> Snapshot:
    files = tuple(
        SnapshotFile(path=path, size=index, digest=f"sha256:{index:064x}")
        for index, path in enumerate(paths)
    )
    return Snapshot(repo="org/name", revision="main", commit="a" * 40, files=files)


@given(
    st.lists(
        st.from_regex(r"\A[a-z]{1,5}(/[a-z0-9.\-]{1,8}[a-z])?\Z"),
        min_size=1,
        max_size=8,
        unique=True,
    )
)
def test_a_lock_reads_back_as_it_was_written(paths: list[str]) -> None:
    before = snapshot(*paths)
    text = lock_text(before)
    assert read_lock(text, "x.json", MODEL) == before
    assert json.loads(text)["commit"] == "a" * 40


def test_a_changed_file_is_one_changed_line() -> None:
    before = lock_text(snapshot("a", "b", "c")).splitlines()
    moved = snapshot("a", "b", "c").model_dump()
    moved["files"][1]["size"] = 99
    after = lock_text(Snapshot.model_validate(moved)).splitlines()
    assert sum(one != other for one, other in zip(before, after, strict=True)) == 1


def test_files_are_ordered_by_path() -> None:
    assert [file.path for file in snapshot("c", "a", "b").files] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "a//b", "a/../../b", ".", "", "a\nb", "a\\b", ".boxwright/x"]
)
def test_a_name_cannot_leave_the_folder(path: str) -> None:
    with pytest.raises(DesiredStateError):
        SnapshotFile(path=path, size=1, digest="sha256:" + "0" * 64)


@given(st.text())
def test_no_text_is_read_as_a_lock_by_accident(text: str) -> None:
    with pytest.raises(DesiredStateError) as caught:
        read_lock(text, "locks/x.json", MODEL)
    assert "locks/x.json" in caught.value.next_step


def test_the_lock_of_another_model_is_refused() -> None:
    text = lock_text(snapshot("a"))
    with pytest.raises(DesiredStateError, match="renamed or edited"):
        read_lock(text, "x", Model(repo="org/other"))
    with pytest.raises(DesiredStateError, match="renamed or edited"):
        read_lock(text, "x", Model(repo="org/name", revision="v2"))


def test_a_file_listed_twice_is_refused() -> None:
    with pytest.raises(DesiredStateError, match="twice"):
        snapshot("a", "a")


def test_lock_names_differ_where_models_do() -> None:
    names = {
        lock_name(Model(repo="a/b")),
        lock_name(Model(repo="a/b", revision="v1")),
        lock_name(Model(repo="a/c")),
    }
    assert len(names) == 3
    assert all("/" not in name for name in names)


def test_a_snapshot_on_a_box_says_where_it_is_and_what_it_is_called() -> None:
    local = LocalSnapshot.of(Model(repo="org/name", under="/srv"), snapshot("a"))
    assert local.folder == f"/srv/org/name/{'a' * 40}"
    assert local.incoming == f"/srv/org/name/.incoming-{'a' * 40}"
    assert local.label == f"org/name@{'a' * 12}"
    assert local.words == f"org/name at {'a' * 12}"
