"""Where files come from besides the Hub: older commits, the client's cache, a folder, a mirror."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from inventory.common.paths import MANIFEST
from inventory.snapshot import Snapshot
from tests.lab.hub import Hub, chosen, write_model
from tests.operations.remote.weights.fetching import (
    is_exact,
    listing,
    nothing_half_trusted,
    outcome,
    request_for,
)

pytestmark = pytest.mark.lab

SMALL = "lab/small"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hub")
    write_model(root / SMALL, shards=3, shard_bytes=100_000)
    return root


class TestReuse:
    def fetched(self, hub: Hub, root: Path, home: Path, repo: str) -> Snapshot:
        snapshot = listing(hub, repo)
        assert outcome(request_for(hub, snapshot, home)) == ""
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
        assert outcome(request_for(hub, new, tmp_path / "home")) == ""
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
        assert outcome(request_for(hub, new, tmp_path / "home")) == ""
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
        work = request_for(hub, snapshot, tmp_path / "home", caches=[str(tmp_path / "cache")])
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
        work = request_for(hub, snapshot, tmp_path / "home", source=str(carried))
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
        work = request_for(hub, snapshot, tmp_path / "home", source=str(sent), take=True)
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
        work = request_for(hub, snapshot, tmp_path / "home", source=str(carried))
        assert words in outcome(work)
        assert nothing_half_trusted(work, root / "lab/small")

    def test_a_mirror_with_addresses_of_its_own(self, hub: Hub, root: Path, tmp_path: Path) -> None:
        """The listing came from one Hub, the bytes come from another: the digests decide."""
        snapshot = listing(hub, "lab/small")
        hub.forget_requests()
        with Hub(root) as mirror:
            work = request_for(mirror, snapshot, tmp_path)
            assert outcome(work) == ""
            assert mirror.requests()
        assert is_exact(tmp_path / snapshot.commit, root / "lab/small", snapshot)
        assert not hub.requests()


class TestServedFiles:
    def test_a_damaged_file_that_is_in_use_is_not_replaced(self, hub: Hub, tmp_path: Path) -> None:
        snapshot = listing(hub, "lab/small")
        work = request_for(hub, snapshot, tmp_path)
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
        work = request_for(hub, snapshot, tmp_path)
        assert outcome(work) == ""
        shard = next((tmp_path / snapshot.commit).glob("*.safetensors"))
        elsewhere = tmp_path / "elsewhere"
        shard.rename(elsewhere)
        shard.symlink_to(elsewhere)
        assert "is not a regular file" in outcome(work)

    def test_a_folder_of_somebody_else_is_left_alone(self, hub: Hub, tmp_path: Path) -> None:
        snapshot = listing(hub, "lab/small")
        folder = tmp_path / snapshot.commit
        folder.mkdir()
        (folder / "config.json").write_text("mine")
        assert "without boxwright's manifest" in outcome(request_for(hub, snapshot, tmp_path))
        assert (folder / "config.json").read_text() == "mine"
