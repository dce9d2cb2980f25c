"""A Hub in a process of its own, driven over its control endpoint."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.lab.hub.control import Controls

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_PROJECT = Path(__file__).resolve().parents[3]


class RemoteHub(Controls):
    """The same operations as :class:`~tests.lab.hub.server.Hub`, on a Hub that runs elsewhere.

    + url: its endpoint
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def control(self, operation: str, **arguments: Any) -> Any:
        """Perform one operation there. Raises ValueError with the Hub's words."""
        request = urllib.request.Request(  # noqa: S310 - an http URL of the lab
            f"{self.url}/__control/{operation}",
            data=json.dumps(arguments).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with _DIRECT.open(request, timeout=30) as answer:
                return json.load(answer)["result"]
        except urllib.error.HTTPError as error:
            with error:
                raise ValueError(json.load(error)["error"]) from None


@contextmanager
def launched(
    root: Path, host: str = "127.0.0.1", port: int = 0, cdn_port: int = 0
) -> Iterator[RemoteHub]:
    """Run ``python -m tests.lab.hub`` and stop it at the end."""
    command = [sys.executable, "-m", "tests.lab.hub", "--root", str(root), "--host", host]
    command += ["--port", str(port), "--cdn-port", str(cdn_port)]
    with subprocess.Popen(command, cwd=_PROJECT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            words = process.stdout.readline().split()
            if not words:
                raise OSError(f"the local Hub did not start; exit status {process.wait()}")
            yield RemoteHub(words[1])
        finally:
            process.terminate()
            status = process.wait(timeout=10)
    if status:
        raise OSError(f"the local Hub ended with {status}")
