"""From the staging folder to the snapshot: one rename, and the manifest before it as the last file.

In a snapshot that is there already, single files are replaced by rename: a process that reads the
old file keeps it. On a network file system, a process that has it mapped could still lose it: a
file in use is never replaced.
"""

import contextlib
import os
import shutil
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from inventory.common.fetch import FetchAccount, FetchRequest
from inventory.common.files import sync_folder, write_whole
from inventory.common.manifest import Manifest, ProvenFile
from inventory.common.paths import MANIFEST, OWN, USERS
from operations.remote.weights.errors import FetchError
from operations.remote.weights.shards import problem_of
from operations.remote.weights.survey import Survey


def publish(
    request: FetchRequest, found: Survey, keep: Callable[[], None], account: FetchAccount
) -> str:
    """Make the proven files the snapshot.

    + keep: raises where the lease is lost
    + returns: what would keep an engine from loading them; empty for nothing
    """
    proven = {**found.placed, **found.staged}
    paths = [file.path for file in request.files]
    fresh = not request.folder.is_dir() or not any(request.folder.iterdir())
    root = request.staging if fresh else request.folder
    if fresh:
        _remove_unlisted(request.staging, set(paths))
    else:
        _replace(request, found.staged)
    problem = problem_of(root, paths)
    keep()
    manifest = Manifest(
        repo=request.repo,
        commit=request.commit,
        problem=problem,
        files=tuple(proven[path] for path in paths),
        source=str(request.source) if request.source else request.endpoint,
        verified_at=int(time.time()),
        fetch=account,
    )
    write_whole(root / MANIFEST, manifest.text)
    register(root)
    if fresh:
        shutil.rmtree(request.parts, ignore_errors=True)
        request.proven.unlink(missing_ok=True)
        keep()
        request.staging.rename(request.folder)
    else:
        shutil.rmtree(request.staging, ignore_errors=True)
    sync_folder(request.home)
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
        if inner.split("/")[0] == OWN or inner in listed:
            continue
        if path.is_dir() and not path.is_symlink():
            with contextlib.suppress(OSError):
                path.rmdir()
        else:
            path.unlink()


def _replace(request: FetchRequest, staged: Mapping[str, ProvenFile]) -> None:
    busy = holders([request.folder / path for path in staged])
    for held, pids in busy.items():
        raise FetchError(
            f"{held} is damaged or changed and in use by process {', '.join(map(str, pids))}: its "
            "good copy is fetched and waits; stop the service that reads it and run again"
        )
    for path in staged:
        place = request.folder / path
        if place.is_symlink() or (place.exists() and not place.is_file()):
            raise FetchError(
                f"{place} is not a regular file: somebody else put it there; remove it"
            )
        place.parent.mkdir(parents=True, exist_ok=True)
        (request.staging / path).replace(place)
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
