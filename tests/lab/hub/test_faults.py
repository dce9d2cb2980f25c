"""Every fault of the local Hub, as the real client sees it.

The expected outcomes are those of huggingface_hub 2.4.0. A test that fails after an upgrade of
the client says what changed in the client.
"""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.lab.hub import Fault, Hub, chosen
from tests.lab.hub.client import CHILD, PROJECT, case, client, digests, environment
from tests.lab.hub.conftest import BIG, BIG_SHARD, REPO, SHARD
from tests.lab.hub.faults import FaultBook

CUT = Fault("cut", at=12_000_000)
FAULTS: dict[str, tuple[tuple[Fault, ...], str, str]] = {
    # name: faults on the one shard of repository lab/<name>, exception, words of its message
    "status": ((Fault("status", status=503),), "HfHubHTTPError", "503"),
    "expired": ((Fault("status", status=403),), "HfHubHTTPError", "403"),
    "limited": ((Fault("status", status=429, headers={"Retry-After": "1"}),), "", ""),
    "absent": (
        (Fault("status", "hub", status=404, headers={"X-Error-Code": "EntryNotFound"}),),
        "RemoteEntryNotFoundError",
        "404",
    ),
    "html": ((Fault("html", "hub"),), "LocalEntryNotFoundError", "X-Repo-Commit"),
    "drop": ((Fault("drop", "hub"),), "RemoteProtocolError", "disconnected"),
    "cut": ((CUT,), "", ""),
    "norange": ((CUT, Fault("norange")), "", ""),
    "reset": ((Fault("reset", at=12_000_000),), "ReadError", ""),
    "corrupt": ((Fault("corrupt", at=12_000_000),), "", ""),
    "short": ((Fault("short", at=20_000_000),), "OSError", "Consistency check failed"),
    "stall": ((Fault("stall", at=12_000_000),), "", ""),
    "latency": ((Fault("hang", seconds=0.3),), "", ""),
}


def test_each_fault_as_the_client_sees_it(hub: Hub, root: Path, tmp_path: Path) -> None:
    cases = []
    for name, (faults, _, _) in FAULTS.items():
        hub.add_repo(f"lab/{name}", root / BIG)
        for fault in faults:
            hub.inject(replace(fault, repo=f"lab/{name}"))
        there = {"revision": hub.commit(BIG), "local_dir": str(tmp_path / name)}
        cases.append(case(name, "download", repo_id=f"lab/{name}", filename=BIG_SHARD, **there))
    found = client(hub, tmp_path / "home", *cases)
    right = digests(root / BIG)[BIG_SHARD]
    for name, (_, error, words) in FAULTS.items():
        assert found[name].get("error", "") == error, (name, found[name])
        assert words in found[name].get("message", ""), (name, found[name])
        if not error:
            assert (found[name]["value"] == right) == (name != "corrupt"), name
    assert [fault["hit"] for fault in hub.faults()] == [1] * len(hub.faults())
    bodies = {name: chosen(hub.requests(), repo=f"lab/{name}", where="cdn") for name in FAULTS}
    for name in ("cut", "stall", "norange"):
        assert [r.range for r in bodies[name]] == [None, "bytes=10485760-"], name
        assert bodies[name][0].sent == 12_000_000
    assert [r.status for r in bodies["cut"]] == [200, 206]
    assert [r.status for r in bodies["norange"]] == [200, 200]
    assert [(r.sent, r.done) for r in bodies["reset"]] == [(12_000_000, True)]


def test_a_trickle_and_a_silent_listing_outlast_every_timeout(hub: Hub, tmp_path: Path) -> None:
    """Only a watch on the bytes and a deadline of one's own notice these."""
    hub.inject(Fault("trickle", path=SHARD, at=1000, rate=100, times=0))
    hub.inject(Fault("hang", "hub", "tree", times=0))
    there = {"repo_id": REPO, "filename": SHARD, "local_dir": str(tmp_path / "local")}
    with subprocess.Popen(
        CHILD,
        env=environment(hub, tmp_path / "home"),
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        cases = [case("get", "download", **there), case("list", "tree", repo_id=REPO)]
        process.stdin.write(json.dumps(cases).encode())
        process.stdin.close()
        until = time.monotonic() + 20
        while len(stuck := [r for r in hub.requests() if r.fault]) < 2:
            assert time.monotonic() < until
            time.sleep(0.05)
        time.sleep(1.5)
        assert process.poll() is None, "the client's timeout is one second"
        process.kill()
    assert {(r.path, r.fault) for r in stuck} == {(SHARD, "trickle"), ("tree", "hang")}
    [body] = chosen(hub.requests(), where="cdn")
    assert 1000 < body.sent < 2000
    [listing] = chosen(hub.requests(), path="tree")
    assert listing.status == 0


def test_which_request_a_fault_hits() -> None:
    book = FaultBook()
    book.inject(Fault("drop", "hub", "tree", after=1, times=2))
    book.inject(Fault("cut", "*", "*.safetensors", repo="lab/*", times=0))
    book.inject(Fault("html", "hub", method="HEAD"))
    tree = [book.take("hub", "lab/a", "GET", "tree") is not None for _ in range(4)]
    assert tree == [False, True, True, False]
    assert book.take("cdn", "other/a", "GET", "w.safetensors") is None
    body = [book.take("cdn", "lab/a", "GET", "w.safetensors") for _ in range(3)]
    assert [fault.kind for fault in body if fault] == ["cut"] * 3
    head = book.take("hub", "lab/a", "HEAD", "w.safetensors")
    assert head is not None
    assert head.kind == "html", "a HEAD has no body to cut"
    assert [entry["hit"] for entry in book.to_json()] == [2, 3, 1]
    book.clear()
    assert book.take("hub", "lab/a", "GET", "tree") is None
    with pytest.raises(ValueError, match="one of hub, cdn"):
        Fault("cut", where="moon")  # type: ignore[arg-type]
