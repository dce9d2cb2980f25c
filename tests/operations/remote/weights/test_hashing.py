"""Every byte hashed again: what is wrong is found, and nothing that is read ends without a word."""

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from inventory.common.fetch import ListedFile
from inventory.common.paths import MANIFEST
from operations.remote.weights import hashing
from operations.remote.weights.hashing import are_good
from operations.remote.weights.verify import strike_out, wrong_files
from tests.lab.hub import Hub, write_model
from tests.operations.remote.weights.fetching import (
    PROJECT,
    is_exact,
    listing,
    outcome,
    request_for,
)

# Where tests run side by side, this process has threads; on the box, the program has none then.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

SMALL = "lab/small"
MIB = 1 << 20
GIB = 1 << 30


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hub")
    write_model(root / SMALL, shards=3, shard_bytes=100_000)
    return root


def written(folder: Path, sizes: list[int]) -> list[ListedFile]:
    """Files of these sizes, no two with the same bytes, and what they should be."""
    files = []
    for number, size in enumerate(sizes):
        content = (f"{number} " * (size // 2 + 1)).encode()[:size]
        (folder / str(number)).write_bytes(content)
        files.append(ListedFile(str(number), size, f"sha256:{hashlib.sha256(content).hexdigest()}"))
    return files


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_slices_of_any_file_by_any_thread_make_its_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setattr(hashing, "WINDOW", MIB)
    files = written(tmp_path, [0, 1, MIB - 1, MIB, MIB + 1, 5 * MIB + 7, 3 * MIB, 9 * MIB])
    assert are_good(tmp_path, files, workers) == [True] * len(files)
    with (tmp_path / "5").open("r+b") as stream:
        stream.seek(4 * MIB)
        stream.write(b"x")
    (tmp_path / "3").write_bytes(b"short")
    (tmp_path / "6").unlink()
    (tmp_path / "7").rename(tmp_path / "elsewhere")
    (tmp_path / "7").symlink_to(tmp_path / "elsewhere")
    assert are_good(tmp_path, files, workers) == [
        True,
        True,
        True,
        False,
        True,
        False,
        False,
        False,
    ]


def test_a_git_digest_counts_as_well(tmp_path: Path) -> None:
    content = b"{}\n"
    (tmp_path / "config.json").write_bytes(content)
    digest = hashlib.sha1(b"blob 3\0" + content, usedforsecurity=False).hexdigest()
    assert are_good(tmp_path, [ListedFile("config.json", 3, f"git-sha1:{digest}")], 2) == [True]


def test_a_file_that_is_cut_short_while_it_is_hashed_is_named(tmp_path: Path) -> None:
    """The kernel ends a process that touches a mapped page which is gone, with SIGBUS."""
    files = written(tmp_path, [1000])
    with (tmp_path / "big.bin").open("wb") as stream:
        stream.truncate(64 * GIB)
    files.append(ListedFile("big.bin", 64 * GIB, f"sha256:{'0' * 64}"))
    entries = [{**vars(file), "modified_ns": 0, "inode": 0} for file in files]
    (tmp_path / MANIFEST).parent.mkdir()
    (tmp_path / MANIFEST).write_text(
        json.dumps({"repo": "o/n", "commit": "a" * 40, "problem": "", "files": entries})
    )
    command = [sys.executable, "-m", "operations.remote.weights.verify", "--workers", "2"]
    with subprocess.Popen(
        [*command, "--folder", str(tmp_path)],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        until_mapped(running.pid, tmp_path / "big.bin")
        os.truncate(tmp_path / "big.bin", 0)
        told, complaint = running.communicate(timeout=50)
    assert running.returncode == 1
    assert "cannot be mapped: reading each file instead" in told
    assert "verify failed: 1 files are not what the Hub lists: big.bin." in complaint


def until_mapped(parent: int, path: Path) -> None:
    """Wait until a child of a process has mapped a file."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                if f"\nPPid:\t{parent}\n" not in status.read_text():
                    continue
                if str(path) in status.with_name("maps").read_text():
                    return
            except OSError:  # it ended meanwhile
                continue
        time.sleep(0.01)
    raise AssertionError(f"{path} was never mapped")


@pytest.mark.lab
def test_a_bit_that_flipped_behind_everybodys_back_is_found_and_repaired(
    hub: Hub, root: Path, tmp_path: Path
) -> None:
    snapshot = listing(hub, "lab/small")
    work = request_for(hub, snapshot, tmp_path)
    assert outcome(work) == ""
    folder = tmp_path / snapshot.commit
    assert wrong_files(folder, 2) == ([], snapshot.size)
    shard = next(folder.glob("*.safetensors"))
    stat, content = shard.stat(), bytearray(shard.read_bytes())
    content[700] ^= 1
    shard.chmod(0o644)
    with shard.open("r+b") as stream:
        stream.write(content)
    os.utime(shard, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    hub.forget_requests()
    assert outcome(work) == ""
    assert not hub.requests(), "size, time and inode are the same: a stat cannot know"
    wrong, _ = wrong_files(folder, 2)
    assert wrong == [shard.name]
    strike_out(folder, wrong)
    assert outcome(work) == ""
    assert is_exact(folder, root / "lab/small", snapshot)
    assert wrong_files(folder, 2) == ([], snapshot.size)
