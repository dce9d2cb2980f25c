"""Reading weights into the page cache: what is read, what is left out, and when it ends."""

from __future__ import annotations

import doctest
import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from operations.remote.switch.page_cache import warm as module
from operations.remote.switch.page_cache.pagecache import (
    Room,
    cached,
    group_room,
    machine_room,
    room,
)
from operations.remote.switch.page_cache.warm import (
    BLOCK,
    ENOUGH,
    INDEX,
    Reading,
    chosen,
    warm,
    watch,
)

MIB = 1 << 20
PLENTY = Room(1 << 50, "the machine")


@pytest.fixture
def snapshot() -> Iterator[Path]:
    """Three shards and a tokenizer on a disk, none of it in the page cache."""
    # Not in pytest's folder: where /tmp is a tmpfs, files are always in memory.
    folder = Path("/var/tmp") / f"boxwright-warm-{os.getpid()}"  # noqa: S108
    folder.mkdir()
    for at in range(3):
        (folder / f"model-{at}.safetensors").write_bytes(os.urandom(5 * MIB + 100))
    (folder / "tokenizer.json").write_bytes(os.urandom(2 * MIB))
    (folder / "config.json").write_text("{}")
    forget(folder)
    yield folder
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def forget(folder: Path) -> None:
    """Take the files out of the page cache."""
    for path in folder.iterdir():
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def resident(path: Path) -> int:
    file = os.open(path, os.O_RDONLY)
    try:
        return cached(file, 0, path.stat().st_size)
    finally:
        os.close(file)


def run(folder: Path, allowed: Room | None = PLENTY) -> tuple[dict[str, float] | None, list[str]]:
    lines: list[str] = []
    return warm(folder, lines.append, bound=lambda _: allowed), lines


def test_it_reads_what_is_not_there_and_then_nothing(snapshot: Path) -> None:
    shard = snapshot / "model-1.safetensors"
    assert resident(shard) == 0
    result, lines = run(snapshot)
    assert result is not None
    assert result["bytes"] == 3 * (5 * MIB + 100) + 2 * MIB
    assert result["seconds"] > 0
    assert lines[0] == "warm: reading 0.0 of 0.0 GiB into the page cache"
    assert "GB/s" in lines[-1]
    # A machine short of memory takes single pages back at once.
    assert resident(shard) >= ENOUGH * shard.stat().st_size
    assert resident(snapshot / "tokenizer.json") >= ENOUGH * 2 * MIB
    assert run(snapshot) == (
        None,
        ["warm: skipped: 0.0 of 0.0 GiB are in the page cache already"],
    )


def test_it_reads_only_the_files_that_are_missing(snapshot: Path) -> None:
    warmed = snapshot / "model-2.safetensors"
    warmed.read_bytes()
    result, _ = run(snapshot)
    assert result is not None
    assert result["bytes"] == 2 * (5 * MIB + 100) + 2 * MIB


@pytest.mark.parametrize("allowed", [Room(MIB, "this control group"), Room(-1, "x"), None])
def test_it_is_skipped_where_memory_does_not_allow_it(snapshot: Path, allowed: Room | None) -> None:
    result, (line,) = run(snapshot, allowed)
    assert result is None
    assert "skipped" in line
    assert resident(snapshot / "model-0.safetensors") == 0


def test_it_stops_when_memory_gets_short(snapshot: Path) -> None:
    work, lines = Reading(total=10), list[str]()
    work.pieces.put((snapshot / "model-0.safetensors", 0, 5 * MIB))
    reader = threading.Thread(target=work.work, daemon=True)
    with work.lock:  # so the reader waits after its first block
        reader.start()
        watch(work, [reader], lines.append, 60, lambda: "no memory")
    reader.join(10)
    assert lines == ["warm: stopped: no memory"]
    assert work.done == BLOCK


def test_it_says_how_far_it_is(snapshot: Path) -> None:
    work, lines = Reading(total=1 << 30), list[str]()
    work.pieces.put((snapshot / "model-0.safetensors", 0, 5 * MIB))
    reader = threading.Thread(target=work.work, daemon=True)
    with work.lock:
        work.done = 1 << 29
        reader.start()
        watch(work, [reader], lines.append, 0.3, lambda: "no memory")
    reader.join(10)
    assert re.fullmatch(r"warm: 0\.5 of 1\.0 GiB read, [0-9.]+ GB/s, [0-9]+ s left", lines[0])


