"""The fetcher against a real Hub client and a Hub that misbehaves: complete, or not there."""

import getpass
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inventory.errors import DesiredStateError, HubError
from inventory.service import Model
from inventory.snapshot import Snapshot
from operations import hub as resolving
from operations.hub import locked_snapshot
from tests.lab.hub import Fault, Hub, chosen, write_model
from tests.operations.remote.weights.fetching import FETCH, PROJECT, REPO, clean_environment

pytestmark = pytest.mark.lab

SHARDS = 3


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    write_model(tmp_path / "hub" / REPO, shards=SHARDS, shard_bytes=2_000_000)
    with Hub(tmp_path / "hub", host="127.0.0.1", port=0, cdn_port=0) as hub:
        yield hub


def resolve(hub: Hub, tmp_path: Path, **more: Any) -> Snapshot:
    model = Model(repo=REPO, endpoint=hub.url)
    return locked_snapshot(model, tmp_path / "locks", **more)[0]


def request_for(
    hub: Hub, snapshot: Snapshot, target: Path, token: str | None = None
) -> dict[str, Any]:
    return {
        "user": getpass.getuser(),
        "endpoint": hub.url,
        "repo": snapshot.repo,
        "commit": snapshot.commit,
        "folder": str(target),
        "files": [file.to_json() for file in snapshot.files],
        "token": token,
    }


def fetch(work: dict[str, Any], timeout: float = 50) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        FETCH,
        cwd=PROJECT,
        input=json.dumps(work),
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        env=clean_environment(),
    )


def same(target: Path, source: Path, snapshot: Snapshot) -> bool:
    return all(
        (target / file.path).read_bytes() == (source / file.path).read_bytes()
        for file in snapshot.files
    )


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "models" / REPO / ("c" * 40)


def test_a_snapshot_arrives_whole_with_its_manifest_and_nothing_else(
    hub: Hub, tmp_path: Path, target: Path
) -> None:
    snapshot = resolve(hub, tmp_path)
    done = fetch(request_for(hub, snapshot, target))
    assert done.returncode == 0, done.stderr
    assert same(target, tmp_path / "hub" / REPO, snapshot)
    left = {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}
    known = {".boxwright/manifest.json", f".boxwright/users/{socket.gethostname()}"}
    assert left == {file.path for file in snapshot.files} | known
    assert [path.name for path in target.parent.iterdir()] == [target.name]
    manifest = json.loads((target / ".boxwright/manifest.json").read_text())
    assert manifest["commit"] == snapshot.commit
    assert len(chosen(hub.requests(), where="cdn", method="GET")) == SHARDS


def test_a_second_fetch_asks_the_hub_for_nothing(hub: Hub, tmp_path: Path, target: Path) -> None:
    work = request_for(hub, resolve(hub, tmp_path), target)
    assert fetch(work).returncode == 0
    hub.forget_requests()
    assert fetch(work).returncode == 0
    assert not chosen(hub.requests(), method="GET", where="cdn")


def test_faults_that_pass_are_overcome_each_on_its_own_file(tmp_path: Path, target: Path) -> None:
    faults = [
        Fault("status", where="cdn", status=503, path="*-00001-of-*"),
        Fault("status", where="cdn", status=403, path="*-00002-of-*"),
        Fault("reset", where="cdn", at=500_000, path="*-00003-of-*"),
        Fault("cut", where="cdn", at=500_000, path="*-00004-of-*"),
        Fault("corrupt", where="cdn", at=500_000, path="*-00005-of-*"),
        Fault("short", where="cdn", at=500_000, path="*-00006-of-*"),
        Fault("drop", where="hub", path="*-00007-of-*"),
    ]
    write_model(tmp_path / "hub" / REPO, shards=len(faults), shard_bytes=1_000_000)
    with Hub(tmp_path / "hub") as hub:
        snapshot = resolve(hub, tmp_path)
        for fault in faults:
            hub.inject(fault)
        done = fetch(request_for(hub, snapshot, target))
        assert done.returncode == 0, done.stderr
        assert same(target, tmp_path / "hub" / REPO, snapshot)
        struck = {request.fault for request in hub.requests() if request.fault}
        assert struck == {fault.kind for fault in faults}


def test_a_file_that_is_listed_and_not_there_ends_it_at_once(
    hub: Hub, tmp_path: Path, target: Path
) -> None:
    snapshot = resolve(hub, tmp_path)
    headers = {"X-Error-Code": "EntryNotFound"}
    hub.inject(Fault("status", where="hub", path="model-*", status=404, headers=headers, times=0))
    done = fetch(request_for(hub, snapshot, target))
    assert done.returncode == 1
    assert "fetch failed" in done.stderr
    assert not target.exists()


def test_what_was_proven_before_a_failure_is_not_fetched_again(
    hub: Hub, tmp_path: Path, target: Path
) -> None:
    snapshot = resolve(hub, tmp_path)
    last = next(file.path for file in reversed(snapshot.files) if "safetensors" in file.path)
    headers = {"X-Error-Code": "EntryNotFound"}
    hub.inject(Fault("status", where="hub", path=last, status=404, headers=headers, times=0))
    assert fetch(request_for(hub, snapshot, target)).returncode == 1
    hub.clear_faults()
    before = len(chosen(hub.requests(), where="cdn", method="GET"))
    assert fetch(request_for(hub, snapshot, target)).returncode == 0
    assert len(chosen(hub.requests(), where="cdn", method="GET")) <= max(SHARDS, before + SHARDS)
    assert same(target, tmp_path / "hub" / REPO, snapshot)


