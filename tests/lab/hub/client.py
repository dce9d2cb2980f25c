"""Runs calls of the real client against a local Hub, in a process of their own."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.lab.hub.remote import RemoteHub
from tests.lab.hub.server import Hub

PROJECT = Path(__file__).resolve().parents[3]

CHILD = [sys.executable, "-m", "tests.lab.hub.child"]


def case(name: str, call: str, **arguments: Any) -> dict[str, Any]:
    """One call of the client."""
    return {"name": name, "call": call, "arguments": arguments}


def environment(hub: Hub | RemoteHub, home: Path) -> dict[str, str]:
    """What the client is told."""
    return {
        "PATH": os.environ["PATH"],
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DOWNLOAD_TIMEOUT": "1",
        "NO_PROXY": "*",
    }


def client(hub: Hub | RemoteHub, home: Path, *cases: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Run calls of the real client in a process of its own, at the same time."""
    ended = subprocess.run(
        CHILD,
        input=json.dumps(cases),
        env=environment(hub, home),
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found: dict[str, dict[str, Any]] = json.loads(ended.stdout)
    return found


def digests(folder: Path) -> dict[str, str]:
    """sha256 of every file."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def fetch(url: str, **headers: str) -> tuple[int, bytes]:
    """Status and body of a plain GET."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - the lab's Hub
        with opener.open(request, timeout=5) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()
