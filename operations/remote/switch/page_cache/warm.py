"""Read the weights of the next service into the page cache while the old one still serves.

Runs on the box, standard library only, by hand too::

    python -m operations.remote.switch.page_cache.warm /shared/models/ORG/NAME/COMMIT

Plain reads: posix_fadvise(WILLNEED) takes one read-ahead window a call and silently drops the
rest (8 MiB of each 64 MiB here). It is a help and never a condition: whatever goes wrong is said
in one line, and the switch goes on without.
"""

import argparse
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from operations.remote.switch.page_cache.pagecache import (
    MARGIN,
    Room,
    cached,
    room,
    yield_to_others,
)

PIECE = 64 << 20
BLOCK = 1 << 20
"""Bytes of one read: a larger one takes more CPU time (its buffer leaves the CPU's cache)."""

THREADS = 4
"""One reader keeps one disk busy; a stripe of NVMe disks wants several."""

ENOUGH = 0.95
SMALL = 1 << 20
INDEX = "model.safetensors.index.json"
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")

_TICK = 0.1
_GIB = 1 << 30


def chosen(sizes: Mapping[str, int], index: str | None) -> tuple[str, ...]:
    """The files that an engine reads, in the order in which it reads them.

    + sizes: bytes by name, of the files in the snapshot's own folder (folders below it hold
      other formats of the same weights: `original/`, `metal/`)
    + index: text of the index, which names the shards where a snapshot has them in two forms

    >>> chosen({"model.safetensors": 9 << 30, "pytorch_model.bin": 9 << 30, "README.md": 900}, None)
    ('model.safetensors',)
    """
    try:
        named = set(json.loads(index or "")["weight_map"].values()) & set(sizes)
    except (ValueError, KeyError, TypeError, AttributeError):
        named = set()
    safe = {name for name in sizes if name.endswith(".safetensors")}
    weights = named or safe or {name for name in sizes if name.endswith(WEIGHTS)}
    others = {n for n in sizes if not n.endswith(WEIGHTS) and sizes[n] >= SMALL}
    return (*sorted(weights), *sorted(others))


@dataclass
class Reading:
    """The work of the readers, and how far it is.

    + pieces: (file, offset, length) still to be read
    + done: bytes read, counted under the lock
    + broken: why a file was left out
    + stop: set when they shall end
    """

    pieces: queue.SimpleQueue[tuple[Path, int, int]] = field(default_factory=queue.SimpleQueue)
    total: int = 0
    done: int = 0
    broken: dict[Path, str] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def work(self) -> None:
        """Read pieces until there are none. A file that cannot be read is left out."""
        yield_to_others()
        buffer = memoryview(bytearray(BLOCK))
        while not self.stop.is_set():
            try:
                path, offset, length = self.pieces.get_nowait()
            except queue.Empty:
                return
            if path in self.broken:
                continue
            try:
                self._read(path, offset, length, buffer)
            except OSError as error:
                self.broken[path] = error.strerror or str(error)

    def _read(self, path: Path, offset: int, length: int, buffer: memoryview) -> None:
        file, end = os.open(path, os.O_RDONLY), offset + length
        try:
            while offset < end and not self.stop.is_set():
                count = os.preadv(file, [buffer[: min(BLOCK, end - offset)]], offset)
                if count == 0:  # it became shorter meanwhile
                    return
                offset += count
                with self.lock:
                    self.done += count
        finally:
            os.close(file)


