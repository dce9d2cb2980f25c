"""What the tests of the fetcher share: a request against a local Hub, run here or in a process."""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from inventory.common.paths import FETCHING, OWN
from inventory.service import Model
from inventory.snapshot import Snapshot
from operations.hub import list_snapshot
from operations.remote.weights.fetch import explain, fetch, read_request
from tests.lab.hub import Hub, RemoteHub

REPO = "lab/tiny"
PROJECT = Path(__file__).parents[4]
FETCH = [sys.executable, "-B", "-m", "operations.remote.weights.fetch"]
QUICK = {
    "workers": 4,
    "silence": 0.6,
    "window": 0.6,
    "patience": 2.5,
    "beat": 0.1,
    "dead": 1.0,
    "interval": 0.3,
}
"""The fetcher's patience, cut to what a test has."""


def listing(hub: Hub | RemoteHub, repo: str = REPO) -> Snapshot:
    """The snapshot as the Hub lists it."""
    return list_snapshot(Model(repo=repo, endpoint=hub.url))


def request_for(
    hub: Hub | RemoteHub, snapshot: Snapshot, home: Path, **more: Any
) -> dict[str, Any]:
    """A request as the program reads it.

    + home: folder of the repository
    + more: other keys; ``limits`` adds to the quick ones
    """
    limits = {**QUICK, **more.pop("limits", {})}
    return {
        "user": getpass.getuser(),
        "endpoint": hub.url,
        "repo": snapshot.repo,
        "commit": snapshot.commit,
        "folder": str(home / snapshot.commit),
        "files": [file.to_json() for file in snapshot.files],
        "limits": limits,
        **more,
    }


def outcome(work: dict[str, Any]) -> str:
    """Fetch in this process: empty for success, else the sentence that the operator reads."""
    try:
        fetch(read_request(json.dumps(work)))
    except Exception as error:
        return explain(error, Path(work["folder"]))
    return ""


def clean_environment() -> dict[str, str]:
    """The environment without what concerns the Hub."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HF_")}


def running(work: dict[str, Any]) -> subprocess.Popen[str]:
    """Fetch in a process of its own; do not wait for it."""
    process = subprocess.Popen(
        FETCH,
        cwd=PROJECT,
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdin
    process.stdin.write(json.dumps(work))
    process.stdin.close()
    process.stdin = None
    return process


def ended(process: subprocess.Popen[str], timeout: float = 50) -> tuple[int, str]:
    """Exit status and everything that a fetch printed."""
    text, _ = process.communicate(timeout=timeout)
    return process.returncode, text


def is_exact(folder: Path, source: Path, snapshot: Snapshot) -> bool:
    """Whether every listed file is there, byte for byte, and no other."""
    there = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and OWN not in path.relative_to(folder).parts
    }
    return there == {file.path for file in snapshot.files} and all(
        (folder / path).read_bytes() == (source / path).read_bytes() for path in there
    )


def nothing_half_trusted(work: dict[str, Any], source: Path) -> bool:
    """Whether there is no snapshot, and every file that counts as proven is the right one."""
    folder = Path(work["folder"])
    staging = folder.parent / f"{FETCHING}{work['commit']}"
    placed = [path for path in staging.rglob("*") if path.is_file()]
    return not folder.exists() and all(
        path.read_bytes() == (source / path.relative_to(staging)).read_bytes()
        for path in placed
        if OWN not in path.relative_to(staging).parts
    )
