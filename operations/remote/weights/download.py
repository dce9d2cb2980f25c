"""One file: taken up where it broke off, hashed while it arrives, placed once it is proven."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from operations.remote.weights.digest import feed, hasher_for
from operations.remote.weights.errors import (
    AgainError,
    CorruptError,
    OneFileError,
    PortalError,
    StoppedError,
)
from operations.remote.weights.job import File, Job
from operations.remote.weights.manifest import Record, record_of
from operations.remote.weights.progress import Progress
from operations.remote.weights.retry import policy, sentence
from operations.remote.weights.source import Source
from operations.remote.weights.writeback import PIECE, begin

FLUSH = 2 << 20
"""Bytes of one write, and what a killed process loses of each file on its way.

A whole huge page: file systems that can keep such a write in one piece in the page cache, where it
is mapped (by an engine that loads, by a re-hash) with one page fault instead of 32."""

IOV_MAX = 1024
"""Pieces that the kernel takes in one write."""

STRIDE = 256 << 10
"""Bytes that count as progress. Fewer do not: a trickle would feed the patience for ever."""

STRIKES = 3
SUSPECTS = {
    CorruptError: "suspect a proxy on the way, the network card or the memory of this box "
    "(memtest), or a mirror that holds other bytes",
    PortalError: "sign in to the network, or let the box through to the storage of the Hub",
}
MODE = 0o444
"""Of a proven file: nobody edits weights in place, not even the engine that owns them."""


class Part:
    """A file while it arrives. What an earlier process left is hashed first, and counts.

    + path: where it is kept
    + file: what it should become
    """

    def __init__(self, path: Path, file: File) -> None:
        self.path = path
        self.file = file
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self.descriptor = os.open(path, flags, 0o600)
        self.hasher = hasher_for(file)
        self.size = 0
        found = os.fstat(self.descriptor).st_size
        if found > file.size:
            os.ftruncate(self.descriptor, 0)
        else:
            self.size = feed(self.hasher, self.descriptor, found)
        self.resumed = self._handed_over = self.size
        self._gathered: list[memoryview] = []
        self._waiting = 0

    def take(self, chunk: bytes) -> None:
        """Bytes that follow those that are there."""
        self.hasher.update(chunk)
        rest = memoryview(chunk)
        # Up to a multiple of a huge page, whatever the pieces are that come.
        while len(rest) >= (room := FLUSH - self.whole % FLUSH):
            self._gather(rest[:room])
            self.flush()
            rest = rest[room:]
        self._gather(rest)

    def _gather(self, piece: memoryview) -> None:
        if piece:
            self._gathered.append(piece)
            self._waiting += len(piece)

    def flush(self) -> None:
        """Write what was gathered. At explicit positions: bytes of another writer are the same."""
        while self._gathered:
            wrote = os.pwritev(self.descriptor, self._gathered[:IOV_MAX], self.size)
            self.size += wrote
            self._waiting -= wrote
            while self._gathered and wrote >= len(self._gathered[0]):
                wrote -= len(self._gathered.pop(0))
            if wrote:
                self._gathered[0] = self._gathered[0][wrote:]
        if self.size - self._handed_over >= PIECE:
            begin(self.descriptor, self._handed_over, self.size)
            self._handed_over = self.size

    def restart(self) -> None:
        """Forget everything: the bytes are not the listed ones."""
        os.ftruncate(self.descriptor, 0)
        self.hasher = hasher_for(self.file)
        self.size = self.resumed = self._waiting = self._handed_over = 0
        self._gathered.clear()

    @property
    def whole(self) -> int:
        """Bytes that are there, written or gathered."""
        return self.size + self._waiting

    def prove(self) -> None:
        """Have all bytes on the disk, and refuse them unless the digest matches."""
        self.flush()
        if self.hasher.hexdigest() != self.file.hex:
            raise CorruptError(
                f"{self.file.path}: the bytes that came are not those that the Hub lists"
            )
        os.fchmod(self.descriptor, MODE)
        os.fsync(self.descriptor)

    def close(self) -> None:
        """Keep what there is, for the next attempt or the next process."""
        with contextlib.suppress(OSError):
            self.flush()
        os.close(self.descriptor)


def download(
    job: Job,
    file: File,
    source: Source,
    progress: Progress,
    stop: threading.Event,
    keep: Callable[[], None],
    stable: bool,
) -> Record:
    """One file into the staging folder.

    + source: where its bytes come from
    + stop: set when the whole fetch ends
    + keep: raises where the lease is lost; called before the file is put in its place
    + stable: whether the file system's inode numbers last
    + returns: the record of the proven file
    """
    if job.take and job.source is not None and (job.source / file.path).is_file():
        # Hashed where it is to stay: no second copy of a model that was just sent here.
        (job.source / file.path).replace(job.part(file))
    part = Part(job.part(file), file)
    progress.had(part.size)
    last, mark = time.monotonic(), part.whole
    strikes = 0

    def once() -> None:
        nonlocal last, mark
        # A file that is longer than one answer may be comes in several.
        while part.whole < file.size:
            with source.read(file, part.whole) as body:
                if body.start != part.whole:
                    progress.had(-part.whole)
                    part.restart()
                for chunk in body.chunks:
                    if stop.is_set():
                        raise StoppedError(file.path)
                    part.take(chunk[: file.size - part.whole])
                    progress.came(len(chunk))
                    if abs(part.whole - mark) >= STRIDE:
                        last, mark = time.monotonic(), part.whole
                    if file.path in progress.trouble:
                        progress.recovered(file.path)
            if part.whole < body.end:
                raise AgainError(
                    f"{file.path}: {source.name} sent {part.whole} of {file.size} bytes and said "
                    "that this was all"
                )
        part.prove()

    def attempt() -> None:
        nonlocal strikes
        try:
            once()
        except (CorruptError, PortalError) as error:
            # A part that an earlier process left may have lost bytes in a power cut: that says
            # nothing of the network or of this machine's memory.
            strikes += 0 if part.resumed else 1
            if isinstance(error, CorruptError):
                progress.had(-part.whole)
                part.restart()
            if strikes >= STRIKES:
                raise OneFileError(f"{error}, {strikes} times; {SUSPECTS[type(error)]}") from None
            raise

    def stumble(error: BaseException, seconds: float) -> None:
        progress.stumbled(file.path, f"{sentence(error)}; again in {seconds:.0f} s")

    try:
        policy(source.url, job.limits.patience, lambda: last, stop, stumble)(attempt)
        keep()
        place = job.staging / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        part.path.replace(place)
    finally:
        part.close()
    progress.finished(file.path)
    return record_of(file, place, stable)