@pytest.mark.parametrize("damage", ["missing", "truncated", "flipped", "touched"])
def test_a_damaged_file_is_proven_again_and_replaced(
    hub: Hub, tmp_path: Path, target: Path, damage: str
) -> None:
    snapshot = resolve(hub, tmp_path)
    work = request_for(hub, snapshot, target)
    assert fetch(work).returncode == 0
    shard = next(target.glob("*.safetensors"))
    content = shard.read_bytes()
    os.utime(shard, (1, 1))
    if damage == "missing":
        shard.unlink()
    elif damage == "truncated":
        shard.write_bytes(content[:100])
    elif damage == "flipped":
        shard.write_bytes(content[:500] + bytes([content[500] ^ 1]) + content[501:])
    hub.forget_requests()
    assert fetch(work).returncode == 0
    assert shard.read_bytes() == content
    refetched = len(chosen(hub.requests(), where="cdn", method="GET"))
    assert refetched == (0 if damage == "touched" else 1)


def test_a_gated_repository_wants_its_token_and_keeps_it(
    hub: Hub, tmp_path: Path, target: Path
) -> None:
    snapshot = resolve(hub, tmp_path)
    hub.allow(tokens=["hf_secret"], gated={REPO: ["hf_secret"]})
    refused = fetch(request_for(hub, snapshot, target))
    assert refused.returncode == 1
    assert "gated" in refused.stderr.lower()
    done = fetch(request_for(hub, snapshot, target, token="hf_secret"))  # noqa: S106
    assert done.returncode == 0, done.stderr
    everything = done.stdout + done.stderr + (target / ".boxwright/manifest.json").read_text()
    assert "hf_secret" not in everything


class TestResolve:
    def test_a_lock_is_made_once_and_does_not_move_by_itself(
        self, hub: Hub, tmp_path: Path
    ) -> None:
        model = Model(repo=REPO, endpoint=hub.url)
        first, note = locked_snapshot(model, tmp_path / "locks")
        assert "commit this file" in note
        (tmp_path / "hub2").mkdir()
        write_model(tmp_path / "hub2" / "new", shards=2, shard_bytes=100_000, seed=7)
        moved = hub.add_repo(REPO, tmp_path / "hub2" / "new")
        hub.forget_requests()
        again, note = locked_snapshot(model, tmp_path / "locks")
        assert (again, note) == (first, "")
        assert not hub.requests()
        upgraded, note = locked_snapshot(model, tmp_path / "locks", upgrade=True)
        assert upgraded.commit == moved != first.commit
        assert first.commit[:12] in note

    def test_the_listing_agrees_with_the_files(self, hub: Hub, tmp_path: Path) -> None:
        snapshot = resolve(hub, tmp_path)
        sizes = {file.path: file.size for file in snapshot.files}
        source = tmp_path / "hub" / REPO
        assert sizes == {
            path.relative_to(source).as_posix(): path.stat().st_size
            for path in source.rglob("*")
            if path.is_file()
        }
        assert any(file.digest.startswith("git-sha1:") for file in snapshot.files)
        assert any(file.digest.startswith("sha256:") for file in snapshot.files)

    @pytest.mark.parametrize(
        ("model", "found"),
        [
            ({"repo": "lab/nothing"}, "no repository lab/nothing"),
            ({"repo": REPO, "revision": "nowhere"}, "no revision nowhere"),
            ({"repo": REPO, "revision": "f" * 40}, "no revision ffff"),
        ],
    )
    def test_what_the_hub_does_not_have_is_said(
        self, hub: Hub, tmp_path: Path, model: dict[str, str], found: str
    ) -> None:
        with pytest.raises(HubError) as caught:
            locked_snapshot(Model(endpoint=hub.url, **model), tmp_path / "locks")
        assert found in caught.value.found
        assert len(caught.value.message.splitlines()) == 4
        assert not (tmp_path / "locks").exists()

    def test_a_private_repository(
        self, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hub.allow(tokens=["hf_x"], private={REPO: ["hf_x"]})
        with pytest.raises(HubError, match="or a private one"):
            resolve(hub, tmp_path)
        monkeypatch.setenv("HF_TOKEN", "hf_x")
        assert resolve(hub, tmp_path).files

    def test_a_portal_instead_of_a_hub(self, hub: Hub, tmp_path: Path) -> None:
        hub.inject(Fault("html", where="hub", times=0))
        with pytest.raises(HubError, match="no usable answer"):
            resolve(hub, tmp_path)

    def test_a_listing_that_hangs_ends(
        self, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(resolving, "REQUEST_SECONDS", 0.4)
        monkeypatch.setattr(resolving, "LISTING_SECONDS", 0.8)
        hub.inject(Fault("hang", "hub", "tree", times=0))
        with pytest.raises(HubError, match="no whole listing within"):
            resolve(hub, tmp_path)
        assert not (tmp_path / "locks").exists()
        hub.clear_faults()
        assert resolve(hub, tmp_path).files

    def test_a_damaged_lock_is_not_papered_over(self, hub: Hub, tmp_path: Path) -> None:
        resolve(hub, tmp_path)
        (lock,) = (tmp_path / "locks").iterdir()
        lock.write_text(lock.read_text()[:-20])
        with pytest.raises(DesiredStateError, match="restore"):
            resolve(hub, tmp_path)