def test_a_disk_error_is_said_and_the_rest_is_read(snapshot: Path) -> None:
    work = Reading()
    memory = Path("/proc/self/mem")  # whose first page is an input/output error
    work.pieces.put((memory, 0, 4096))
    work.pieces.put((snapshot / "model-0.safetensors", 0, 100))
    work.pieces.put((memory, 4096, 4096))
    work.work()
    assert (work.broken, work.done) == ({memory: "Input/output error"}, 100)


def test_a_file_that_cannot_be_read_is_left_out(snapshot: Path) -> None:
    (snapshot / "model-9.safetensors").symlink_to(snapshot / "model-0.safetensors")
    (snapshot / "model-0.safetensors").unlink()
    result, lines = run(snapshot)
    assert result is not None
    assert result["bytes"] == 2 * (5 * MIB + 100) + 2 * MIB
    assert len(lines) == 2, "a link to nothing is no file"
    (snapshot / "model-9.safetensors").unlink()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert run(tmp_path / "none") == (
        None,
        [f"warm: skipped: {tmp_path}/none: No such file or directory"],
    )
    assert run(tmp_path) == (None, [f"warm: skipped: no weights in {tmp_path}"])


def test_the_index_says_which_shards_count() -> None:
    sizes = {"a.safetensors": 5, "b.safetensors": 5, "consolidated.safetensors": 9, INDEX: 2 * MIB}
    index = json.dumps({"weight_map": {"x": "b.safetensors", "y": "a.safetensors"}})
    assert chosen(sizes, index) == ("a.safetensors", "b.safetensors", INDEX)
    assert chosen(sizes, "{") == (*sorted(set(sizes) - {INDEX}), INDEX)


def test_other_formats_count_only_where_there_is_no_safetensors() -> None:
    sizes = {"pytorch_model.bin": 9 * MIB, "tokenizer.json": 2 * MIB, "README.md": 10}
    assert chosen(sizes, None) == ("pytorch_model.bin", "tokenizer.json")
    assert chosen({**sizes, "m.safetensors": 1}, None) == ("m.safetensors", "tokenizer.json")


@given(
    st.dictionaries(
        st.sampled_from(["a.safetensors", "b.safetensors", "c.bin", "d.json", "e.pth"]),
        st.integers(0, 1 << 40),
    ),
    st.none()
    | st.text()
    | st.sampled_from(['{"weight_map": 1}', "[]", '{"weight_map": {"k": 1}}']),
)
def test_only_files_that_are_there_are_chosen_once(
    sizes: dict[str, int], index: str | None
) -> None:
    names = chosen(sizes, index)
    assert set(names) <= set(sizes)
    assert len(set(names)) == len(names)


def test_the_machine_keeps_its_margin() -> None:
    text = "MemTotal:       1000 kB\nMemFree:          10 kB\nMemAvailable:    700 kB\n"
    assert machine_room(text) == Room(600 << 10, "the machine")
    assert machine_room("MemTotal: 1000 kB\n") is None


def test_a_control_group_bounds_what_is_read() -> None:
    stat = "anon 5\nfile 90\nactive_file 30\ninactive_file 20\nshmem 40\n"
    assert group_room("1000\n", "400\n", stat) == Room(1000 - 400 + 50 - 100, "this control group")
    assert group_room("max\n", "400\n", stat) is None
    assert group_room("", "", "") is None


def test_this_machine_has_a_bound() -> None:
    bound, tighter = room(0.0), room(0.5)
    assert bound is not None
    assert tighter is not None
    assert tighter.size < bound.size


@given(st.text(), st.text(), st.text())
@example("0", "0\x1f", "")  # str.strip takes this for a space, int does not
def test_any_text_of_a_control_group_is_read(limit: str, current: str, stat: str) -> None:
    found = group_room(limit, current, stat)
    assert found is None or found.of
    assert machine_room(stat) is None


def test_residency_of_a_part(snapshot: Path) -> None:
    path = snapshot / "model-0.safetensors"
    file = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead
        os.pread(file, BLOCK, 2 * BLOCK)
        assert cached(file, 0, 2 * BLOCK) == 0
        assert cached(file, 2 * BLOCK, BLOCK) == BLOCK
        assert cached(file, 0, path.stat().st_size) == BLOCK
        assert cached(file, 0, 0) == 0
        assert cached(-1, 0, BLOCK) == 0
    finally:
        os.close(file)


def test_examples() -> None:
    assert doctest.testmod(module).failed == 0
