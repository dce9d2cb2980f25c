"""The books of simulated GPU memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.lab.simulated.gpus.books import Books, Holder, start_time

CARD, OTHER = "GPU-0", "GPU-1"


@pytest.fixture
def books(tmp_path: Path) -> Books:
    """Empty books whose memory comes back after 0.3 s."""
    return Books(tmp_path, release_seconds=0.3)


def sleeper() -> subprocess.Popen[bytes]:
    """A process that does nothing."""
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])


def test_a_holder_counts_while_it_lives(books: Books) -> None:
    books.hold(CARD, 100)
    books.hold(CARD, 300)
    books.hold(OTHER, 7)
    assert (books.used(CARD), books.used(OTHER), books.used("GPU-2")) == (300, 7, 0)
    assert books.holders()[0] == Holder(CARD, os.getpid(), 300, alive=True)
    books.drop(CARD)
    assert books.used(CARD) == 0


@pytest.mark.parametrize("beating", [True, False])
def test_memory_comes_back_a_while_after_the_end(books: Books, beating: bool) -> None:
    with sleeper() as process:
        books.hold(CARD, 100, pid=process.pid, beating=beating)
        process.kill()
    path = books.folder / f"{CARD}.{process.pid}"
    os.utime(path)
    ended = time.monotonic()
    assert books.holders() == [Holder(CARD, process.pid, 100, alive=False)]
    while books.used(CARD):
        assert time.monotonic() - ended < 10
        time.sleep(0.01)
    assert time.monotonic() - ended >= 0.29
    assert not list(books.folder.glob("GPU-*"))


def test_the_last_beat_dates_the_end(books: Books) -> None:
    with sleeper() as process:
        books.hold(CARD, 100, pid=process.pid, beating=True)
        process.kill()
    os.utime(books.folder / f"{CARD}.{process.pid}", (time.time() - 60,) * 2)
    assert books.used(CARD) == 0


def test_another_process_with_the_same_id_holds_nothing(books: Books) -> None:
    with sleeper() as process:
        books.hold(CARD, 100, pid=process.pid)
        path = books.folder / f"{CARD}.{process.pid}"
        entry = json.loads(path.read_text())
        assert entry["start"] == start_time(process.pid)
        path.write_text(json.dumps(entry | {"start": entry["start"] - 1}))
        assert [holder.alive for holder in books.holders()] == [False]
        process.kill()


def test_a_zombie_is_gone(books: Books) -> None:
    with sleeper() as process:
        books.hold(CARD, 100, pid=process.pid)
        process.kill()
        until = time.monotonic() + 10
        while start_time(process.pid) is not None:
            assert time.monotonic() < until
        assert not books.holders()[0].alive


def test_torn_and_foreign_files_hold_nothing(books: Books) -> None:
    (books.folder / f"{CARD}.77").write_text('{"start": 1, ')
    (books.folder / "mode.json").write_text("{}")
    (books.folder / f"{CARD}.77.ended").touch()
    assert books.holders() == []


def test_no_folder_no_holders(tmp_path: Path) -> None:
    assert Books(tmp_path / "none", 1.0).holders() == []
