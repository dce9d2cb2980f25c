"""Digests as the Hub writes them, computed while bytes pass by."""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from .job import File

CHUNK = 1 << 20
WINDOW = 16 << 20


class Hasher(Protocol):
    """The part of hashlib's objects that is used here."""

    def update(self, data: bytes | memoryview | mmap.mmap, /) -> None:
        """Take bytes in."""

    def hexdigest(self) -> str:
        """The digest of all that was taken in."""


def hasher_for(file: File) -> Hasher:
    """A fresh hasher: sha256 of the content, or git's sha1 over a header and the content."""
    if file.kind == "sha256":
        return hashlib.sha256()
    return hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)


def feed(hasher: Hasher, descriptor: int, size: int) -> int:
    """Hash the first bytes of an open file.

    + size: how many
    + returns: how many there were
    """
    buffer = memoryview(bytearray(CHUNK))
    offset = 0
    while offset < size:
        got = os.preadv(descriptor, [buffer[: min(CHUNK, size - offset)]], offset)
        if got == 0:
            break
        hasher.update(buffer[:got])
        offset += got
    return offset


def feed_mapped(hasher: Hasher, descriptor: int, size: int) -> int:
    """As :func:`feed`, without copying: a tenth faster where the pages are in memory.

    A disk that cannot read a page ends the process with SIGBUS: only for a process that may end.
    """
    for offset in range(0, size, WINDOW):
        length = min(WINDOW, size - offset)
        with mmap.mmap(
            descriptor, length, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ, offset=offset
        ) as window:
            window.madvise(mmap.MADV_SEQUENTIAL)
            hasher.update(window)
    return size


def is_good(path: Path, file: File, by: Callable[[Hasher, int, int], int] = feed) -> bool:
    """Whether a file on disk is the listed one, byte for byte. A symbolic link is none.

    + by: how to hash it, :func:`feed` or :func:`feed_mapped`
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if os.fstat(descriptor).st_size != file.size:
            return False
        hasher = hasher_for(file)
        by(hasher, descriptor, file.size)
        return hasher.hexdigest() == file.hex
    except OSError:
        return False
    finally:
        os.close(descriptor)
