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
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from inventory.common.fetch import FetchRequest
from inventory.common.units import GIB
from inventory.common.wire import Wire

BAR = 28
HUNG = 75
"""Exit status of a fetch that hung: the unit starts it anew."""

RATE_SECONDS = 30.0


@dataclass(frozen=True)
class FetchState(Wire):
    """Where a fetch stands.

    + rate: bytes a second over the last half minute
    + seconds_left: None where nothing comes
    + files: those that are whole
    + trouble: files that wait for another attempt, and why
    """

    tolerant: ClassVar[bool] = True

    bytes: int
    total: int
    rate: int
    seconds_left: int | None
    files: int
    files_total: int
    trouble: Mapping[str, str]


class FetchProgress:
    """Bytes and files of one fetch. Safe to use from all workers."""

    def __init__(self, request: FetchRequest, total: int, files: int) -> None:
        self.request = request
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

    def __enter__(self) -> FetchProgress:
        self._say()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        with contextlib.suppress(OSError):
            self.request.progress.unlink()

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

    def state(self) -> FetchState:
        """Where it stands."""
        with self._lock:
            now = time.monotonic()
            self._samples.append((now, self.arrived))
            while len(self._samples) > 2 and now - self._samples[0][0] > RATE_SECONDS:  # noqa: PLR2004
                self._samples.popleft()
            since, before = self._samples[0]
            rate = (self.arrived - before) / max(now - since, 0.001)
            left = self.total - self.bytes
            return FetchState(
                bytes=self.bytes,
                total=self.total,
                rate=round(rate),
                seconds_left=round(left / rate) if rate > 0 else None,
                files=self.files_done,
                files_total=self.files,
                trouble=dict(self.trouble),
            )

    def _watch(self) -> None:
        terminal = sys.stdout.isatty()
        while not self._ended.wait(0.5 if terminal else self.request.limits.interval):
            self._say()
            if time.monotonic() - self.last > self.request.limits.hang:
                print(
                    f"fetch: hung: not a byte for {self.request.limits.hang:.0f} s, and no worker "
                    "gave up by itself; ending, to be started anew",
                    file=sys.stderr,
                    flush=True,
                )
                os._exit(HUNG)

    def _say(self) -> None:
        state = self.state()
        if sys.stdout.isatty():
            done = BAR * state.bytes // max(self.total, 1)
            print(f"\r[{'#' * done:<{BAR}}] {line(state)}\x1b[K", end="", flush=True)
        else:
            print(f"fetch: {line(state)}", flush=True)
        # Not write_whole: a disk that is slow to sync must not keep this thread from watching.
        draft = self.request.progress.with_name(f"{self.request.progress.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            draft.write_text(json.dumps(state.to_json()))
            draft.replace(self.request.progress)


def line(state: FetchState) -> str:
    """The state as one line for a person.

    >>> line(FetchState(3 << 30, 4 << 30, 200_000_000, 5, 3, 4, {}))
    '3.0 of 4.0 GiB (75 %), 200 MB/s, 5 s left, 3 of 4 files'
    """
    share = 100 * state.bytes // max(state.total, 1)
    parts = [
        f"{state.bytes / GIB:.1f} of {state.total / GIB:.1f} GiB ({share} %)",
        f"{state.rate / 1e6:.0f} MB/s",
        f"{duration(state.seconds_left)} left",
        f"{state.files} of {state.files_total} files",
    ]
    if state.trouble:
        path, reason = next(iter(state.trouble.items()))
        parts.append(f"{len(state.trouble)} waiting to try again ({path}: {reason})")
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


def read_progress(path: Path) -> FetchState | None:
    """What another process last wrote of its progress."""
    try:
        return FetchState.from_json(json.loads(path.read_text()))
    except (OSError, ValueError):
        return None
