"""The manifest: what each file was when its digest matched. Written last; without it, no snapshot.

A file that still has the same size, modification time and inode is taken to have the same bytes,
as git's index does. Whatever differs is hashed again; nothing is trusted by name.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operations.remote.weights.job import MANIFEST, File, Job

VERSION = 2

UNSTABLE_INODES = ("fuse", "cifs", "smb", "9p", "vfat", "exfat")
"""File systems that may give a file another inode number after a remount: there it says nothing."""


@dataclass(frozen=True)
class Record:
    """A file as it was when its digest matched.

    + modified_ns: nanoseconds since the epoch
    + inode: 0 where the file system's numbers do not last
    """

    path: str
    size: int
    digest: str
    modified_ns: int
    inode: int

    def still(self, path: Path) -> bool:
        """Whether the file at this path is as it was."""
        try:
            found = path.lstat()
        except OSError:
            return False
        return (found.st_size, found.st_mtime_ns) == (self.size, self.modified_ns) and (
            self.inode in {0, found.st_ino}
        )


def record_of(file: File, path: Path, stable: bool) -> Record:
    """The record of a file whose digest has just matched.

    + stable: whether the file system's inode numbers last
    """
    found = path.lstat()
    inode = found.st_ino if stable else 0
    return Record(file.path, file.size, file.digest, found.st_mtime_ns, inode)


def read_records(entries: Iterable[Mapping[str, Any]]) -> dict[str, Record]:
    """Records by path. Entries that are none are left out: their files will be hashed again."""
    found = {}
    for entry in entries:
        with contextlib.suppress(KeyError, TypeError, ValueError):
            found[entry["path"]] = Record(
                path=str(entry["path"]),
                size=int(entry["size"]),
                digest=str(entry["digest"]),
                modified_ns=int(entry["modified_ns"]),
                inode=int(entry["inode"]),
            )
    return found


def read_manifest(folder: Path) -> dict[str, Record] | None:
    """What a snapshot's manifest says of its files; None where there is no sound manifest."""
    try:
        return read_records(json.loads((folder / MANIFEST).read_text())["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_journal(path: Path) -> dict[str, Record]:
    """The records of an interrupted fetch. The last line may be half a line."""
    entries = []
    with contextlib.suppress(OSError):
        for line in path.read_text(errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                if isinstance(entry, dict):
                    entries.append(entry)
    return read_records(entries)


def write_manifest(
    folder: Path,
    job: Job,
    records: Mapping[str, Record],
    problem: str,
    fetch: Mapping[str, Any],
) -> None:
    """Write the manifest, whole or not at all.

    + folder: of the snapshot
    + records: by path: one for each file of the job
    + problem: what would keep an engine from loading these files; empty for nothing
    + fetch: how they came here: bytes, seconds
    """
    write_whole(
        folder / MANIFEST,
        json.dumps(
            {
                "version": VERSION,
                "repo": job.repo,
                "commit": job.commit,
                "source": str(job.source) if job.source else job.endpoint,
                "verified_at": int(time.time()),
                "problem": problem,
                "fetch": dict(fetch),
                "files": [vars(records[file.path]) for file in job.files],
            },
            separators=(",", ":"),  # read on every run
        )
        + "\n",
    )


def write_whole(path: Path, text: str) -> None:
    """Write a file by rename, and have it on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with draft.open("w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    draft.replace(path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Have a folder's entries on the disk, where the file system can do that."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def inodes_last(folder: Path) -> bool:
    """Whether the inode numbers of a folder's file system stay as they are."""
    device = folder.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return False
    kinds = [
        line.partition(" - ")[2].split(" ")[0] for line in lines if line.split(" ")[2] == wanted
    ]
    # An overlay or a btrfs subvolume shows files under a device number that no mount has.
    return not any(kind.startswith(UNSTABLE_INODES) for kind in kinds)
