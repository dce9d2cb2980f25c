"""Real file systems that refuse: full, over quota, read-only, another user's. And two machines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.hub import Hub, RemoteHub, chosen, write_model
from tests.operations.remote.weights.fetching import (
    PROJECT,
    REPO,
    clean_environment,
    ended,
    is_exact,
    listing,
    nothing_half_trusted,
    outcome,
    request_for,
    running,
)

pytestmark = pytest.mark.lab

MIB = 1 << 20
AS_NOBODY = """
import os, sys
from operations.remote.weights.fetch import main
os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.exit(main())
"""
"""Imported first: the interpreter itself may lie where nobody reads."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hub")
    write_model(root / REPO, shards=4, shard_bytes=12_000_000)
    return root


def sh(*command: str | Path) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


@contextmanager
def mounted(tmp_path: Path, make: tuple[str, ...], size: int) -> Iterator[Path]:
    """A file system of its own, in a file."""
    image, folder = tmp_path / "image", tmp_path / "mounted"
    folder.mkdir()
    with image.open("wb") as stream:
        stream.truncate(size)
    sh(*make, image)
    sh("mount", "-o", "loop", image, folder)
    try:
        yield folder
    finally:
        sh("umount", folder)


EXT4 = ("mkfs.ext4", "-q", "-m", "0")
WITHOUT_RESERVING = (*EXT4, "-O", "^extents,^64bit,^metadata_csum,^has_journal")
"""As a file system that cannot reserve blocks: fallocate says EOPNOTSUPP."""

BTRFS = ("mkfs.btrfs", "-q", "-f")


def test_too_little_room_is_said_before_the_first_byte(
    hub: Hub, root: Path, tmp_path: Path
) -> None:
    snapshot = listing(hub)
    hub.forget_requests()
    with mounted(tmp_path, EXT4, 32 * MIB) as folder:
        work = request_for(hub, snapshot, folder / "home")
        told = outcome(work)
        assert "GiB are missing and" in told
        assert "nothing was fetched" in told
        assert nothing_half_trusted(work, root / REPO)
        assert not hub.requests()


def test_reserved_room_is_not_lost_to_another_writer(
    apart: RemoteHub, root: Path, tmp_path: Path
) -> None:
    snapshot = listing(apart)
    apart.configure(throttle=10_000_000)
    with mounted(tmp_path, EXT4, 80 * MIB) as folder:
        work = request_for(apart, snapshot, folder / "home")
        fetching = running(work)
        _until_bytes(apart, 4_000_000)
        _fill(folder / "somebody")
        apart.configure(throttle=0)
        status, text = ended(fetching)
        # What is not reserved is the journal and the manifest: some kilobytes.
        (folder / "somebody").unlink()
        assert status == 0 or "is full" in text
        assert outcome(work) == ""
        assert is_exact(folder / "home" / snapshot.commit, root / REPO, snapshot)


def test_a_disk_that_fills_up_half_way(apart: RemoteHub, root: Path, tmp_path: Path) -> None:
    snapshot = listing(apart)
    apart.configure(throttle=10_000_000)
    with mounted(tmp_path, WITHOUT_RESERVING, 80 * MIB) as folder:
        work = request_for(apart, snapshot, folder / "home")
        fetching = running(work)
        _until_bytes(apart, 8_000_000)
        _fill(folder / "somebody")
        apart.configure(throttle=0)
        status, text = ended(fetching)
        assert status == 1
        assert "is full: free space there and run again" in text
        assert text.rstrip().endswith("files are whole and kept)")
        assert nothing_half_trusted(work, root / REPO)
        (folder / "somebody").unlink()
        before = _sent(apart)
        assert outcome(work) == ""
        assert is_exact(folder / "home" / snapshot.commit, root / REPO, snapshot)
        assert _sent(apart) - before < snapshot.size - 4 * MIB, "what had come is kept"


def test_a_quota_refuses_before_the_first_byte(hub: Hub, root: Path, tmp_path: Path) -> None:
    snapshot = listing(hub)
    hub.forget_requests()
    with mounted(tmp_path, BTRFS, 400 * MIB) as folder:
        sh("btrfs", "subvolume", "create", folder / "home")
        sh("btrfs", "quota", "enable", folder)
        sh("btrfs", "qgroup", "limit", "20M", folder / "home")
        work = request_for(hub, snapshot, folder / "home")
        told = outcome(work)
        assert "the disk quota of root" in told
        assert told.endswith("[EDQUOT]")
        assert nothing_half_trusted(work, root / REPO)
        assert not hub.requests()
        sh("btrfs", "qgroup", "limit", "none", folder / "home")
        assert outcome(work) == ""
        assert is_exact(folder / "home" / snapshot.commit, root / REPO, snapshot)


