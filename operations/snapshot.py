"""A snapshot of a model at one commit: complete against the Hub's listing, or not there."""

import json
import shlex
from pathlib import Path
from typing import Any

from pyinfra import host
from pyinfra.api import operation

from facts.actual import Actual
from facts.box import actual_state
from facts.query import Query
from facts.reading.snapshots import FileOnDisk, SnapshotState
from inventory.base import Unknown
from inventory.common.fetch import FetchRequest
from inventory.common.manifest import Manifest, ProvenFile
from inventory.common.units import first_few, gibibytes
from inventory.errors import ConflictError, PreconditionError
from inventory.service import Service
from inventory.snapshot import LocalSnapshot, SnapshotFile, short
from operations.difference import Difference, differing
from operations.engine import engine_differences
from operations.hub import endpoint_of, hub_token
from operations.prune import prunable
from operations.report import adds
from operations.room import require_room
from operations.steps import Commands, Step, guarded, settled, show
from operations.tools import run_module


def snapshot_differences(want: LocalSnapshot, have: SnapshotState) -> tuple[Difference, ...]:
    """How a snapshot's folder differs from the listing.

    A file counts as right when it still has the size, the modification time and the inode at which
    its digest matched; anything else has to be proven again.

    + raises: ConflictError where the folder is somebody else's
    """
    resource = f"snapshot {want.label}"
    whole = f"{len(want.listing.files)} files, {gibibytes(want.listing.size)}"
    if have.exists is False:
        return differing(resource, [("files", whole, "absent")])
    proven = _own_manifest(want, have).by_path
    there = {file.path: file for file in have.files}
    wrong = [
        file.path
        for file in want.listing.files
        if not _still(file, proven.get(file.path), there.get(file.path))
    ]
    if wrong:
        found = f"{len(wrong)} missing or changed: {first_few(wrong)}"
        return differing(resource, [("files", whole, found)])
    if have.host and have.host not in have.users:
        # Without it, another box on the same shared folder would take the snapshot for unused.
        return differing(resource, [(f"used by {have.host}", "registered", "not registered")])
    return ()


def _still(file: SnapshotFile, proven: ProvenFile | None, there: FileOnDisk | None) -> bool:
    return (
        proven is not None
        and there is not None
        and proven.has(file.size, file.digest)
        and proven.still(there.size, there.modified_ns, there.inode)
    )


def _own_manifest(want: LocalSnapshot, have: SnapshotState) -> Manifest:
    manifest = have.manifest
    if isinstance(have.exists, Unknown):
        found = f"a folder that cannot be read: {have.exists.unknown}"
    elif manifest is None:
        found = f"{len(have.files)} files without boxwright's manifest"
    elif isinstance(manifest, Unknown):
        found = manifest.unknown
    elif (manifest.repo, manifest.commit) != (want.repo, want.commit):
        found = f"the snapshot of {manifest.repo} at {short(manifest.commit)}"
    else:
        return manifest
    raise ConflictError(
        wanted=f"the snapshot of {want.words} in {want.folder}",
        found=found,
        why="files of two commits in one folder are a model that nobody released, and a folder "
        "that boxwright did not make may be served by somebody",
        next_step=f"move it away (mv {want.folder} {want.folder}.old) and run again, with "
        f"model.source={want.folder}.old to take its files over, or set model.under to another "
        "folder",
    )


def require_loadable(want: LocalSnapshot, have: SnapshotState) -> None:
    """Refuse a snapshot that is complete and that no engine could load.

    Index and headers were compared when the files were proven, and the files are the same since.

    + raises: PreconditionError
    """
    manifest = have.manifest
    if isinstance(manifest, Manifest) and manifest.commit == want.commit and manifest.problem:
        raise PreconditionError(
            wanted=f"a snapshot of {want.words} that an engine can load",
            found=manifest.problem,
            why="every byte is as its author uploaded it, and the upload is inconsistent: the "
            "engine would stop while it loads, or serve garbage; the old service still serves",
            next_step="pin another commit in model.revision (the repository's history or its "
            "discussions may name one); --data upgrade=true where the author has corrected it",
        )


