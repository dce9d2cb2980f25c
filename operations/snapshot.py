"""A snapshot of a model at one commit: complete against the Hub's listing, or not there."""

from __future__ import annotations

import json
import os
import shlex
from typing import Any

from pyinfra import host
from pyinfra.api import operation

from facts.box import actual_state
from facts.query import Query
from facts.reading.snapshots import Manifest, SnapshotState
from inventory.base import Unknown
from inventory.common.units import gibibytes
from inventory.errors import ConflictError, PreconditionError
from inventory.service import Service
from inventory.snapshot import Snapshot
from operations.difference import Difference, differing
from operations.engine import engine_differences
from operations.prune import prunable
from operations.report import adds
from operations.room import require_room
from operations.steps import Commands, Step, guarded, settled, show
from operations.tools import run_module

NAMED = 3
"""Files that a difference names before it only counts them."""


def snapshot_differences(
    want: Snapshot, have: SnapshotState, folder: str
) -> tuple[Difference, ...]:
    """How a snapshot's folder differs from the listing.

    A file counts as right when it still has the size, the modification time and the inode at which
    its digest matched; anything else has to be proven again.

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
    there = {file.path: file for file in have.files}
    wrong = []
    for file in want.files:
        proven = manifest.files.get(file.path)
        if (
            proven is None
            or (proven.size, proven.digest) != (file.size, file.digest)
            or not proven.still(there.get(file.path))
        ):
            wrong.append(file.path)
    if wrong:
        named = ", ".join(wrong[:NAMED])
        named += f" and {len(wrong) - NAMED} more" if wrong[NAMED:] else ""
        return differing(resource, [("files", whole, f"{len(wrong)} missing or changed: {named}")])
    if have.host and have.host not in have.users:
        # Without it, another box on the same shared folder would take the snapshot for unused.
        return differing(resource, [(f"used by {have.host}", "registered", "not registered")])
    return ()


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
        next_step=f"move it away (mv {folder} {folder}.old) and run again, with "
        f"model.source={folder}.old to take its files over, or set model.under to another folder",
    )


def require_loadable(want: Snapshot, have: SnapshotState) -> None:
    """Refuse a snapshot that is complete and that no engine could load.

    Index and headers were compared when the files were proven, and the files are the same since.

    + want: the listing
    + have: the folder
    + raises: PreconditionError
    """
    manifest = have.manifest
    if isinstance(manifest, Manifest) and manifest.commit == want.commit and manifest.problem:
        raise PreconditionError(
            wanted=f"a snapshot of {want.repo} at {want.commit[:12]} that an engine can load",
            found=manifest.problem,
            why="every byte is as its author uploaded it, and the upload is inconsistent: the "
            "engine would stop while it loads, or serve garbage; the old service still serves",
            next_step="pin another commit in model.revision (the repository's history or its "
            "discussions may name one); --data upgrade=true where the author has corrected it",
        )


@operation()
@guarded
def fetching(
    service: Service,
    want: Snapshot,
    query: Query,
    token: str | None = None,
    pruned: tuple[str, ...] = (),
) -> Commands:
    """
    Set a fetch on its way, where an engine is to be installed meanwhile; :func:`snapshot` joins it.

    + service, want, query, token, pruned: as for :func:`snapshot`
    """
    folder = service.model.folder(want.commit)
    actual = actual_state(host, query)
    differences = snapshot_differences(want, actual.snapshot, folder)
    if not differences or not engine_differences(service.engine, actual.engine):
        host.noop("nothing to fetch, or nothing to do meanwhile")
        return
    show(host, differences)
    require_room(want, actual, folder, prunable(pruned, want, actual.neighbours))
    yield Step(
        f"exec {run_module('weights.start', '--detach')}",
        stdin=json.dumps(fetch_order(service, want, token)),
        wanted=f"a fetch of {want.repo} at {want.commit[:12]} that goes on while the engine is "
        "installed",
        why="without it both take their time one after the other; the old service still serves",
        next_step="systemctl status 'boxwright-fetch-*' on the box, then run again",
    )


@operation()
@guarded
def snapshot(
    service: Service,
    want: Snapshot,
    query: Query,
    token: str | None = None,
    pruned: tuple[str, ...] = (),
) -> Commands:
    """
    Fetch a model's snapshot, on the box, in a unit of its own.

    + service: whose model it is
    + want: the listing of the commit, as far as it is fetched
    + query: what this run reads of the box
    + token: for a gated repository; travels on standard input only
    + pruned: superseded snapshots that an operation before this one deletes
    """
    folder = service.model.folder(want.commit)
    actual = actual_state(host, query)
    differences = snapshot_differences(want, actual.snapshot, folder)
    show(host, differences)
    if not differences:
        require_loadable(want, actual.snapshot)
        host.noop(f"snapshot {want.repo}@{want.commit[:12]} is complete")
        return
    require_room(want, actual, folder, prunable(pruned, want, actual.neighbours))
    yield Step(
        f"exec {run_module('weights.start')}",
        stdin=json.dumps(fetch_order(service, want, token)),
        stream=True,
        wanted=f"the complete snapshot of {want.repo} at {want.commit[:12]} in {folder}",
        why="an incomplete model crashes the engine or, worse, serves garbage; what was fetched "
        "and hashed so far is kept, and the old service still serves",
        next_step="correct what the last line says and run again: only what is missing is fetched. "
        "A gated repository wants HF_TOKEN in the environment of this command",
    )
    after = actual_state(host, query).snapshot
    settled(
        snapshot_differences(want, after, folder),
        f"ls -l {shlex.quote(folder)} on the box: another program may be writing there",
    )
    adds(host, "fetch", fetch_account(want, after))
    require_loadable(want, after)


def fetch_account(want: Snapshot, have: SnapshotState) -> dict[str, Any] | None:
    """How a snapshot came to the box, for the report.

    + want: its listing
    + have: its folder after the fetch
    + returns: files, bytes, and bytes a second while they came; None where nothing says so
    """
    manifest = have.manifest
    if not isinstance(manifest, Manifest):
        return None
    return {
        "repo": want.repo,
        "commit": want.commit,
        "files": len(want.files),
        "bytes": want.size,
        "downloaded": manifest.downloaded,
        "reused": manifest.reused,
        "seconds": manifest.seconds,
        "rate": round(manifest.downloaded / manifest.seconds) if manifest.seconds > 0 else None,
    }


def fetch_order(service: Service, want: Snapshot, token: str | None) -> dict[str, Any]:
    """What the program on the box is told (operations/remote/weights/start.py).

    + token: goes beside the job, never into it: the job is kept in a file
    """
    model = service.model
    return {
        "user": service.user,
        "token": token,
        "job": {
            # The Hub that made the listing is the one that is asked for its files.
            "endpoint": model.endpoint or os.environ.get("HF_ENDPOINT") or None,
            "repo": want.repo,
            "commit": want.commit,
            "folder": model.folder(want.commit),
            "files": [file.to_json() for file in want.files],
            "source": model.source,
            "caches": list(model.caches),
        },
    }
