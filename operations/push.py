"""A snapshot from the controller's disk, for a box that reaches neither a Hub nor a mirror.

The files are uploaded beside the snapshot and then taken in by the fetcher as any others: hashed
against the lock, placed once they are proven. A file that is there with its size is not sent again.
"""

import json
import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path

from pyinfra.api import FileUploadCommand, operation

from facts.query import Query
from facts.reading.neighbours import Neighbours
from inventory.errors import DesiredStateError
from inventory.service import Service
from inventory.snapshot import LocalSnapshot, SnapshotFile
from operations.room import require_room
from operations.snapshot import fetch_request, require_arrived, unless_complete
from operations.steps import Commands, Step, guarded
from operations.tools import run_module


def to_send(want: LocalSnapshot, folder: Path, beside: Neighbours) -> tuple[SnapshotFile, ...]:
    """The files that the box lacks.

    + folder: on this machine; holds the files by their paths
    + beside: what an interrupted run has sent already
    + raises: DesiredStateError where the folder is not the snapshot
    """
    missing = tuple(
        file
        for file in want.listing.files
        if file.digest not in beside.proven
        and beside.staged.get(f"{want.commit}/{file.path}", (-1, 0))[0] != file.size
    )
    for file in missing:
        path = folder / file.path
        size = path.stat().st_size if path.is_file() else None
        if size != file.size:
            raise DesiredStateError(
                wanted=f"the files of {want.words} in {folder}",
                found=f"{file.path} with {size} bytes where {file.size} are listed"
                if size is not None
                else f"no {file.path}",
                why="the box would refuse it after hours of sending; nothing was touched",
                next_step=f"hf download {want.repo} --revision {want.commit} --local-dir {folder} "
                "on a machine that reaches the Hub, and copy that folder here",
            )
    return missing


@operation()
@guarded
def pushed(service: Service, want: LocalSnapshot, query: Query, source: str) -> Commands:
    """Bring a snapshot from a folder of this machine to the box."""
    actual = unless_complete(want, query)
    if actual is None:
        return
    require_room(want, actual)
    incoming = want.incoming
    files = to_send(want, Path(source), actual.neighbours)
    parents = sorted({incoming, *(str(Path(incoming, file.path).parent) for file in files)})
    step = partial(
        Step,
        wanted=f"the snapshot of {want.words} from {source}",
        why="what was sent so far is kept; the old service still serves",
        next_step="correct what the last line says and run again: only the rest is sent",
    )
    # Uploads are the login user's, whom sudo names.
    folders = " ".join(map(shlex.quote, parents))
    yield step(f'install -d -m 755 -o "${{SUDO_USER:-$(id -un)}}" {folders}')
    for file in files:
        yield FileUploadCommand(str(Path(source, file.path)), f"{incoming}/{file.path}")
    request = replace(fetch_request(service, want), token=None, source=Path(incoming), take=True)
    owner = shlex.quote(f"{service.user}:")
    quoted = shlex.quote(incoming)
    yield step(
        f"chown -R {owner} {quoted} && {run_module('weights.start')} && rm -rf -- {quoted}",
        stdin=json.dumps(request.to_json()),
        stream=True,
    )
    require_arrived(want, query)
