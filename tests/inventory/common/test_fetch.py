"""What crosses for a fetch, and what lies in a snapshot's manifest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.common.fetch import FetchAccount, FetchRequest, ListedFile
from inventory.common.manifest import Manifest, ProvenFile, read_manifest
from inventory.common.wire import WireError

COMMIT = "a" * 40
SECRET = {"token": "hf_secret"}
DIGESTS = st.from_regex(r"\A(sha256:[0-9a-f]{64}|git-sha1:[0-9a-f]{40})\Z")
PATHS = st.from_regex(r"\A[a-z]{1,5}(/[a-z0-9.\-]{1,8}[a-z])?\Z")
SIZES = st.integers(min_value=0, max_value=1 << 60)
PROVEN = st.builds(ProvenFile, PATHS, SIZES, DIGESTS, st.integers(), SIZES)
ACCOUNTS = st.builds(FetchAccount, SIZES, SIZES, st.floats(min_value=0, max_value=1e9))


def request(**changed: object) -> dict[str, object]:
    return {
        "user": "vllm",
        "repo": "o/n",
        "commit": COMMIT,
        "folder": f"/shared/models/o/n/{COMMIT}",
        "files": [{"path": "x", "size": 1, "digest": "sha256:" + "0" * 64}],
        **changed,
    }


def test_a_request_comes_back_as_it_went() -> None:
    sent = FetchRequest.from_json(
        request(**SECRET, source="/disk", limits={"workers": 2, "dead": 600})
    )
    assert FetchRequest.from_json(json.loads(json.dumps(sent.to_json()))) == sent
    assert sent.token == "hf_secret"  # noqa: S105
    assert "hf_secret" not in repr(sent)
    assert sent.limits.dead == 600


@pytest.mark.parametrize(
    "changed",
    [
        {"commit": "main"},
        {"folder": "models"},
        {"files": [{"path": "x", "size": -1, "digest": "sha256:" + "0" * 64}]},
        {"files": [{"path": "x", "size": 1, "digest": "md5:0"}]},
        {"files": [{"path": "../x", "size": 1, "digest": "sha256:" + "0" * 64}]},
        {"limit": {}},
        {"token": ["hf_secret"]},
    ],
)
def test_what_is_no_request_is_refused_without_its_token(changed: dict[str, object]) -> None:
    with pytest.raises(WireError) as caught:
        FetchRequest.from_json({**request(**SECRET), **changed})
    assert "hf_secret" not in str(caught.value)


def test_everything_of_a_fetch_is_beside_its_snapshot() -> None:
    asked = FetchRequest.from_json(request())
    (file,) = asked.files
    home = Path("/shared/models/o/n")
    assert asked.home == home
    assert asked.staging == home / f".fetching-{COMMIT}"
    assert asked.lease == home / f".fetching-{COMMIT}.lease"
    assert asked.progress == home / f".fetching-{COMMIT}.progress.json"
    assert asked.proven == asked.staging / ".boxwright/proven.jsonl"
    assert asked.part(file).parent == asked.staging / ".boxwright/parts"
    assert asked.part(file).name.startswith("0" * 64)


def test_both_kinds_of_digest() -> None:
    sha256 = "98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4"
    blob = "45b983be36b73c0788dc9cbcb76cbb80fc7bb057"  # git hash-object
    for digest in (f"sha256:{sha256}", f"git-sha1:{blob}"):
        file = ListedFile("x", 3, digest)
        hasher = file.hasher()
        hasher.update(b"hi\n")
        assert hasher.hexdigest() == file.hex


@given(st.lists(PROVEN, max_size=5), st.text(), ACCOUNTS)
def test_a_manifest_reads_back(
    files: list[ProvenFile], problem: str, account: FetchAccount
) -> None:
    written = Manifest("o/n", COMMIT, problem, tuple(files), fetch=account)
    assert read_manifest(written.text) == written


def test_a_manifest_of_before_and_of_later_is_read() -> None:
    file = {"path": "x", "size": 3, "digest": "sha256:" + "0" * 64, "modified_ns": 7, "inode": 0}
    text = json.dumps(
        {
            "version": 2,
            "repo": "o/n",
            "commit": COMMIT,
            "source": None,
            "verified_at": 1_764_000_000,
            "problem": "",
            "fetch": {"downloaded": 3, "reused": 0, "seconds": 0.1, "mirror": "later"},
            "files": [{**file, "mode": "later"}],
            "signed": "later",
        }
    )
    manifest = read_manifest(text)
    assert manifest.by_path == {"x": ProvenFile("x", 3, file["digest"], 7, 0)}  # type: ignore[arg-type]
    assert manifest.fetch == FetchAccount(3, 0, 0.1)
    assert read_manifest(json.dumps({**request(), "files": [], "problem": "x"})).fetch.seconds == 0


@given(st.text() | st.recursive(st.none() | st.integers(), st.lists).map(json.dumps))
def test_no_text_is_a_manifest_by_accident(text: str) -> None:
    with pytest.raises(WireError):
        read_manifest(text)


def test_a_file_is_as_it_was_where_nothing_changed() -> None:
    file = ProvenFile("x", 3, "sha256:" + "0" * 64, 7, 9)
    assert file.still(3, 7, 9)
    assert not file.still(4, 7, 9)
    assert not file.still(3, 8, 9)
    assert not file.still(3, 7, 8)
    assert ProvenFile("x", 3, file.digest, 7, 0).still(3, 7, 8), "the number says nothing there"
    assert file.has(3, file.digest)
    assert not file.has(3, "git-sha1:" + "0" * 40)
