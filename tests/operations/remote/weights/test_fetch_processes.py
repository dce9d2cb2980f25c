"""Several processes and several runs: killed, paused, two at once."""

import json
import signal
import socket
import time
from pathlib import Path

import pytest

from operations.remote.weights.fetch import read_request
from tests.lab.hub import Hub, RemoteHub, chosen, write_model
from tests.operations.remote.weights.fetching import (
    REPO,
    ended,
    is_exact,
    listing,
    nothing_half_trusted,
    outcome,
    request_for,
    running,
)

pytestmark = pytest.mark.lab

SHARDS = 4
BYTES = 24_000_000
MIB = 1 << 20


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hub")
    write_model(root / REPO, shards=SHARDS, shard_bytes=BYTES)
    write_model(root / "lab/small", shards=3, shard_bytes=100_000)
    return root


def sent(hub: Hub | RemoteHub) -> int:
    """Bytes of files that left the Hub."""
    return sum(one.sent for one in chosen(hub.requests(), method="GET") if "." in one.path)


def until(condition: object, seconds: float = 30) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_after_kill_9_hardly_a_byte_is_fetched_again(
    apart: RemoteHub, root: Path, tmp_path: Path, share: float
) -> None:
    snapshot = listing(apart)
    workers = 2
    work = request_for(apart, snapshot, tmp_path, limits={"workers": workers})
    apart.configure(throttle=40_000_000)
    killed = running(work)
    until(lambda: sent(apart) >= share * snapshot.size)
    killed.kill()
    ended(killed)
    before = sent(apart)
    assert before < snapshot.size
    assert nothing_half_trusted(work, root / REPO)
    apart.configure(throttle=0)
    assert ended(running(work))[0] == 0
    assert is_exact(tmp_path / snapshot.commit, root / REPO, snapshot)
    again = sent(apart) - snapshot.size
    print(f"killed at {share:.0%}: {again / MIB:.2f} MiB fetched again")
    assert again <= workers * 10 * MIB


def test_killed_again_and_again_it_ends_in_the_same_place(
    apart: RemoteHub, root: Path, tmp_path: Path
) -> None:
    snapshot = listing(apart)
    work = request_for(apart, snapshot, tmp_path)
    apart.configure(throttle=80_000_000)
    for share in (0.2, 0.4, 0.6, 0.8):
        one = running(work)
        until(lambda share=share: sent(apart) >= share * snapshot.size)
        one.send_signal(signal.SIGKILL)
        ended(one)
    assert ended(running(work))[0] == 0
    assert is_exact(tmp_path / snapshot.commit, root / REPO, snapshot)
    assert [path.name for path in tmp_path.iterdir()] == [snapshot.commit]


def test_a_part_that_lost_bytes_in_a_power_cut_is_fetched_anew(
    hub: Hub, root: Path, tmp_path: Path
) -> None:
    snapshot = listing(hub, "lab/small")
    work = request_for(hub, snapshot, tmp_path)
    parsed = read_request(json.dumps(work))
    shard = next(file for file in parsed.files if file.path.endswith("safetensors"))
    part = parsed.part(shard)
    part.parent.mkdir(parents=True)
    part.write_bytes(bytes(shard.size // 2))
    assert outcome(work) == ""
    assert is_exact(parsed.folder, root / "lab/small", snapshot)


def test_two_converges_at_once_fetch_it_once(apart: RemoteHub, root: Path, tmp_path: Path) -> None:
    snapshot = listing(apart)
    work = request_for(apart, snapshot, tmp_path)
    apart.configure(throttle=60_000_000)
    both = [running(work), running(work)]
    results = [ended(one) for one in both]
    assert [status for status, _ in results] == [0, 0]
    assert is_exact(tmp_path / snapshot.commit, root / REPO, snapshot)
    assert sent(apart) == snapshot.size
    waiting = next(text for _, text in results if "waiting for" in text)
    assert f"waiting for {socket.gethostname()}" in waiting
    assert "MB/s" in waiting
    assert "fetched by another box" in waiting


def test_a_dead_leader_is_replaced_and_its_bytes_are_kept(
    apart: RemoteHub, root: Path, tmp_path: Path
) -> None:
    """The leader is killed: its own machine sees at once that the process is gone."""
    snapshot = listing(apart)
    work = request_for(apart, snapshot, tmp_path, limits={"dead": 600, "workers": 2})
    apart.configure(throttle=60_000_000)
    leader = running(work)
    until(lambda: sent(apart) > snapshot.size / 4)
    follower = running(work)
    until(lambda: sent(apart) > snapshot.size / 2)
    leader.kill()
    ended(leader)
    assert ended(follower)[0] == 0
    assert is_exact(tmp_path / snapshot.commit, root / REPO, snapshot)
    assert sent(apart) - snapshot.size <= 2 * 10 * MIB


def test_a_leader_that_fell_silent_is_replaced_and_writes_no_more(
    apart: RemoteHub, root: Path, tmp_path: Path
) -> None:
    """As a box that hangs, or lost the network: its process is there and gives no sign."""
    snapshot = listing(apart)
    work = request_for(apart, snapshot, tmp_path)
    apart.configure(throttle=30_000_000)
    leader = running(work)
    until(lambda: sent(apart) > snapshot.size / 4)
    leader.send_signal(signal.SIGSTOP)
    try:
        follower = running(work)
        status, _ = ended(follower)
        assert status == 0
        assert is_exact(tmp_path / snapshot.commit, root / REPO, snapshot)
    finally:
        leader.send_signal(signal.SIGCONT)
    status, text = ended(leader)
    assert status == 1
    assert "another box took this fetch over" in text
    assert is_exact(tmp_path / snapshot.commit, root / REPO, snapshot)
