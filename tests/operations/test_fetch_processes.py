"""Several processes and several runs: killed, paused, two at once, and what is found on the box."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from inventory.snapshot import Snapshot
from operations.remote.weights import fetch as program
from operations.remote.weights.errors import LostLeaseError, disk_sentence
from operations.remote.weights.job import MANIFEST, Limits, read_job
from operations.remote.weights.lease import Lease, gone, identity
from operations.remote.weights.verify import strike_out, wrong_files
from tests.lab.hub import Hub, RemoteHub, chosen, launched, write_model
from tests.operations.fetching import (
    REPO,
    ended,
    is_exact,
    job,
    listing,
    nothing_half_trusted,
    outcome,
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


@pytest.fixture
def hub(root: Path) -> Iterator[Hub]:
    with Hub(root) as hub:
        yield hub


@pytest.fixture
def apart(root: Path) -> Iterator[RemoteHub]:
    """A Hub in a process of its own, so that counting does not slow it."""
    with launched(root) as hub:
        yield hub


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
    work = job(apart, snapshot, tmp_path, limits={"workers": workers})
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
    work = job(apart, snapshot, tmp_path)
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
    work = job(hub, snapshot, tmp_path)
    parsed = read_job(work)
    shard = next(file for file in parsed.files if file.path.endswith("safetensors"))
    part = parsed.part(shard)
    part.parent.mkdir(parents=True)
    part.write_bytes(bytes(shard.size // 2))
    assert outcome(work) == ""
    assert is_exact(parsed.folder, root / "lab/small", snapshot)


def test_two_converges_at_once_fetch_it_once(apart: RemoteHub, root: Path, tmp_path: Path) -> None:
    snapshot = listing(apart)
    work = job(apart, snapshot, tmp_path)
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
    work = job(apart, snapshot, tmp_path, limits={"dead": 600, "workers": 2})
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
    work = job(apart, snapshot, tmp_path)
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


class TestLease:
    LIMITS = Limits(beat=0.05, dead=0.4)

    def test_one_has_it_until_it_lets_go(self, tmp_path: Path) -> None:
        first, second = (Lease(tmp_path / "lease", self.LIMITS) for _ in range(2))
        assert first.take()
        assert not second.take()
        assert second.leader == socket.gethostname()
        time.sleep(self.LIMITS.dead * 1.5)
        assert not second.take(), "it beats"
        first.keep()
        first.release()
        assert second.take()
        second.release()
        assert list(tmp_path.iterdir()) == []

    def test_another_machines_is_dead_only_by_its_silence(self, tmp_path: Path) -> None:
        path = tmp_path / "lease"
        path.write_text(json.dumps({**identity(), "boot": "another", "pid": 1, "nonce": "x"}))
        lease = Lease(path, self.LIMITS)
        assert not lease.take()
        time.sleep(self.LIMITS.dead / 2)
        os.utime(path)
        assert not lease.take()
        time.sleep(self.LIMITS.dead * 1.5)
        assert lease.take()
        lease.release()

    @pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"pid": "x"}'])
    def test_half_a_lease_is_waited_for_too(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "lease"
        path.write_text(text)
        lease = Lease(path, self.LIMITS)
        assert not lease.take()
        time.sleep(self.LIMITS.dead * 1.5)
        assert lease.take()
        lease.release()

    def test_a_lost_lease_is_noticed(self, tmp_path: Path) -> None:
        lease = Lease(tmp_path / "lease", self.LIMITS)
        assert lease.take()
        (tmp_path / "lease").write_text('{"nonce": "another"}')
        with pytest.raises(LostLeaseError):
            lease.keep()
        lease.release()
        assert (tmp_path / "lease").exists(), "it is not this one's to remove"

    def test_a_process_is_gone_when_another_has_its_number(self) -> None:
        assert not gone(identity())
        assert gone({**identity(), "born": "1"})
        assert gone({**identity(), "pid": 1 << 22})
        assert not gone({**identity(), "pid": 1 << 22, "boot": "another machine"})
        assert not gone({})


class TestReuse:
    def fetched(self, hub: Hub, root: Path, home: Path, repo: str) -> Snapshot:
        snapshot = listing(hub, repo)
        assert outcome(job(hub, snapshot, home)) == ""
        assert is_exact(home / snapshot.commit, root / repo, snapshot)
        return snapshot

    def test_files_of_an_older_commit_are_linked(
        self, hub: Hub, root: Path, tmp_path: Path
    ) -> None:
        old = self.fetched(hub, root, tmp_path / "home", "lab/small")
        newer = tmp_path / "newer"
        shutil.copytree(root / "lab/small", newer)
        (newer / "config.json").write_text('{"new": true}')
        (newer / "docs" / "notes.md").unlink()
        hub.add_repo("lab/small", newer)
        hub.forget_requests()
        new = listing(hub, "lab/small")
        assert outcome(job(hub, new, tmp_path / "home")) == ""
        assert is_exact(tmp_path / "home" / new.commit, newer, new)
        fetched = {one.path for one in chosen(hub.requests(), method="GET") if "." in one.path}
        assert fetched == {"config.json"}
        shard = next(file.path for file in new.files if file.path.endswith("safetensors"))
        inodes = {(tmp_path / "home" / one.commit / shard).stat().st_ino for one in (old, new)}
        assert len(inodes) == 1, "no block twice"

    def test_a_damaged_older_file_is_not_linked(self, hub: Hub, root: Path, tmp_path: Path) -> None:
        old = self.fetched(hub, root, tmp_path / "home", "lab/small")
        newer = tmp_path / "newer"
        shutil.copytree(root / "lab/small", newer)
        (newer / "config.json").write_text('{"new": true}')
        hub.add_repo("lab/small", newer)
        shard = next((tmp_path / "home" / old.commit).glob("*.safetensors"))
        content = bytearray(shard.read_bytes())
        content[500] ^= 1
        shard.chmod(0o644)
        shard.write_bytes(content)
        new = listing(hub, "lab/small")
        assert outcome(job(hub, new, tmp_path / "home")) == ""
        assert is_exact(tmp_path / "home" / new.commit, newer, new)

    @pytest.mark.parametrize("damaged", [False, True])
    def test_the_clients_cache_is_looked_into_and_not_believed(
        self, hub: Hub, root: Path, tmp_path: Path, damaged: bool
    ) -> None:
        snapshot = listing(hub, "lab/small")
        blobs = tmp_path / "cache" / "models--lab--small" / "blobs"
        blobs.mkdir(parents=True)
        for file in snapshot.files:
            content = bytearray((root / "lab/small" / file.path).read_bytes())
            if damaged:
                content[0] ^= 1
            (blobs / file.digest.partition(":")[2]).write_bytes(content)
        hub.forget_requests()
        work = job(hub, snapshot, tmp_path / "home", caches=[str(tmp_path / "cache")])
        assert outcome(work) == ""
        assert is_exact(tmp_path / "home" / snapshot.commit, root / "lab/small", snapshot)
        assert bool(hub.requests()) == damaged

    def test_the_account_of_a_fetch_is_in_its_manifest(
        self, hub: Hub, root: Path, tmp_path: Path
    ) -> None:
        snapshot = self.fetched(hub, root, tmp_path, "lab/small")
        account = json.loads((tmp_path / snapshot.commit / MANIFEST).read_text())["fetch"]
        assert account["downloaded"] == snapshot.size
        assert account["reused"] == 0


class TestAirGap:
    def test_from_a_folder_with_the_same_proof(self, hub: Hub, root: Path, tmp_path: Path) -> None:
        snapshot = listing(hub, "lab/small")
        hub.forget_requests()
        carried = tmp_path / "carried"
        shutil.copytree(root / "lab/small", carried)
        work = job(hub, snapshot, tmp_path / "home", source=str(carried))
        assert outcome(work) == ""
        assert is_exact(tmp_path / "home" / snapshot.commit, root / "lab/small", snapshot)
        assert not hub.requests()

    def test_files_that_were_sent_are_moved_and_not_copied(
        self, hub: Hub, root: Path, tmp_path: Path
    ) -> None:
        snapshot = listing(hub, "lab/small")
        sent = tmp_path / "sent"
        shutil.copytree(root / "lab/small", sent)
        shard = next(sent.glob("*.safetensors"))
        inode = shard.stat().st_ino
        work = job(hub, snapshot, tmp_path / "home", source=str(sent), take=True)
        assert outcome(work) == ""
        folder = tmp_path / "home" / snapshot.commit
        assert is_exact(folder, root / "lab/small", snapshot)
        assert (folder / shard.name).stat().st_ino == inode
        assert [path for path in sent.rglob("*") if path.is_file()] == []

    @pytest.mark.parametrize(
        ("damage", "words"),
        [
            ("missing", "is not in"),
            ("short", "was not copied to its end"),
            ("flipped", "not those that the Hub lists"),
            ("no folder", "correct model.source"),
        ],
    )
    def test_a_folder_that_is_not_it(
        self, hub: Hub, root: Path, tmp_path: Path, damage: str, words: str
    ) -> None:
        snapshot = listing(hub, "lab/small")
        carried = tmp_path / "carried"
        shutil.copytree(root / "lab/small", carried)
        shard = next(carried.glob("*.safetensors"))
        content = shard.read_bytes()
        if damage == "missing":
            shard.unlink()
        elif damage == "short":
            shard.write_bytes(content[:-9])
        elif damage == "flipped":
            shard.write_bytes(content[:900] + bytes([content[900] ^ 1]) + content[901:])
        else:
            shutil.rmtree(carried)
        work = job(hub, snapshot, tmp_path / "home", source=str(carried))
        assert words in outcome(work)
        assert nothing_half_trusted(work, root / "lab/small")

    def test_a_mirror_with_addresses_of_its_own(self, hub: Hub, root: Path, tmp_path: Path) -> None:
        """The listing came from one Hub, the bytes come from another: the digests decide."""
        snapshot = listing(hub, "lab/small")
        hub.forget_requests()
        with Hub(root) as mirror:
            work = job(mirror, snapshot, tmp_path)
            assert outcome(work) == ""
            assert mirror.requests()
        assert is_exact(tmp_path / snapshot.commit, root / "lab/small", snapshot)
        assert not hub.requests()


class TestServedFiles:
    def test_a_damaged_file_that_is_in_use_is_not_replaced(self, hub: Hub, tmp_path: Path) -> None:
        snapshot = listing(hub, "lab/small")
        work = job(hub, snapshot, tmp_path)
        assert outcome(work) == ""
        shard = next((tmp_path / snapshot.commit).glob("*.safetensors"))
        content = shard.read_bytes()
        shard.chmod(0o644)
        shard.write_bytes(b"x" + content[1:])
        with (
            shard.open("rb") as held,
            subprocess.Popen(["sleep", "60"], stdin=held) as reader,
        ):
            held.close()
            told = outcome(work)
            reader.kill()
        assert f"in use by process {reader.pid}" in told
        assert shard.read_bytes() != content
        hub.forget_requests()
        assert outcome(work) == ""
        assert shard.read_bytes() == content
        assert not chosen(hub.requests(), where="cdn"), "the good copy was waiting"

    def test_a_link_in_the_place_of_a_shard_is_not_followed(self, hub: Hub, tmp_path: Path) -> None:
        snapshot = listing(hub, "lab/small")
        work = job(hub, snapshot, tmp_path)
        assert outcome(work) == ""
        shard = next((tmp_path / snapshot.commit).glob("*.safetensors"))
        elsewhere = tmp_path / "elsewhere"
        shard.rename(elsewhere)
        shard.symlink_to(elsewhere)
        assert "is no regular file" in outcome(work)

    def test_a_folder_of_somebody_else_is_left_alone(self, hub: Hub, tmp_path: Path) -> None:
        snapshot = listing(hub, "lab/small")
        folder = tmp_path / snapshot.commit
        folder.mkdir()
        (folder / "config.json").write_text("mine")
        assert "without boxwright's manifest" in outcome(job(hub, snapshot, tmp_path))
        assert (folder / "config.json").read_text() == "mine"


class TestVerify:
    def test_a_bit_that_flipped_behind_everybodys_back_is_found_and_repaired(
        self, hub: Hub, root: Path, tmp_path: Path
    ) -> None:
        snapshot = listing(hub, "lab/small")
        work = job(hub, snapshot, tmp_path)
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


class TestJob:
    @pytest.mark.parametrize(
        "path", ["../x", "/etc/passwd", "a/../../x", ".boxwright/x", "a\nb", ""]
    )
    def test_no_path_leaves_the_folder(self, tmp_path: Path, path: str) -> None:
        work = {
            "repo": "o/n",
            "commit": "a" * 40,
            "folder": str(tmp_path / ("a" * 40)),
            "files": [{"path": path, "size": 1, "digest": "sha256:" + "0" * 64}],
        }
        assert "would leave the folder" in outcome(work)
        assert list(tmp_path.iterdir()) == []

    def test_a_token_is_in_no_repr(self, tmp_path: Path) -> None:
        work = {"repo": "o/n", "commit": "a" * 40, "folder": str(tmp_path), "files": []}
        assert "hf_secret" not in repr(read_job({**work, "token": "hf_secret"}))

    def test_a_token_comes_as_a_credential_too(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "token").write_text("hf_secret\n")
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
        work = {"repo": "o/n", "commit": "a" * 40, "folder": str(tmp_path), "files": []}
        assert read_job(work).token == "hf_secret"  # noqa: S105


@pytest.mark.parametrize(
    "name", ["ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM", "ENOLCK", "ESTALE", "EIO"]
)
def test_a_file_systems_refusal_is_a_sentence(name: str, tmp_path: Path) -> None:
    import errno  # noqa: PLC0415

    error = OSError(getattr(errno, name), "x", str(tmp_path / "model"))
    told = program.explain(error, tmp_path)
    assert told == disk_sentence(error, tmp_path)
    assert str(tmp_path / "model") in told
    assert told.endswith(f"[{name}]")
