"""Have written bytes on their way to the disk while others still arrive."""

from __future__ import annotations

import ctypes

START = 2
"""SYNC_FILE_RANGE_WRITE: begin to write what is dirty in a range; waits for nothing."""

PIECE = 8 << 20
"""Bytes that are handed over at once: the kernel would gather gigabytes, and the fsync that proves
a file would then wait for all of them."""

_sync_file_range = getattr(ctypes.CDLL(None, use_errno=True), "sync_file_range", None)


def begin(descriptor: int, start: int, end: int) -> None:
    """Begin to write a range of a file. A help and no promise: fsync alone says that it is there.

    + start, end: bytes
    """
    if _sync_file_range is not None and end > start:
        at, length = ctypes.c_int64(start), ctypes.c_int64(end - start)
        _sync_file_range(descriptor, at, length, START)