@operation()
@guarded
def fetching(
    service: Service, want: LocalSnapshot, query: Query, pruned: tuple[str, ...] = ()
) -> Commands:
    """
    Begin a fetch while an engine is to be installed; :func:`snapshot` joins it.

    + pruned: superseded snapshots that an operation before this one deletes
    """
    actual = actual_state(host, query)
    differences = snapshot_differences(want, actual.snapshot)
    if not differences or not engine_differences(service.engine, actual.engine):
        host.noop("nothing to fetch, or nothing to do meanwhile")
        return
    show(host, differences)
    require_room(want, actual, prunable(pruned, want, actual.neighbours))
    yield Step(
        f"exec {run_module('weights.start', '--detach')}",
        stdin=json.dumps(fetch_request(service, want).to_json()),
        wanted=f"a fetch of {want.words} that goes on while the engine is installed",
        why="without it both take their time one after the other; the old service still serves",
        next_step="systemctl status 'boxwright-fetch-*' on the box, then run again",
    )


@operation()
@guarded
def snapshot(
    service: Service, want: LocalSnapshot, query: Query, pruned: tuple[str, ...] = ()
) -> Commands:
    """
    Fetch a model's snapshot, on the box, in a unit of its own.

    + pruned: superseded snapshots that an operation before this one deletes
    """
    actual = unless_complete(want, query)
    if actual is None:
        return
    require_room(want, actual, prunable(pruned, want, actual.neighbours))
    yield Step(
        f"exec {run_module('weights.start')}",
        stdin=json.dumps(fetch_request(service, want).to_json()),
        stream=True,
        wanted=f"the complete snapshot of {want.words} in {want.folder}",
        why="an incomplete model crashes the engine or, worse, serves garbage; what was fetched "
        "and hashed so far is kept, and the old service still serves",
        next_step="correct what the last line says and run again: only what is missing is fetched. "
        "A gated repository wants HF_TOKEN in the environment of this command",
    )
    require_arrived(want, query)


def unless_complete(want: LocalSnapshot, query: Query) -> Actual | None:
    """Show the differences and return the box; None if the snapshot is complete.

    + raises: PreconditionError where it is complete and no engine could load it
    """
    actual = actual_state(host, query)
    differences = snapshot_differences(want, actual.snapshot)
    show(host, differences)
    if differences:
        return actual
    require_loadable(want, actual.snapshot)
    host.noop(f"snapshot {want.label} is complete")
    return None


def require_arrived(want: LocalSnapshot, query: Query) -> None:
    """Report a fetch. Refuse one that left differences, or files that no engine could load."""
    after = actual_state(host, query).snapshot
    settled(
        snapshot_differences(want, after),
        f"ls -l {shlex.quote(want.folder)} on the box: another program may be writing there",
    )
    adds(host, "fetch", _fetch_account(want, after))
    require_loadable(want, after)


def _fetch_account(want: LocalSnapshot, have: SnapshotState) -> dict[str, Any] | None:
    """How a snapshot came to the box, for the report: bytes, seconds, and bytes a second."""
    manifest = have.manifest
    if not isinstance(manifest, Manifest):
        return None
    fetch = manifest.fetch
    return {
        "repo": want.repo,
        "commit": want.commit,
        "files": len(want.listing.files),
        "bytes": want.listing.size,
        "downloaded": fetch.downloaded,
        "reused": fetch.reused,
        "seconds": fetch.seconds,
        "rate": round(fetch.downloaded / fetch.seconds) if fetch.seconds > 0 else None,
    }


def fetch_request(service: Service, want: LocalSnapshot) -> FetchRequest:
    """What the program on the box is asked (operations/remote/weights/start.py)."""
    model = service.model
    return FetchRequest(
        user=service.user,
        repo=want.repo,
        commit=want.commit,
        folder=Path(want.folder),
        files=tuple(file.listed for file in want.listing.files),
        # The Hub that made the listing is the one that is asked for its files.
        endpoint=endpoint_of(model),
        token=hub_token(),
        source=Path(model.source) if model.source else None,
        caches=tuple(map(Path, model.caches)),
    )