def warm(
    folder: Path,
    say: Callable[[str], None],
    *,
    margin: float = MARGIN,
    threads: int = THREADS,
    interval: float = 5.0,
    bound: Callable[[float], Room | None] = room,
) -> dict[str, float] | None:
    """Read a snapshot's weights into the page cache, if memory allows.

    + folder: the snapshot
    + say: prints one line
    + margin: part of the memory that must stay free
    + threads: how many read at once
    + interval: seconds between two lines of progress
    + bound: what may be in the page cache, for a margin

    Returns {"bytes", "seconds"} of what was read; None where nothing was, and says why. Raises
    nothing that the files or the memory can cause.
    """
    began = time.monotonic()
    try:
        work, size, have = _survey(folder)
    except OSError as error:
        say(f"warm: skipped: {folder}: {error.strerror or error}")
        return None
    if size == 0:
        say(f"warm: skipped: no weights in {folder}")
        return None
    if have >= ENOUGH * size:
        say(f"warm: skipped: {_gib(have)} of {_gib(size)} GiB are in the page cache already")
        return None
    allowed = bound(margin)
    if allowed is None or allowed.size < size:
        say(f"warm: skipped: {_too_large(size, allowed, margin)}")
        return None
    say(f"warm: reading {_gib(work.total)} of {_gib(size)} GiB into the page cache")
    readers = [threading.Thread(target=work.work, daemon=True) for _ in range(threads)]
    for reader in readers:
        reader.start()
    try:
        watch(work, readers, say, interval, lambda: _pressed(size, bound(margin), margin))
    finally:
        work.stop.set()
    seconds = time.monotonic() - began
    for path, why in sorted(work.broken.items()):
        say(f"warm: {path.name} was left out: {why}")
    if work.done == 0:
        return None
    rate = work.done / seconds / 1e9
    say(f"warm: {_gib(work.done)} GiB read in {seconds:.1f} s ({rate:.2f} GB/s)")
    return {"bytes": float(work.done), "seconds": round(seconds, 3)}


def _survey(folder: Path) -> tuple[Reading, int, int]:
    """The pieces to read, bytes of all weights, and bytes of them in the page cache."""
    sizes = {path.name: path.stat().st_size for path in folder.iterdir() if path.is_file()}
    index = folder / INDEX
    names = chosen(sizes, index.read_text(errors="replace") if index.is_file() else None)
    work, have = Reading(), 0
    for path in (folder / name for name in names):
        size = sizes[path.name]
        try:
            file = os.open(path, os.O_RDONLY)
        except OSError as error:
            work.broken[path] = error.strerror or str(error)
            continue
        try:
            for offset in range(0, size, PIECE):
                length = min(PIECE, size - offset)
                there = cached(file, offset, length)
                have += there
                if there < length:
                    work.pieces.put((path, offset, length))
                    work.total += length
        finally:
            os.close(file)
    return work, sum(sizes[name] for name in names), have


def watch(
    work: Reading,
    readers: list[threading.Thread],
    say: Callable[[str], None],
    interval: float,
    pressed: Callable[[], str | None],
) -> None:
    """Say how far it is, until the readers are done or memory gets short."""
    began = spoke = checked = time.monotonic()
    while any(reader.is_alive() for reader in readers):
        readers[0].join(_TICK) if readers[0].is_alive() else time.sleep(_TICK)
        now = time.monotonic()
        if now - checked >= 1:
            checked = now
            if why := pressed():
                say(f"warm: stopped: {why}")
                work.stop.set()
                return
        if now - spoke >= interval:
            spoke = now
            rate = work.done / (now - began)
            left = f", {(work.total - work.done) / rate:.0f} s left" if rate else ""
            say(
                f"warm: {_gib(work.done)} of {_gib(work.total)} GiB read, "
                f"{rate / 1e9:.2f} GB/s{left}"
            )


def _pressed(size: int, allowed: Room | None, margin: float) -> str | None:
    if allowed is not None and allowed.size >= size:
        return None
    return _too_large(size, allowed, margin)


def _too_large(size: int, allowed: Room | None, margin: float) -> str:
    if allowed is None:
        return "the machine does not tell how much memory is available"
    return (
        f"{_gib(size)} GiB of weights do not fit in {_gib(max(0, allowed.size))} GiB, what "
        f"{allowed.of} has available less {margin:.0%} of its memory"
    )


def _gib(size: float) -> str:
    return f"{size / _GIB:.1f}"


def main() -> int:
    """Parse the arguments and read."""
    parser = argparse.ArgumentParser(description="Read a snapshot's weights into the page cache.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--margin", type=float, default=MARGIN, help="part of memory left free")
    parser.add_argument("--threads", type=int, default=THREADS)
    arguments = parser.parse_args()

    def say(line: str) -> None:
        print(line, flush=True)

    result: Any = warm(arguments.folder, say, margin=arguments.margin, threads=arguments.threads)
    say(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
