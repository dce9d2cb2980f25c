"""A snapshot of a model at one commit: complete against the Hub's listing, or not there."""

from __future__ import annotations

import json
import shlex

from pyinfra import host
from pyinfra.api import operation

from facts.actual import Actual
from facts.box import actual_state
from facts.query import Query
from facts.reading.snapshots import Manifest, SnapshotState
from inventory.base import Unknown
from inventory.errors import ConflictError, PreconditionError
from inventory.service import Service
from inventory.snapshot import Snapshot
from inventory.units import gibibytes
from operations.difference import Difference, differing
from operations.steps import Commands, Step, guarded, settled, show
from operations.tools import run_tool

NAMED = 3
"""Files that a difference names before it only counts them."""

MARGIN = 1 << 30
"""Bytes that stay free: a file system that is full to the last block fails other writers too."""


def snapshot_differences(
    want: Snapshot, have: SnapshotState, folder: str
) -> tuple[Difference, ...]:
    """How a snapshot's folder differs from the listing.

    A file counts as right when it still has the size and the modification time at which its digest
    matched; anything else has to be proven again.

    + want: the listing
    + have: the folder
    + folder: its path
    + raises: ConflictError where the folder is somebody else's
    """
    resource = f"snapshot {want.repo}@{want.commit[:12]}"
    whole = f"{len(want.files)} files, {gibibytes(want.size)}"
    if have.exists is False:
        return differing(resource, [("files", whole, "absent")])
    manifest = _own_manifest(want, have, folder)
    there = {file.path: (file.size, round(file.modified, 6)) for file in have.files}
    wrong = [
        file.path
        for file in want.files
        if there.get(file.path) is None
        or there[file.path][0] != file.size
        or there[file.path] != manifest.files.get(file.path)
    ]
    if not wrong:
        return ()
    named = ", ".join(wrong[:NAMED]) + (f" and {len(wrong) - NAMED} more" if wrong[NAMED:] else "")
    return differing(resource, [("files", whole, f"{len(wrong)} missing or changed: {named}")])


def _own_manifest(want: Snapshot, have: SnapshotState, folder: str) -> Manifest:
    manifest = have.manifest
    if isinstance(have.exists, Unknown):
        found = f"a folder that cannot be read: {have.exists.unknown}"
    elif manifest is None:
        found = f"{len(have.files)} files without boxwright's manifest"
    elif isinstance(manifest, Unknown):
        found = manifest.unknown
    elif (manifest.repo, manifest.commit) != (want.repo, want.commit):
        found = f"the snapshot of {manifest.repo} at {manifest.commit[:12]}"
    else:
        return manifest
    raise ConflictError(
        wanted=f"the snapshot of {want.repo} at {want.commit[:12]} in {folder}",
        found=found,
        why="files of two commits in one folder are a model that nobody released, and a folder "
        "that boxwright did not make may be served by somebody",
        next_step=f"move it away (mv {folder} {folder}.old) and run again, or set model.under to "
        "another folder",
    )


def missing_bytes(want: Snapshot, have: SnapshotState) -> int:
    """Bytes that a fetch has to write at most."""
    there = {file.path: file.size for file in have.files}
    return sum(file.size for file in want.files if there.get(file.path) != file.size)


def require_room(want: Snapshot, actual: Actual, folder: str) -> None:
    """Refuse a fetch that the file system cannot hold.

    + want: the listing
    + actual: the box
    + folder: where the snapshot goes: its nearest existing parent says which file system that is
    + raises: PreconditionError with the bytes that are missing
    """
    need = missing_bytes(want, actual.snapshot)
    disk = actual.disk(folder)
    if need == 0 or isinstance(disk, Unknown):
        return
    what = f"{gibibytes(need)} for {want.repo}@{want.commit[:12]} in {folder}"
    if not disk.writable:
        raise PreconditionError(
            wanted=f"to write {what}",
            found=f"{disk.parent} cannot be written, not even by root",
            why="the file system is mounted read-only, or the server maps root to nobody",
            next_step=f"mount {disk.mounted_on} read-write, or set model.under to another folder",
        )
    if not isinstance(disk.available, Unknown) and disk.available < need + MARGIN:
        raise PreconditionError(
            wanted=what,
            found=f"{gibibytes(disk.available)} free on {disk.mounted_on} ({disk.file_system})",
            why=f"the download would stop {gibibytes(need + MARGIN - disk.available)} before its "
            "end (1 GiB stays free for others); nothing was touched",
            next_step=f"free space on {disk.mounted_on}, or set model.under to a folder on a "
            "larger file system",
        )


@operation()
@guarded
def snapshot(service: Service, want: Snapshot, query: Query, token: str | None = None) -> Commands:
    """
    Fetch a model's snapshot, on the box, by the real Hub client.

    + service: whose model it is
    + want: the listing of the commit
    + query: what this run reads of the box
    + token: for a gated repository; travels on standard input only
    """
    folder = service.model.folder(want.commit)
    actual = actual_state(host, query)
    differences = snapshot_differences(want, actual.snapshot, folder)
    show(host, differences)
    if not differences:
        host.noop(f"snapshot {want.repo}@{want.commit[:12]} is complete")
        return
    require_room(want, actual, folder)
    job = {
        "endpoint": service.model.endpoint,
        "repo": want.repo,
        "commit": want.commit,
        "folder": folder,
        "files": [file.to_json() for file in want.files],
        "token": token,
    }
    yield Step(
        f"exec runuser -u {shlex.quote(service.user)} -- {run_tool('fetch.py')}",
        stdin=json.dumps(job),
        stream=True,
        wanted=f"the complete snapshot of {want.repo} at {want.commit[:12]} in {folder}",
        why="an incomplete model crashes the engine or, worse, serves garbage; what was fetched "
        "and hashed so far is kept, and the old service still serves",
        next_step="correct what the last line says and run again: only what is missing is fetched. "
        "A gated repository wants HF_TOKEN in the environment of this command",
    )
    settled(
        snapshot_differences(want, actual_state(host, query).snapshot, folder),
        f"ls -l {folder} on the box: another program may be writing there",
    )
