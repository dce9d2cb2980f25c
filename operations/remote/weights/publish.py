"""From the staging folder to the snapshot: one rename, and the manifest before it as the last file.

Where a snapshot is there already, single files are replaced by rename: a process that reads the old
file keeps it. One that has it mapped could still lose it on a network file system, so that a file
in use is not replaced at all.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from operations.remote.weights.errors import FetchError
from operations.remote.weights.job import STATE, Job
from operations.remote.weights.manifest import Record, sync_folder, write_manifest
from operations.remote.weights.shards import problem_of
from operations.remote.weights.survey import Survey

USERS = f"{STATE}/users"
"""Folder inside a snapshot: one empty file for each box that serves it. Pruning asks it."""


def publish(job: Job, found: Survey, keep: Callable[[], None], fetch: Mapping[str, Any]) -> str:
    """Make the proven files the snapshot.

    + found: everything proven, nothing missing
    + keep: raises where the lease is lost
    + fetch: for the manifest: how the files came here
    + returns: what would keep an engine from loading them; empty for nothing
    """
    records = {**found.placed, **found.staged}
    paths = [file.path for file in job.files]
    fresh = not job.folder.is_dir() or not any(job.folder.iterdir())
    root = job.staging if fresh else job.folder
    if fresh:
        _remove_unlisted(job.staging, set(paths))
    else:
        _replace(job, found.staged)
    problem = problem_of(root, paths)
    keep()
    write_manifest(root, job, records, problem, fetch)
    register(root)
    if fresh:
        shutil.rmtree(job.parts, ignore_errors=True)
        job.journal.unlink(missing_ok=True)
        keep()
        job.staging.rename(job.folder)
    else:
        shutil.rmtree(job.staging, ignore_errors=True)
    sync_folder(job.home)
    return problem


def register(root: Path) -> None:
    """Write down that this box serves the snapshot: another box must not delete it."""
    marker = root / USERS / socket.gethostname()
    if not marker.exists():
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()


def _remove_unlisted(staging: Path, listed: set[str]) -> None:
    """An interrupted fetch of another listing may have left files that are not wanted now."""
    for path in sorted(staging.rglob("*"), reverse=True):
        inner = path.relative_to(staging).as_posix()
        if inner.split("/")[0] == STATE or inner in listed:
            continue
        if path.is_dir() and not path.is_symlink():
            with contextlib.suppress(OSError):
                path.rmdir()
        else:
            path.unlink()


def _replace(job: Job, staged: Mapping[str, Record]) -> None:
    busy = holders([job.folder / path for path in staged])
    for held, pids in busy.items():
        raise FetchError(
            f"{held} is damaged or changed and in use by process {', '.join(map(str, pids))}: its "
            "good copy is fetched and waits; stop the service that reads it and run again"
        )
    for path in staged:
        place = job.folder / path
        if place.is_symlink() or (place.exists() and not place.is_file()):
            raise FetchError(f"{place} is no regular file: somebody else put it there; remove it")
        place.parent.mkdir(parents=True, exist_ok=True)
        (job.staging / path).replace(place)
        sync_folder(place.parent)


def holders(paths: Iterable[Path]) -> dict[Path, list[int]]:
    """Which processes of this box have files open or mapped. Those of other users are not seen."""
    wanted = {str(path): path for path in paths if path.exists()}
    busy: dict[Path, list[int]] = {}
    for process in Path("/proc").iterdir() if wanted else ():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        held = set()
        with contextlib.suppress(OSError):
            for line in (process / "maps").read_text(errors="replace").splitlines():
                held.update(line.split(None, 5)[5:])
        with contextlib.suppress(OSError):
            for descriptor in (process / "fd").iterdir():
                with contextlib.suppress(OSError):
                    held.add(str(descriptor.readlink()))
        for name in held & wanted.keys():
            busy.setdefault(wanted[name], []).append(int(process.name))
    return busy
