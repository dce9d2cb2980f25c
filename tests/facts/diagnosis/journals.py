"""Recorded journals, and small ones made to order in the same shape."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from facts.diagnosis import Hints

FOLDER = Path(__file__).parents[2] / "fixtures" / "journals"
ENTRIES: list[dict[str, Any]] = json.loads((FOLDER / "INDEX.json").read_text())
MORE: list[dict[str, Any]] = json.loads((FOLDER / "more" / "INDEX.json").read_text())
"""Journals of further failures, of the same shape, with pieces of the remedy in a list."""
NAMES = [str(entry["name"]) for entry in ENTRIES]
BEGAN = datetime.fromisoformat("2026-11-30T10:00:00+00:00").timestamp()

API, ENGINE = "APIServer pid=100", "EngineCore pid=200"
SITES = {
    "worker": ("WorkerProc failed to start.", "multiproc_executor.py:953"),
    "rpc": ("WorkerProc hit an exception.", "multiproc_executor.py:1063"),
    "engine": ("EngineCore failed to start.", "core.py:1510"),
    "step": ("EngineCore encountered a fatal error.", "core.py:1512"),
}


def text_of(name: str) -> str:
    """A recorded journal."""
    return (FOLDER / f"{name}.journal").read_text(errors="replace")


def hints_of(entry: dict[str, Any]) -> Hints:
    """What the recording says besides the journal."""
    captured = entry.get("captured_at")
    bad = entry.get("facts", {}).get("file")
    return Hints(
        now=datetime.fromisoformat(captured).timestamp() if captured else None,
        bad_files=(bad,) if bad else (),
    )


class Made:
    """A journal that is written line by line, one second after the other."""

    def __init__(self, unit: str = "vllm-x.service") -> None:
        self.unit = unit
        self.lines: list[str] = []
        self.seconds = 0.0
        self.systemd(f"Started {unit} - vLLM.")

    def raw(self, ident: str, text: str) -> Made:
        """One line under an identifier."""
        at = datetime.fromtimestamp(BEGAN + self.seconds).astimezone()
        self.lines.append(f"{at.strftime('%Y-%m-%dT%H:%M:%S%z')} box {ident}: {text}")
        return self

    def systemd(self, text: str) -> Made:
        """A line of systemd's."""
        return self.raw("systemd[1]", text)

    def wait(self, seconds: float) -> Made:
        """Let time go by."""
        self.seconds += seconds
        return self

    def said(self, process: str, level: str, where: str, text: str) -> Made:
        """A line that went through the engine's logger."""
        self.seconds += 1
        pid = process.rpartition("=")[2]
        stamp = datetime.fromtimestamp(BEGAN + self.seconds).astimezone().strftime("%m-%d %H:%M:%S")
        return self.raw(f"vllm[{pid}]", f"({process}) {level} {stamp} [{where}] {text}")

    def info(self, process: str, text: str) -> Made:
        """A line at INFO."""
        return self.said(process, "INFO", "core.py:1", text)

    def banner(self, **arguments: object) -> Made:
        """The first lines of every start."""
        given = {"model": "/srv/models/m", "port": 8000, **arguments}
        self.info(API, f"non-default args: {given!r}")
        tp = arguments.get("tensor_parallel_size", 1)
        return self.info(
            ENGINE,
            "Initializing a V1 LLM engine (v0.32.0) with config: model='/srv/models/m', "
            f"max_seq_len=4096, tensor_parallel_size={tp}, device_config=cuda, seed=0",
        )

    def workers(self, count: int = 1) -> Made:
        """Workers that come up and begin to load."""
        for rank in range(count):
            self.info(
                worker(rank), f"world_size={count} rank={rank} local_rank={rank} backend=nccl"
            )
        return self.info(worker(0), "Loading model from scratch...")

    def fails(
        self, process: str, site: str, raised: str, calls: Iterable[tuple[str, str]] = ()
    ) -> Made:
        """A traceback that ends a process, through the logger.

        + calls: file and source line of each frame
        + raised: the exception's lines
        """
        head, where = SITES[site]
        self.said(process, "ERROR", where, head)
        for line in traceback(raised, calls):
            self.said(process, "ERROR", where, line)
            self.seconds -= 1
        return self

    def crashes(self, raised: str, calls: Iterable[tuple[str, str]] = ()) -> Made:
        """A traceback of the server's on stderr."""
        for line in traceback(raised, calls):
            self.raw("vllm[100]", line)
        return self

    def exits(self, status: int = 1) -> Made:
        """systemd's lines about the end."""
        self.wait(2)
        if status == 0:
            return self.systemd(f"{self.unit}: Deactivated successfully.")
        self.systemd(f"{self.unit}: Main process exited, code=exited, status={status}/FAILURE")
        return self.systemd(f"{self.unit}: Failed with result 'exit-code'.")

    def ready(self) -> Made:
        """The server is up and has answered once."""
        self.raw("vllm[100]", "INFO:     Application startup complete.")
        return self.raw(
            "vllm[100]", 'INFO:     127.0.0.1:5000 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
        )

    @property
    def text(self) -> str:
        """The journal."""
        return "\n".join(self.lines) + "\n"


def worker(rank: int) -> str:
    """A worker's name and process id."""
    return f"Worker_TP{rank} pid={300 + rank}"


def traceback(raised: str, calls: Iterable[tuple[str, str]]) -> list[str]:
    """A traceback as Python prints it."""
    lines = ["Traceback (most recent call last):"]
    for file, source in calls:
        lines += [f'  File "/opt/vllm/lib/{file}", line 10, in step', f"    {source}"]
    return lines + raised.split("\n")


def worker_fails(
    raised: str, calls: Iterable[tuple[str, str]] = (), count: int = 4, **arguments: object
) -> str:
    """A start that ends by a worker's exception, with all the echoes that follow."""
    made = Made().banner(tensor_parallel_size=count, **arguments).workers(count)
    made.fails(worker(2 if count > 2 else 0), "worker", raised, calls)
    return echoes(made).text


def server_fails(raised: str, calls: Iterable[tuple[str, str]] = (), status: int = 1) -> str:
    """A start that ends while the configuration is read."""
    return Made().banner().crashes(raised, calls).exits(status).text


def echoes(made: Made) -> Made:
    """What follows every failure of a worker."""
    made.fails(
        ENGINE,
        "engine",
        "Exception: WorkerProc initialization failed due to an exception in a background process. "
        "See stack trace for root cause.",
    )
    made.crashes(
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core "
        "proc(s): {'EngineCore': 1}"
    )
    return made.exits()
