"""A file while it arrives: hashed, written in large pieces, and on its way to the disk."""

import contextlib
import ctypes
import os
from pathlib import Path

from inventory.common.fetch import ListedFile
from operations.remote.weights.errors import CorruptError
from operations.remote.weights.hashing import feed

FLUSH = 2 << 20
"""Bytes of one write, and what a killed process loses of each file on its way.

A whole huge page: file systems that can keep such a write in one piece in the page cache, where it
is mapped (by an engine that loads, by a re-hash) with one page fault instead of 32."""

IOV_MAX = 1024
"""Pieces that the kernel takes in one write."""

_WRITE = 2
"""SYNC_FILE_RANGE_WRITE: begin to write what is dirty in a range; waits for nothing."""

HANDED_OVER = 8 << 20
"""Bytes that are handed over at once: the kernel would gather gigabytes, and the fsync that proves
a file would then wait for all of them."""

MODE = 0o444
"""Of a proven file: nobody edits weights in place, not even the engine that owns them."""


class PartialFile:
    """A file while it arrives. What an earlier process left is hashed first, and counts."""

    def __init__(self, path: Path, file: ListedFile) -> None:
        self.path = path
        self.file = file
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self.descriptor = os.open(path, flags, 0o600)
        self.hasher = file.hasher()
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
        if self.size - self._handed_over >= HANDED_OVER:
            _begin_to_write(self.descriptor, self._handed_over, self.size)
            self._handed_over = self.size

    def restart(self) -> None:
        """Forget everything: the bytes are not the listed ones."""
        os.ftruncate(self.descriptor, 0)
        self.hasher = self.file.hasher()
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


_sync_file_range = getattr(ctypes.CDLL(None, use_errno=True), "sync_file_range", None)


def _begin_to_write(descriptor: int, start: int, end: int) -> None:
    """Begin to write a range of a file. Only fsync promises that it is on the disk."""
    if _sync_file_range is not None and end > start:
        at, length = ctypes.c_int64(start), ctypes.c_int64(end - start)
        _sync_file_range(descriptor, at, length, _WRITE)
