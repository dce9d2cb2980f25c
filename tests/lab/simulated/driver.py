"""Runs a stub engine on this machine, on GPUs installed in a folder, for the tests of both."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def free_port() -> int:
    """A port of loopback that nobody has now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Running:
    """A stub engine under way.

    + log: what all its processes print
    """

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process = process
        self.url = f"http://127.0.0.1:{port}"
        self._log = log

    @property
    def log(self) -> str:
        """Everything that was printed so far."""
        return self._log.read_text()

    def wait_for(self, text: str, seconds: float = 20) -> None:
        """Wait until the log holds a text."""
        until = time.monotonic() + seconds
        while text not in self.log:
            ended = self.process.poll()
            if ended is not None or time.monotonic() > until:
                raise AssertionError(f"no {text!r}, status {ended}, in:\n{self.log}")
            time.sleep(0.02)

    def wait_ready(self) -> None:
        """Wait until it serves."""
        self.wait_for("Application startup complete.")

    def end(self, seconds: float = 20) -> int:
        """Wait for the end of the main process. Returns its status, negative for a signal."""
        return self.process.wait(timeout=seconds)

    def get(self, path: str, body: Any = None, seconds: float = 5, **headers: str) -> Any:
        """The status of an answer and its body, as JSON where it is."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310 - the stub on loopback
            self.url + path, data=data, headers=headers
        )
        try:
            with DIRECT.open(request, timeout=seconds) as answer:
                return answer.status, _parsed(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _parsed(error.read())

    def ask(self, seconds: float = 5, **fields: Any) -> Any:
        """One chat completion of five tokens.

        + fields: further fields of the request
        """
        body = {"messages": [{"role": "user", "content": "Where is Paris?"}], "max_tokens": 5}
        return self.get("/v1/chat/completions", body | fields, seconds)


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode()


def command(model: Path, port: int, *flags: str) -> list[str]:
    """The command line of a stub engine with two ranks."""
    words = ["--model", str(model), "--served-model-name", "lab/model", "--host", "127.0.0.1"]
    words += ["--port", str(port), "--tensor-parallel-size", "2", *flags]
    return [sys.executable, "-m", "boxwright_stub_engine", *words]


@contextmanager
def engine(
    root: Path,
    site: Path,
    *flags: str,
    plan: Mapping[str, Any] | None = None,
    devices: str | None = "0,1",
    port: int | None = None,
    model: Path | None = None,
) -> Iterator[Running]:
    """Run a stub engine and end all its processes afterwards.

    + root: folder with the simulated GPUs, and with ``model/`` unless another is given
    + site: folder that the wheel is installed into
    + flags: after those of :func:`command`; the last one counts
    + devices: CUDA_VISIBLE_DEVICES; None for none
    """
    number = port or free_port()
    log = root / f"engine-{number}-{time.monotonic_ns()}.log"
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(site),
        "SIMULATED_ROOT": str(root),
        "STUB_PLAN": json.dumps({"load_seconds": 0.1, **(plan or {})}),
    }
    if devices is not None:
        environment["CUDA_VISIBLE_DEVICES"] = devices
    with log.open("wb") as output:
        process = subprocess.Popen(
            command(model or root / "model", number, *flags),
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=root,
            start_new_session=True,
        )
    try:
        yield Running(process, number, log)
    finally:
        # Orphans stay in the session that was made for them.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
