"""The local Hub under the real client: listing, downloads, revisions, access."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lab.hub import Fault, Hub, chosen, launched, write_model
from tests.lab.hub.body import wanted_range
from tests.lab.hub.client import case, client, digests, fetch
from tests.lab.hub.conftest import BIG, REPO, SHARD
from tests.lab.hub.repository import git_blob_sha1


def test_listing(hub: Hub, root: Path, tmp_path: Path) -> None:
    sha = hub.commit(REPO)
    hub.tag(REPO, "v1")
    hub.configure(page=4)
    found = client(
        hub,
        tmp_path,
        case("info", "info", repo_id=REPO),
        case("tag", "info", repo_id=REPO, revision="v1"),
        case("tree", "tree", repo_id=REPO, revision=sha, recursive=True),
        case("top", "tree", repo_id=REPO),
        case("folder", "tree", repo_id=REPO, path_in_repo="docs"),
        case("refs", "refs", repo_id=REPO),
        case("paths", "paths_info", repo_id=REPO, paths=["config.json", "docs", "none"]),
    )
    assert found["info"] == found["tag"]
    info = found["info"]["value"]
    assert info["sha"] == sha
    files = digests(root / REPO)
    assert info["files"].keys() == files.keys()
    assert info["files"][SHARD] == [(root / REPO / SHARD).stat().st_size, files[SHARD]]
    config = (root / REPO / "config.json").read_bytes()
    assert info["files"]["config.json"][1] == git_blob_sha1(len(config), config)
    assert git_blob_sha1(0) == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", "as git names it"
    expected = [f"RepoFile {path}" for path in files]
    assert sorted(found["tree"]["value"]) == sorted([*expected, "RepoFolder docs"])
    assert "RepoFile docs/notes.md" not in found["top"]["value"]
    assert found["folder"]["value"] == ["RepoFile docs/notes.md"]
    assert found["refs"]["value"] == {"main": sha, "v1": sha}
    assert found["paths"]["value"] == ["config.json", "docs"]
    pages = [r for r in chosen(hub.requests(), path="tree") if "docs" not in r.target]
    assert len(pages) > 2


def test_snapshot_and_verify(hub: Hub, root: Path, tmp_path: Path) -> None:
    sha = hub.commit(REPO)
    there = {"repo_id": REPO, "revision": sha, "local_dir": str(tmp_path / "local")}
    got = client(hub, tmp_path / "home", case("get", "snapshot", **there))
    assert got["get"]["value"] == digests(root / REPO)
    bodies = [r for r in chosen(hub.requests(), method="GET", status=200) if "." in r.path]
    assert sum(r.sent for r in bodies) == sum(
        path.stat().st_size for path in (root / REPO).rglob("*") if path.is_file()
    )
    assert {r.where for r in bodies if r.path.endswith(".safetensors")} == {"cdn"}
    shard = tmp_path / "local" / SHARD
    shard.write_bytes(shard.read_bytes()[:-1] + b"\0\0")
    (tmp_path / "local" / "config.json").unlink()
    check = client(hub, tmp_path / "home", case("check", "verify", **there))
    assert check["check"]["value"] == {
        "checked": len(digests(root / REPO)) - 1,
        "mismatches": [SHARD],
        "missing": ["config.json"],
    }


def test_commits_are_of_the_content(hub: Hub, tmp_path: Path) -> None:
    write_model(tmp_path / "one", seed=1)
    write_model(tmp_path / "again", seed=1)
    write_model(tmp_path / "two", seed=2)
    one = hub.add_repo("lab/moving", tmp_path / "one")
    assert hub.add_repo("lab/moving", tmp_path / "again") == one
    two = hub.add_repo("lab/moving", tmp_path / "two")
    assert hub.commit("lab/moving") == two != one
    assert hub.commit("lab/moving", one) == one, "an old commit stays while its files do"
    (tmp_path / "two" / "config.json").write_text("{}")
    three = hub.add_repo("lab/moving", tmp_path / "two")
    with pytest.raises(LookupError):
        hub.commit("lab/moving", two)
    assert hub.commit("lab/moving") == three


def test_what_is_not_there(hub: Hub, tmp_path: Path) -> None:
    found = client(
        hub,
        tmp_path,
        case("repo", "info", repo_id="lab/none"),
        case("revision", "info", repo_id=REPO, revision="none"),
        case("file", "download", repo_id=REPO, filename="none.json"),
    )
    assert {name: result["error"] for name, result in found.items()} == {
        "repo": "RepositoryNotFoundError",
        "revision": "RevisionNotFoundError",
        "file": "RemoteEntryNotFoundError",
    }


def test_gates_and_tokens(hub: Hub, root: Path, tmp_path: Path) -> None:
    hub.allow(tokens=["hf_stranger"], gated={REPO: ["hf_reader"]}, private={BIG: ["hf_owner"]})
    shard = {"repo_id": REPO, "filename": SHARD}
    cases = [
        case("anonymous", "download", **shard, **{"token": False}),
        case("stranger", "download", **shard, **{"token": "hf_stranger"}),
        case("unknown", "download", **shard, **{"token": "hf_wrong"}),
        case("reader", "download", **shard, **{"token": "hf_reader"}),
        case("listing", "info", repo_id=REPO),
        case("private", "info", repo_id=BIG),
        case("owner", "info", repo_id=BIG, **{"token": "hf_owner"}),
    ]
    for number, one in enumerate(cases):
        if one["call"] == "download":
            one["arguments"]["local_dir"] = str(tmp_path / str(number))
    found = client(hub, tmp_path / "home", *cases)
    assert found["anonymous"]["error"] == "GatedRepoError"
    assert found["stranger"]["error"] == "GatedRepoError"
    assert "Invalid credentials" in found["unknown"]["message"]
    assert found["reader"]["value"] == digests(root / REPO)[SHARD]
    assert found["listing"]["value"]["gated"] == "manual"
    assert found["private"]["error"] == "RepositoryNotFoundError"
    assert found["owner"]["value"]["sha"] == hub.commit(BIG)
    at_cdn = chosen(hub.requests(), where="cdn")
    assert at_cdn
    assert not any(r.authorized for r in at_cdn), "the client keeps its token from the CDN"
    assert "hf_reader" not in repr(hub.requests())


@given(st.text(alphabet="0123456789-=bytes, ", max_size=16), st.integers(0, 50))
def test_a_range_is_inside_the_file_or_none(header: str, size: int) -> None:
    try:
        found = wanted_range(header, size)
    except ValueError:
        return
    assert found is None or 0 <= found[0] < found[1] <= size


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 50))
def test_a_range_is_what_was_asked_for(first: int, last: int, size: int) -> None:
    whole = bytes(range(size))
    if first >= size and first <= last:
        with pytest.raises(ValueError, match="nothing of"):
            wanted_range(f"bytes={first}-{last}", size)
        return
    found = wanted_range(f"bytes={first}-{last}", size)
    wanted = whole[first : last + 1] if first <= last else whole
    assert whole[slice(*(found or (0, size)))] == wanted


def test_ranges_and_signed_urls(hub: Hub, root: Path) -> None:
    content = (root / REPO / SHARD).read_bytes()
    url = f"{hub.url}/{REPO}/resolve/main/{SHARD}"
    assert fetch(url) == (200, content)
    assert fetch(url, Range="bytes=10-19") == (206, content[10:20])
    assert fetch(url, Range="bytes=-5") == (206, content[-5:])
    assert fetch(url, Range=f"bytes={len(content)}-") == (416, b"")
    assert fetch(f"{hub.cdn_url}/{REPO}/{hub.commit(REPO)}/{SHARD}")[0] == 403
    assert fetch(url, Authorization="Bearer hf_x")[0] == 400, "urllib carries the token along"
    hub.configure(url_lifetime=-5)
    status, body = fetch(url)
    assert (status, b"expired" in body) == (403, True)


def test_throttle_is_shared_by_all_downloads(hub: Hub) -> None:
    hub.configure(throttle=400_000)
    url = f"{hub.url}/{REPO}/resolve/main/{SHARD}"
    start = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        sizes = [len(body) for _, body in pool.map(fetch, [url, url])]
    assert time.monotonic() - start > sum(sizes) / 400_000 * 0.8


def test_a_hub_in_another_process(root: Path, tmp_path: Path) -> None:
    with launched(root) as hub:
        sha = hub.commit(REPO)
        hub.inject(Fault("status", path=SHARD, status=503, times=2))
        there = {"repo_id": REPO, "filename": SHARD, "local_dir": str(tmp_path / "local")}
        found = client(hub, tmp_path / "home", case("get", "download", **there))
        assert found["get"]["error"] == "HfHubHTTPError"
        assert hub.faults()[0]["hit"] == 1
        hub.clear_faults()
        assert fetch(f"{hub.url}/{REPO}/resolve/{sha}/{SHARD}")[0] == 200
        assert [r.status for r in chosen(hub.requests(), where="cdn")] == [503, 200]
        hub.forget_requests()
        assert hub.requests() == ()
        with pytest.raises(ValueError, match="commit: Invalid rev id: none"):
            hub.commit(REPO, "none")
        with pytest.raises(ValueError, match="no operation explode"):
            hub.control("explode")
        with pytest.raises(ValueError, match="one of status, html"):
            hub.control("inject", kind="explode")