def test_blocks_are_shared_with_a_cache_where_the_file_system_can(
    hub: Hub, root: Path, tmp_path: Path
) -> None:
    snapshot = listing(hub)
    hub.forget_requests()
    with mounted(tmp_path, BTRFS, 200 * MIB) as folder:
        blobs = folder / "cache" / f"models--{REPO.replace('/', '--')}" / "blobs"
        blobs.mkdir(parents=True)
        for file in snapshot.files:
            content = (root / REPO / file.path).read_bytes()
            (blobs / file.digest.partition(":")[2]).write_bytes(content)
        os.sync()
        before = os.statvfs(folder).f_bfree
        assert (
            outcome(request_for(hub, snapshot, folder / "home", caches=[str(folder / "cache")]))
            == ""
        )
        os.sync()
        assert is_exact(folder / "home" / snapshot.commit, root / REPO, snapshot)
        assert not hub.requests()
        assert (before - os.statvfs(folder).f_bfree) * 4096 < 8 * MIB, "48 MB cost no block"
        shard = next(file for file in snapshot.files if file.path.endswith("safetensors"))
        blob = blobs / shard.digest.partition(":")[2]
        blob.write_bytes(b"x")
        served = folder / "home" / snapshot.commit / shard.path
        assert served.stat().st_size == shard.size, "a cache that is edited edits nothing here"


def test_a_read_only_file_system(hub: Hub, tmp_path: Path) -> None:
    snapshot = listing(hub)
    with mounted(tmp_path, EXT4, 80 * MIB) as folder:
        sh("mount", "-o", "remount,ro", folder)
        work = request_for(hub, snapshot, folder / "home")
        told = outcome(work)
        assert "is mounted read-only" in told
        assert told.endswith("[EROFS]")


def test_a_folder_of_another_user(hub: Hub, tmp_path: Path) -> None:
    """Root squash looks the same: the server takes whoever asks for nobody."""
    snapshot = listing(hub)
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-B", "-c", AS_NOBODY],
        cwd=PROJECT,
        env={**clean_environment(), "HOME": "/nonexistent"},
        input=json.dumps(request_for(hub, snapshot, home)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"nobody may not write {home}" in done.stderr
    assert "which belongs to root" in done.stderr
    assert "root squash" in done.stderr
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("killed", [False, True], ids=["both live", "leader killed"])
def test_two_machines_on_one_folder_fetch_it_once(
    apart: RemoteHub, root: Path, tmp_path: Path, killed: bool
) -> None:
    """Each in namespaces of its own: neither sees the other's processes, as two boxes do not."""
    snapshot = listing(apart)
    apart.configure(throttle=12_000_000)
    work = request_for(apart, snapshot, tmp_path / "home", limits={"workers": 2})
    first = _machine("box-one", work)
    _until_bytes(apart, 6_000_000)
    second = _machine("box-two", work)
    time.sleep(1)
    if killed:
        os.killpg(first.pid, signal.SIGKILL)
        first.communicate()
    status, text = ended(second)
    assert status == 0, text
    assert "waiting for box-one" in text
    assert is_exact(tmp_path / "home" / snapshot.commit, root / REPO, snapshot)
    again = _sent(apart) - snapshot.size
    users = {path.name for path in (tmp_path / "home" / snapshot.commit).glob(".boxwright/users/*")}
    if killed:
        assert again <= 2 * 10 * MIB
        assert "box-two" in users
    else:
        assert ended(first)[0] == 0
        assert again == 0
        users = {one.name for one in (tmp_path / "home").glob("*/.boxwright/users/*")}
        assert users == {"box-one", "box-two"}


def _machine(name: str, work: dict[str, object]) -> subprocess.Popen[str]:
    """A fetch with its own host name and its own processes."""
    inner = f"hostname {name}; exec {sys.executable} -B -m operations.remote.weights.fetch"
    process = subprocess.Popen(
        ["unshare", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", inner],
        cwd=PROJECT,
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdin
    process.stdin.write(json.dumps(work))
    process.stdin.close()
    process.stdin = None
    return process


def _sent(hub: RemoteHub) -> int:
    return sum(one.sent for one in chosen(hub.requests(), method="GET") if "." in one.path)


def _until_bytes(hub: RemoteHub, count: int) -> None:
    deadline = time.monotonic() + 30
    while _sent(hub) < count:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _fill(path: Path) -> None:
    """Take every free block, as a log or a checkpoint would."""
    with path.open("wb", buffering=0) as stream:
        try:
            while stream.write(bytes(MIB)):
                pass
        except OSError:
            pass
