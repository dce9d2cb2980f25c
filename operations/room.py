"""Room for a snapshot, before its first byte: what has to be written, and what could be freed."""

from collections.abc import Iterable

from facts.actual import Actual
from facts.reading.neighbours import Neighbour, Neighbours
from facts.reading.snapshots import SnapshotState
from inventory.base import Unknown
from inventory.common.paths import FETCHING, INCOMING, PARTIAL_FILES, commit_of
from inventory.common.units import GIB, gibibytes
from inventory.errors import PreconditionError
from inventory.snapshot import LocalSnapshot, Snapshot, SnapshotFile, short

_MARGIN = GIB
"""Bytes that stay free: a file system that is full to the last block fails other writers too."""


def missing_bytes(want: Snapshot, have: SnapshotState, beside: Neighbours | None = None) -> int:
    """Bytes that a fetch has to write at most.

    + beside: an interrupted fetch, other snapshots, caches: what they hold is not written again
    """
    there = {file.path: file.size for file in have.files}
    return sum(
        _needed(file, want, beside or Neighbours())
        for file in want.files
        if there.get(file.path) != file.size
    )


def _needed(file: SnapshotFile, want: Snapshot, beside: Neighbours) -> int:
    digest = file.digest.partition(":")[2]
    if file.digest in beside.proven or beside.cached.get(digest) == file.size:
        return 0
    staged = beside.staged.get(f"{want.commit}/{file.path}")
    if staged is not None and staged[0] == file.size:
        return 0
    # A file on its way may have all its blocks already: they were reserved before it began.
    part = f"{want.commit}/{PARTIAL_FILES}/{digest}-"
    held = [blocks for path, (_, blocks) in beside.staged.items() if path.startswith(part)]
    return max(0, file.size - max(held, default=0))


def require_room(want: LocalSnapshot, actual: Actual, freed: int = 0) -> None:
    """Refuse a fetch that the file system cannot hold.

    Quotas are not counted here: the fetcher reserves every block before the first byte, and the
    file system refuses what a quota forbids.

    + want: the snapshot: the nearest existing parent of its folder says which file system counts
    + freed: bytes that the same run gives back before it fetches
    + raises: PreconditionError with the bytes that are missing, and what could be deleted
    """
    need = missing_bytes(want.listing, actual.snapshot, actual.neighbours)
    disk = actual.disk(want.folder)
    if need == 0 or isinstance(disk, Unknown):
        return
    what = f"{gibibytes(need)} for {want.label} in {want.folder}"
    if not disk.writable:
        raise PreconditionError(
            wanted=f"to write {what}",
            found=f"{disk.parent} cannot be written, not even by root",
            why="the file system is mounted read-only, or the server maps root to nobody",
            next_step=f"mount {disk.mounted_on} read-write, or set model.under to another folder",
        )
    short = need + _MARGIN - freed - (0 if isinstance(disk.available, Unknown) else disk.available)
    if not isinstance(disk.available, Unknown) and short > 0:
        raise PreconditionError(
            wanted=what,
            found=f"{gibibytes(disk.available)} free on {disk.mounted_on} ({disk.file_system})",
            why=f"the download would stop {gibibytes(short)} before its "
            "end (1 GiB stays free for others); nothing was touched",
            next_step=f"{freeing(actual.neighbours.snapshots, want.commit)}free space on "
            f"{disk.mounted_on}, or set model.under to a folder on a larger file system",
        )


def freeing(beside: Iterable[Neighbour], commit: str) -> str:
    """The beginning of a sentence: which other snapshots could be deleted. It may be empty.

    + commit: the wanted one: its own unfinished fetch is left out
    """
    own = (f"{FETCHING}{commit}", f"{INCOMING}{commit}")
    others = [one for one in beside if one.name not in own]
    free = [one for one in others if not held_by(one)]
    busy = [one for one in others if held_by(one)]
    words = ""
    if free:
        names = ", ".join(f"{one.name} ({gibibytes(one.frees)})" for one in free)
        commits = ",".join(short(commit_of(one.name)) for one in free)
        words += f"run again with --data prune={commits} to delete {names}, which nothing uses; or "
    if busy:
        words += f"retire {', '.join(f'{short(one.name)} ({held_by(one)})' for one in busy)}; or "
    return words


def held_by(one: Neighbour) -> str:
    """Who uses a snapshot, in words; empty if nobody does."""
    parts = [*(f"unit {unit}" for unit in one.units), *(f"box {box}" for box in one.boxes)]
    parts += [f"process {pid}" for pid in one.processes]
    return ", ".join(parts)
