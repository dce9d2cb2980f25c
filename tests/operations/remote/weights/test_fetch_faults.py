"""The fault matrix: each ends byte-exact, or with the one right error and nothing half-trusted."""

import json
import time
from pathlib import Path

import pytest
from huggingface_hub import close_session

from inventory.common.paths import MANIFEST
from tests.lab.hub import Fault, Hub, chosen, write_model
from tests.operations.remote.weights.fetching import (
    REPO,
    is_exact,
    listing,
    nothing_half_trusted,
    outcome,
    request_for,
)

pytestmark = pytest.mark.lab

SHARDS = 3
BYTES = 2_000_000
SECOND = "model-00002-of-00003.safetensors"
ENTRY = {"X-Error-Code": "EntryNotFound"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hub")
    write_model(root / REPO, shards=SHARDS, shard_bytes=BYTES)
    return root


def at_cdn(kind: str, **more: object) -> Fault:
    return Fault(kind, path=SECOND, **more)  # type: ignore[arg-type]


def at_hub(kind: str, **more: object) -> Fault:
    return Fault(kind, "hub", SECOND, **more)  # type: ignore[arg-type]


PASSING = {
    "500": [at_cdn("status", status=500)],
    "502": [at_cdn("status", status=502)],
    "503 twice": [at_cdn("status", status=503, times=2)],
    "504": [at_cdn("status", status=504)],
    "408": [at_cdn("status", status=408)],
    "429": [at_cdn("status", status=429, headers={"Retry-After": "1"})],
    "429 of the Hub": [at_hub("status", status=429, headers={"Retry-After": "1"})],
    "503 of the Hub": [at_hub("status", status=503, times=2)],
    "TCP reset": [at_cdn("reset", at=1_500_000)],
    "early FIN": [at_cdn("cut", at=1_500_000)],
    "FIN at once": [at_cdn("cut", at=0, times=2)],
    "FIN again and again": [at_cdn("cut", at=300_000, times=5)],
    "flipped byte": [at_cdn("corrupt", at=1_500_000)],
    "short body": [at_cdn("short", at=1_500_000)],
    "trickle": [at_cdn("trickle", at=1_500_000, rate=100)],
    "stall": [at_cdn("stall", at=1_500_000)],
    "no answer": [at_cdn("hang")],
    "ignored Range": [at_cdn("cut", at=1_500_000), at_cdn("norange")],
    "dropped HEAD": [at_hub("drop")],
    "HEAD without an answer": [at_hub("hang")],
    "expired signed URL": [at_cdn("status", status=403)],
    "portal, signed in to meanwhile": [at_cdn("html")],
    "everything at once": [
        at_hub("drop"),
        at_cdn("status", status=503),
        at_cdn("cut", at=700_000),
        at_cdn("reset", at=700_000),
        at_cdn("short", at=100_000),
    ],
}


@pytest.mark.parametrize("faults", PASSING.values(), ids=PASSING)
def test_what_passes_is_overcome(hub: Hub, root: Path, tmp_path: Path, faults: list[Fault]) -> None:
    snapshot = listing(hub)
    for fault in faults:
        hub.inject(fault)
    work = request_for(hub, snapshot, tmp_path)
    assert outcome(work) == ""
    assert is_exact(tmp_path / snapshot.commit, root / REPO, snapshot)
    assert [entry["hit"] for entry in hub.faults()] == [fault.times for fault in faults]


def test_a_file_longer_than_one_answer_may_be_comes_in_several(
    hub: Hub, root: Path, tmp_path: Path
) -> None:
    snapshot = listing(hub)
    longest = 600_000
    # The third answer breaks off: what follows begins there, and ends where that one should have.
    hub.inject(at_cdn("cut", at=200_000, after=2))
    assert outcome(request_for(hub, snapshot, tmp_path, limits={"longest": longest})) == ""
    assert is_exact(tmp_path / snapshot.commit, root / REPO, snapshot)
    size = next(file.size for file in snapshot.files if file.path == SECOND)
    asked = [one.range or "" for one in chosen(hub.requests(), where="cdn", path=SECOND)]
    spans = [tuple(map(int, one.removeprefix("bytes=").split("-"))) for one in asked]
    assert all(end - start < longest for start, end in spans)
    assert [start for start, _ in spans[:3]] == [0, longest, 2 * longest]
    assert 2 * longest < spans[3][0] <= 2 * longest + 200_000
    assert spans[-1][1] == size - 1
    assert sum(one.sent for one in chosen(hub.requests(), where="cdn", path=SECOND)) == size


@pytest.mark.parametrize("name", ["early FIN", "TCP reset", "short body", "stall", "trickle"])
def test_bytes_that_came_are_not_asked_for_again(hub: Hub, tmp_path: Path, name: str) -> None:
    snapshot = listing(hub)
    hub.inject(PASSING[name][0])
    assert outcome(request_for(hub, snapshot, tmp_path)) == ""
    first, second = chosen(hub.requests(), where="cdn", path=SECOND)
    assert first.range is None
    assert second.range is not None
    assert int(second.range.removeprefix("bytes=").split("-")[0]) >= 1_400_000


def test_a_retry_waits_as_long_as_it_is_told(hub: Hub, tmp_path: Path) -> None:
    snapshot = listing(hub)
    hub.inject(at_cdn("status", status=429, headers={"Retry-After": "2"}))
    began = time.monotonic()
    assert outcome(request_for(hub, snapshot, tmp_path)) == ""
    assert time.monotonic() - began >= 2


FAILING = {
    "404 of one listed file": (
        [at_hub("status", status=404, headers=ENTRY, times=0)],
        f"{SECOND}: the Hub lists this file and answers 404 for it",
    ),
    "503 for ever": ([at_cdn("status", status=503, times=0)], "answers 503"),
    "flipped byte for ever": (
        [at_cdn("corrupt", at=5, times=0)],
        "not those that the Hub lists, 3 times; suspect a proxy on the way, the network card or",
    ),
    "portal before the storage": (
        [at_cdn("html", times=0)],
        "sends a web page in place of the file: a captive portal or a proxy",
    ),
    "trickle for ever": (
        [at_cdn("trickle", at=0, rate=10, times=0)],
        "the connection is given up",
    ),
    "400 of storage": ([at_cdn("status", status=400, times=0)], "400"),
}


@pytest.mark.parametrize(("faults", "words"), FAILING.values(), ids=FAILING)
def test_what_lasts_fails_one_file_and_keeps_the_others(
    hub: Hub, root: Path, tmp_path: Path, faults: list[Fault], words: str
) -> None:
    snapshot = listing(hub)
    for fault in faults:
        hub.inject(fault)
    work = request_for(hub, snapshot, tmp_path, limits={"patience": 1.5})
    told = outcome(work)
    assert words in told
    assert SECOND in told
    assert told.endswith(
        f"({len(snapshot.files) - 1} of {len(snapshot.files)} files are whole and kept)"
    )
    assert nothing_half_trusted(work, root / REPO)
    hub.clear_faults()
    hub.forget_requests()
    assert outcome(work) == ""
    assert is_exact(tmp_path / snapshot.commit, root / REPO, snapshot)
    assert {request.path for request in hub.requests() if request.repo} == {SECOND}


class TestTheRightError:
    def test_gated(self, hub: Hub, root: Path, tmp_path: Path) -> None:
        snapshot = listing(hub)
        hub.allow(tokens=["hf_reader", "hf_stranger"], gated={REPO: ["hf_reader"]})
        for token in (None, "hf_stranger"):
            work = request_for(hub, snapshot, tmp_path, token=token)
            assert "accept its licence" in outcome(work)
            assert nothing_half_trusted(work, root / REPO)
        # The CDN answers 400 to whoever sends it a token.
        assert outcome(request_for(hub, snapshot, tmp_path, token="hf_reader")) == ""  # noqa: S106
        assert not any(one.authorized for one in chosen(hub.requests(), where="cdn"))

    def test_a_token_that_is_none(self, hub: Hub, root: Path, tmp_path: Path) -> None:
        snapshot = listing(hub)
        hub.allow(tokens=["hf_reader"])
        work = request_for(hub, snapshot, tmp_path, token="hf_wrong")  # noqa: S106
        told = outcome(work)
        assert "does not accept the token, or wants one (401)" in told
        assert "hf_wrong" not in told
        assert nothing_half_trusted(work, root / REPO)

    def test_a_captive_portal_before_the_hub(self, hub: Hub, root: Path, tmp_path: Path) -> None:
        snapshot = listing(hub)
        hub.inject(Fault("html", "hub", times=0))
        work = request_for(hub, snapshot, tmp_path)
        assert "not as a Hub does (no X-Repo-Commit header): a captive portal" in outcome(work)
        assert nothing_half_trusted(work, root / REPO)

    def test_a_commit_that_its_author_removed(self, root: Path, tmp_path: Path) -> None:
        with Hub(root) as hub:
            snapshot = listing(hub)
            hub.remove_repo(REPO)
            write_model(tmp_path / "other", seed=5)
            hub.add_repo(REPO, tmp_path / "other")
            work = request_for(hub, snapshot, tmp_path / "home")
            assert "its author rewrote history" in outcome(work)

    def test_a_mirror_of_another_commit(self, hub: Hub, tmp_path: Path) -> None:
        snapshot = listing(hub)
        work = request_for(hub, snapshot, tmp_path)
        work["files"][0]["size"] += 1
        assert "the mirror is of another commit, or damaged" in outcome(work)

    def test_a_hub_that_is_down_with_half_a_folder_there(self, root: Path, tmp_path: Path) -> None:
        with Hub(root) as hub:
            snapshot = listing(hub)
            hub.inject(at_cdn("status", status=404, times=0))
            work = request_for(hub, snapshot, tmp_path, limits={"patience": 1.0})
            assert SECOND in outcome(work)
            port, cdn_port = (int(url.rpartition(":")[2]) for url in (hub.url, hub.cdn_url))
        close_session()  # the Hub's threads would go on answering what is connected
        told = outcome(work)
        assert "ConnectError" in told
        assert "files are whole and kept" in told
        assert nothing_half_trusted(work, root / REPO)
        with Hub(root, port=port, cdn_port=cdn_port) as hub:
            assert outcome(work) == ""
            assert {request.path for request in hub.requests() if request.repo} == {SECOND}
        assert is_exact(tmp_path / snapshot.commit, root / REPO, snapshot)

    def test_a_hub_that_is_not_there_ends_it_within_its_patience(
        self, hub: Hub, tmp_path: Path
    ) -> None:
        """Not once for each file: 126 files would take hours to fail."""
        snapshot = listing(hub)
        hub.inject(Fault("status", "*", status=503, times=0))
        began = time.monotonic()
        assert "answers 503" in outcome(
            request_for(hub, snapshot, tmp_path, limits={"patience": 1.0, "workers": 1})
        )
        assert time.monotonic() - began < 6


class TestNames:
    def fetched(self, root: Path, tmp_path: Path) -> str:
        """Fetch a repository whatever its shards are called; what would keep it from loading."""
        with Hub(root) as hub:
            snapshot = listing(hub)
            assert outcome(request_for(hub, snapshot, tmp_path / "home")) == ""
            folder = tmp_path / "home" / snapshot.commit
            assert is_exact(folder, root / REPO, snapshot)
        return str(json.loads((folder / MANIFEST).read_text())["problem"])

    def renamed(self, root: Path, names: dict[str, str]) -> None:
        """Rename shards, and say so in the index."""
        model = root / REPO
        index = model / "model.safetensors.index.json"
        text = index.read_text()
        for before, after in names.items():
            (model / before).rename(model / after)
            text = text.replace(before, after)
        index.write_text(text)

    @pytest.fixture
    def own(self, tmp_path: Path) -> Path:
        root = tmp_path / "hub"
        write_model(root / REPO, shards=3, shard_bytes=20_000)
        return root

    def test_names_that_start_at_zero(self, own: Path, tmp_path: Path) -> None:
        self.renamed(
            own,
            {
                f"model-{n:05d}-of-00003.safetensors": f"model-{n - 1:05d}-of-00003.safetensors"
                for n in (1, 2, 3)
            },
        )
        assert self.fetched(own, tmp_path) == ""

    def test_the_last_but_one_is_named_by_another_rule(self, own: Path, tmp_path: Path) -> None:
        """126 shards, and the one that "is missing" goes by another name."""
        self.renamed(own, {SECOND: "model-mtp-00125.safetensors"})
        assert self.fetched(own, tmp_path) == ""

    def test_an_extra_shard(self, own: Path, tmp_path: Path) -> None:
        extra = (own / REPO / SECOND).read_bytes()
        (own / REPO / "model-00004-of-00003.safetensors").write_bytes(extra)
        assert self.fetched(own, tmp_path) == ""

    def test_an_index_that_names_a_shard_that_is_nowhere(self, own: Path, tmp_path: Path) -> None:
        (own / REPO / SECOND).unlink()
        problem = self.fetched(own, tmp_path)
        assert problem == (
            "model.safetensors.index.json names 3 shards and 1 of them are not in the repository: "
            f"{SECOND}"
        )

    @pytest.mark.parametrize(
        ("damage", "words"),
        [
            (lambda content: content[:-5], "bytes where its header speaks of"),
            (lambda content: content + b"x", "bytes where its header speaks of"),
            (lambda _: b"version https://git-lfs.github.com/spec/v1\n", "is not a safetensors"),
            (lambda _: b"", "has no safetensors header"),
            (lambda content: content[:8] + b"[" + content[9:], "has no safetensors header"),
        ],
        ids=["short", "long", "a pointer file", "empty", "no JSON"],
    )
    def test_a_shard_that_its_author_uploaded_broken(
        self, own: Path, tmp_path: Path, damage: object, words: str
    ) -> None:
        path = own / REPO / SECOND
        assert callable(damage)
        path.write_bytes(damage(path.read_bytes()))
        problem = self.fetched(own, tmp_path)
        assert SECOND in problem
        assert words in problem
