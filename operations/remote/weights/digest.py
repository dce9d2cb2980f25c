"""Digests as the Hub writes them, computed while bytes pass by."""

from __future__ import annotations

import hashlib
import mmap
import os
from pathlib import Path
from typing import Protocol

from operations.remote.weights.job import File

CHUNK = 1 << 20


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


def feed(hasher: Hasher, descriptor: int, size: int, start: int = 0) -> int:
    """Hash bytes of an open file.

    + size: how many
    + start: the first
    + returns: how many there were
    """
    buffer = memoryview(bytearray(CHUNK))
    done = 0
    while done < size:
        got = os.preadv(descriptor, [buffer[: min(CHUNK, size - done)]], start + done)
        if got == 0:
            break
        hasher.update(buffer[:got])
        done += got
    return done


def is_good(path: Path, file: File) -> bool:
    """Whether a file on disk is the listed one, byte for byte. A symbolic link is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if os.fstat(descriptor).st_size != file.size:
            return False
        hasher = hasher_for(file)
        feed(hasher, descriptor, file.size)
        return hasher.hexdigest() == file.hex
    except OSError:
        return False
    finally:
        os.close(descriptor)
