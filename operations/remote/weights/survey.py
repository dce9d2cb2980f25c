"""What of a snapshot is there and proven, what has to be hashed again, and what is missing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from operations.remote.weights.digest import is_good
from operations.remote.weights.errors import FetchError
from operations.remote.weights.job import File, Job
from operations.remote.weights.manifest import (
    Record,
    inodes_last,
    read_journal,
    read_manifest,
    record_of,
)


@dataclass
class Survey:
    """The state of a snapshot before anything is done about it.

    + placed: files that are right where they belong, in the published folder
    + staged: files that are proven in the staging folder
    + missing: all others
    + stable: whether the file system's inode numbers last
    """

    placed: dict[str, Record] = field(default_factory=dict)
    staged: dict[str, Record] = field(default_factory=dict)
    missing: list[File] = field(default_factory=list)
    stable: bool = True


def survey(job: Job) -> Survey:
    """Look at what is there. Files that changed since they were proven are hashed again.

    + raises: FetchError where the folder is not boxwright's
    """
    before = read_manifest(job.folder)
    if before is None and job.folder.is_dir() and any(job.folder.iterdir()):
        raise FetchError(
            f"{job.folder} is there without boxwright's manifest: move it away, or set "
            "model.source to it after moving, to take the files over"
        )
    interrupted = {**(read_manifest(job.staging) or {}), **read_journal(job.journal)}
    found = Survey(stable=inodes_last(job.home))
    suspects: list[tuple[File, Path, dict[str, Record]]] = []
    for file in job.files:
        placed, staged = job.folder / file.path, job.staging / file.path
        if _trusted(before or {}, file, placed):
            found.placed[file.path] = (before or {})[file.path]
        elif _trusted(interrupted, file, staged):
            found.staged[file.path] = interrupted[file.path]
        elif _plausible(file, placed):
            suspects.append((file, placed, found.placed))
        elif _plausible(file, staged):
            suspects.append((file, staged, found.staged))
        else:
            found.missing.append(file)
    if suspects:
        print(
            f"fetch: {len(suspects)} files changed since they were proven: hashing them", flush=True
        )
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            verdicts = list(pool.map(lambda one: is_good(one[1], one[0]), suspects))
        for (file, path, good), right in zip(suspects, verdicts, strict=True):
            if right:
                good[file.path] = record_of(file, path, found.stable)
            else:
                found.missing.append(file)
    return found


def is_complete(job: Job) -> bool:
    """Whether the published snapshot is whole and unchanged."""
    records = read_manifest(job.folder)
    return records is not None and all(
        _trusted(records, file, job.folder / file.path) for file in job.files
    )


def _trusted(records: Mapping[str, Record], file: File, path: Path) -> bool:
    record = records.get(file.path)
    return (
        record is not None
        and (record.size, record.digest) == (file.size, file.digest)
        and record.still(path)
    )


def _plausible(file: File, path: Path) -> bool:
    """Whether it is worth hashing: a regular file of the right size."""
    return path.is_file() and not path.is_symlink() and path.stat().st_size == file.size
