"""Hash files: one while its bytes pass by, or many again, as fast as the cores can.

Where many are hashed, nothing is copied: bytes are hashed where the page cache has them. A file is
hashed in slices, each by the next free thread, the file with most left first: sixteen equal files
keep ten cores as busy as eight, and no thread waits for a last file.
"""

import heapq
import mmap
import os
import resource
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from inventory.common.fetch import Hasher, ListedFile

CHUNK = 1 << 20
"""Bytes that are read at once."""

WINDOW = 64 << 20
"""Bytes that are mapped at once."""

SLICES = 32
"""Into how many slices a thread's share of the work is cut. Threads end at most one slice apart."""


def feed(hasher: Hasher, descriptor: int, size: int, start: int = 0) -> int:
    """Hash bytes of an open file. Returns how many there were."""
    buffer = memoryview(bytearray(CHUNK))
    done = 0
    while done < size:
        got = os.preadv(descriptor, [buffer[: min(CHUNK, size - done)]], start + done)
        if got == 0:
            break
        hasher.update(buffer[:got])
        done += got
    return done


def is_good(path: Path, file: ListedFile) -> bool:
    """Whether a file on disk is the listed one, byte for byte. A symbolic link is not."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if os.fstat(descriptor).st_size != file.size:
            return False
        hasher = file.hasher()
        feed(hasher, descriptor, file.size)
        return hasher.hexdigest() == file.hex
    except OSError:
        return False
    finally:
        os.close(descriptor)


def are_good(folder: Path, files: Sequence[ListedFile], workers: int) -> list[bool]:
    """Whether each file is the listed one, byte for byte. A symbolic link is not.

    A page that cannot be read (a bad disk, a file that was cut short meanwhile) ends a process that
    maps it, with SIGBUS: so another process maps, and if it ends, this one reads.
    """
    fork = get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)
    apart = fork.Process(target=_tell, args=(theirs, folder, files, workers))
    apart.start()
    theirs.close()
    try:
        verdicts: list[bool] = ours.recv()
    except EOFError:
        print("verify: some page cannot be mapped: reading each file instead", flush=True)
        with ThreadPoolExecutor(workers) as pool:
            verdicts = list(pool.map(lambda file: is_good(folder / file.path, file), files))
    apart.join()
    return verdicts


def _tell(to: Connection, folder: Path, files: Sequence[ListedFile], workers: int) -> None:
    to.send(mapped(folder, files, workers))


def mapped(folder: Path, files: Sequence[ListedFile], workers: int) -> list[bool]:
    """As :func:`are_good`, in this process: for one that may end."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    piece = max(WINDOW, sum(file.size for file in files) // (workers * SLICES))
    started: dict[int, _Started] = {}
    verdicts = [False] * len(files)
    waiting = [(-file.size, number) for number, file in enumerate(files)]
    heapq.heapify(waiting)
    turn = threading.Lock()

    def work() -> None:
        while True:
            with turn:
                # A file that is not waiting has its thread already.
                if not waiting:
                    return
                _, number = heapq.heappop(waiting)
            try:
                file = started.get(number) or _Started(folder, files[number])
                left = file.advance(piece)
            except OSError:
                continue
            if left:
                with turn:
                    started[number] = file
                    heapq.heappush(waiting, (-left, number))
            else:
                verdicts[number] = file.is_good

    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(work) for _ in range(workers)]:
            done.result()
    return verdicts


class _Started:
    """A file that is hashed up to some byte."""

    def __init__(self, folder: Path, file: ListedFile) -> None:
        self.file = file
        self.hasher = file.hasher()
        self.offset = 0
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        self.stream = os.fdopen(os.open(folder / file.path, flags), "rb", buffering=0)
        size = os.fstat(self.stream.fileno()).st_size
        if size != file.size:
            self.stream.close()
            raise OSError(f"{file.path} has {size} bytes")

    def advance(self, count: int) -> int:
        """Hash some more bytes, and say how many are left."""
        end = min(self.file.size, self.offset + count)
        while self.offset < end:
            length = min(WINDOW, end - self.offset)
            self._hash(length, following=min(WINDOW, end - self.offset - length))
            self.offset += length
        if self.offset == self.file.size:
            self.stream.close()
        return self.file.size - self.offset

    def _hash(self, length: int, following: int) -> None:
        """Hash a window, while the disk already brings the one that follows."""
        descriptor = self.stream.fileno()
        if following:
            after = self.offset + length
            os.posix_fadvise(descriptor, after, following, os.POSIX_FADV_WILLNEED)
        try:
            window = mmap.mmap(
                descriptor, length, mmap.MAP_SHARED, mmap.PROT_READ, offset=self.offset
            )
        except (OSError, ValueError):  # a file system without maps; a file that was cut short
            if feed(self.hasher, descriptor, length, self.offset) != length:
                raise OSError(f"{self.file.path} became shorter") from None
            return
        # Not populated beforehand: the kernel would touch every page, at a tenth of the time.
        with window:
            self.hasher.update(window)

    @property
    def is_good(self) -> bool:
        """Whether all its bytes are the listed ones."""
        return self.hasher.hexdigest() == self.file.hex
