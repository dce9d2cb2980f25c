"""How far a fetch is: one plain line an interval, a bar on a terminal, a file for those who wait.

The same thread watches that bytes come at all, whatever the processes and threads look like.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

from operations.remote.weights.job import Job

GIB = 1 << 30
BAR = 28
HUNG = 75
"""Exit status of a fetch that hung: the unit starts it anew."""

RATE_SECONDS = 30.0


class Progress:
    """Bytes and files of one fetch. Safe to use from all workers.

    + total: bytes to come
    + files: how many files
    """

    def __init__(self, job: Job, total: int, files: int) -> None:
        self.job = job
        self.total = total
        self.files = files
        self.bytes = 0
        self.arrived = 0
        self.files_done = 0
        self.trouble: dict[str, str] = {}
        self.started = self.last = time.monotonic()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._samples: deque[tuple[float, int]] = deque([(self.started, 0)])
        self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)

    def __enter__(self) -> Progress:
        self._say()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        with contextlib.suppress(OSError):
            self.job.progress.unlink()

    def had(self, count: int) -> None:
        """Bytes that an earlier run had brought; negative where they have to come again."""
        with self._lock:
            self.bytes += count

    def came(self, count: int) -> None:
        """Bytes that came just now."""
        with self._lock:
            self.bytes += count
            self.arrived += count
            self.last = time.monotonic()

    def finished(self, path: str) -> None:
        """A file is whole, proven and in its place."""
        with self._lock:
            self.files_done += 1
            self.trouble.pop(path, None)

    def stumbled(self, path: str, sentence: str) -> None:
        """A file is waiting for its next attempt."""
        with self._lock:
            self.trouble[path] = sentence

    def recovered(self, path: str) -> None:
        """Bytes of a file that had stumbled are coming again."""
        with self._lock:
            self.trouble.pop(path, None)

    def state(self) -> dict[str, Any]:
        """Where it stands, as plain data.

        Bytes, bytes a second over the last half minute, seconds to go (None where nothing
        comes), files, and the files that wait for another attempt with the reason.
        """
        with self._lock:
            now = time.monotonic()
            self._samples.append((now, self.arrived))
            while len(self._samples) > 2 and now - self._samples[0][0] > RATE_SECONDS:  # noqa: PLR2004
                self._samples.popleft()
            since, before = self._samples[0]
            rate = (self.arrived - before) / max(now - since, 0.001)
            left = self.total - self.bytes
            return {
                "bytes": self.bytes,
                "total": self.total,
                "rate": round(rate),
                "seconds_left": round(left / rate) if rate > 0 else None,
                "files": self.files_done,
                "files_total": self.files,
                "trouble": dict(self.trouble),
            }

    def _watch(self) -> None:
        terminal = sys.stdout.isatty()
        while not self._ended.wait(0.5 if terminal else self.job.limits.interval):
            self._say()
            if time.monotonic() - self.last > self.job.limits.hang:
                print(
                    f"fetch: hung: not a byte for {self.job.limits.hang:.0f} s, and no worker gave "
                    "up by itself; ending, to be started anew",
                    file=sys.stderr,
                    flush=True,
                )
                os._exit(HUNG)

    def _say(self) -> None:
        state = self.state()
        if sys.stdout.isatty():
            done = BAR * state["bytes"] // max(self.total, 1)
            print(f"\r[{'#' * done:<{BAR}}] {line(state)}\x1b[K", end="", flush=True)
        else:
            print(f"fetch: {line(state)}", flush=True)
        draft = self.job.progress.with_name(f"{self.job.progress.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            draft.write_text(json.dumps(state))
            draft.replace(self.job.progress)


def line(state: dict[str, Any]) -> str:
    """The state as one line for a person.

    >>> line({"bytes": 3 << 30, "total": 4 << 30, "rate": 200e6, "seconds_left": 5, "files": 3,
    ...       "files_total": 4, "trouble": {}})
    '3.0 of 4.0 GiB (75 %), 200 MB/s, 5 s left, 3 of 4 files'
    """
    share = 100 * state["bytes"] // max(state["total"], 1)
    parts = [
        f"{state['bytes'] / GIB:.1f} of {state['total'] / GIB:.1f} GiB ({share} %)",
        f"{state['rate'] / 1e6:.0f} MB/s",
        f"{duration(state['seconds_left'])} left",
        f"{state['files']} of {state['files_total']} files",
    ]
    trouble = state["trouble"]
    if trouble:
        path, reason = next(iter(trouble.items()))
        parts.append(f"{len(trouble)} waiting to try again ({path}: {reason})")
    return ", ".join(parts)


def duration(seconds: float | None) -> str:
    """Seconds as a person says them.

    >>> duration(5), duration(200), duration(9000), duration(None)
    ('5 s', '3 min', '2.5 h', 'unknown time')
    """
    if seconds is None:
        return "unknown time"
    if seconds < 100:  # noqa: PLR2004
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"  # noqa: PLR2004


def read_progress(path: Path) -> dict[str, Any] | None:
    """What another process last wrote of its progress."""
    try:
        state = json.loads(path.read_text())
        line(state)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return dict(state)
