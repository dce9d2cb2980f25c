"""The page cache: what is in it, what still goes in, and reading that yields to everybody else."""

import ctypes
import mmap
import os
import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

MARGIN = 0.1
"""Part of the memory that stays free of weights: for the engine's own host memory, which the next
start takes while the weights are still needed."""

CGROUPS = Path("/sys/fs/cgroup")

_IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
_IDLE_CLASS = 3 << 13  # ioprio_set(2): IOPRIO_CLASS_IDLE
_THIS_THREAD = 1, 0  # IOPRIO_WHO_PROCESS, the caller

_libc = ctypes.CDLL(None, use_errno=True)


def cached(file: int, offset: int, length: int) -> int:
    """Bytes of a piece of a file that are in memory; 0 where the kernel does not tell.

    + file: descriptor, open for reading
    + offset: a multiple of the page size

    By mincore(2), which every kernel has; `fincore` asks the same and is a package of its own.
    """
    if length <= 0:
        return 0
    page = mmap.PAGESIZE
    pages = (length + page - 1) // page
    told = (ctypes.c_char * pages)()
    try:
        # Private and writable, and never written to: ctypes gives no address of other maps.
        with mmap.mmap(
            file, length, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE, offset=offset
        ) as mapped:
            start = ctypes.c_char.from_buffer(mapped)
            address = ctypes.addressof(start)
            answer = _libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(length), told)
            del start  # the map cannot be closed while anything points into it
    except (OSError, ValueError):
        return 0
    count = told.raw.count(b"\1") if answer == 0 else 0
    return min(length, count * page)


def yield_to_others() -> None:
    """Lowest priority for the calling thread: CPU, and disk where its scheduler has classes."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, 19)
    except OSError:
        return
    number = _IOPRIO_SET.get(platform.machine())
    if number is not None:
        _libc.syscall(number, *_THIS_THREAD, _IDLE_CLASS)


@dataclass(frozen=True)
class Room:
    """What may be in the page cache without pressing anybody.

    + size: bytes, those that are cached already included; may be negative
    + of: what bounds it, for people
    """

    size: int
    of: str


def machine_room(meminfo: str, margin: float = MARGIN) -> Room | None:
    """The machine's bound, from /proc/meminfo; None where it does not tell.

    MemAvailable counts the page cache as free: reading files does not lower it.
    """
    found = dict(re.findall(r"^(MemTotal|MemAvailable):\s+([0-9]+) kB$", meminfo, re.MULTILINE))
    if len(found) < 2:  # noqa: PLR2004
        return None
    total, available = int(found["MemTotal"]) << 10, int(found["MemAvailable"]) << 10
    return Room(available - int(margin * total), "the machine")


def group_room(limit: str, current: str, stat: str, margin: float = MARGIN) -> Room | None:
    """The bound of one control group, from its memory.max, memory.current and memory.stat."""
    limit, current = limit.strip(), current.strip()
    if not (re.fullmatch(r"[0-9]+", limit) and re.fullmatch(r"[0-9]+", current)):
        return None  # "max" means unlimited
    files = sum(map(int, re.findall(r"^(?:in)?active_file ([0-9]+)$", stat, re.MULTILINE)))
    bound = int(limit)
    return Room(bound - int(current) + files - int(margin * bound), "this control group")


def room(margin: float = MARGIN) -> Room | None:
    """The smallest bound of the machine and of the control groups that we are in."""
    found = [machine_room(_text(Path("/proc/meminfo")), margin)]
    found += [
        group_room(
            _text(group / "memory.max"),
            _text(group / "memory.current"),
            _text(group / "memory.stat"),
            margin,
        )
        for group in _groups(_text(Path("/proc/self/cgroup")))
    ]
    known = [one for one in found if one is not None]
    return min(known, key=lambda one: one.size, default=None)


def _groups(cgroup: str) -> Iterable[Path]:
    """The folders of our control group and of all above it."""
    found = re.search(r"^0::/(.*)$", cgroup, re.MULTILINE)
    path = CGROUPS / found[1] if found and ".." not in found[1] else CGROUPS
    return [path, *(up for up in path.parents if up.is_relative_to(CGROUPS))]


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
