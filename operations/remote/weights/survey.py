"""What of a snapshot is there and proven, what has to be hashed again, and what is missing."""

import contextlib
import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from inventory.common.fetch import FetchRequest, ListedFile
from inventory.common.manifest import Manifest, ProvenFile, read_manifest
from inventory.common.paths import MANIFEST
from inventory.common.wire import WireError
from operations.remote.weights.errors import FetchError
from operations.remote.weights.hashing import is_good
from operations.remote.weights.room import inodes_last


@dataclass
class Survey:
    """The state of a snapshot before anything is done about it.

    + placed: files that are right where they belong, in the published folder
    + staged: files that are proven in the staging folder
    + missing: all others
    + stable: whether the file system's inode numbers last
    """

    placed: dict[str, ProvenFile] = field(default_factory=dict)
    staged: dict[str, ProvenFile] = field(default_factory=dict)
    missing: list[ListedFile] = field(default_factory=list)
    stable: bool = True


def survey(request: FetchRequest) -> Survey:
    """Look at what is there. Files that changed since they were proven are hashed again.

    + raises: FetchError where the folder is not boxwright's
    """
    manifest = manifest_in(request.folder)
    if manifest is None and request.folder.is_dir() and any(request.folder.iterdir()):
        raise FetchError(
            f"{request.folder} is there without boxwright's manifest: move it away, or set "
            "model.source to it after moving, to take the files over"
        )
    before = manifest.by_path if manifest else {}
    interrupted = {**proven_in(request.staging), **read_proven(request.proven)}
    found = Survey(stable=inodes_last(request.home))
    suspects: list[tuple[ListedFile, Path, dict[str, ProvenFile]]] = []
    for file in request.files:
        placed, staged = request.folder / file.path, request.staging / file.path
        if _trusted(before, file, placed):
            found.placed[file.path] = before[file.path]
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
                good[file.path] = proven_file(file, path, found.stable)
            else:
                found.missing.append(file)
    return found


def is_complete(request: FetchRequest) -> bool:
    """Whether the published snapshot is whole and unchanged."""
    files = proven_in(request.folder)
    return bool(files) and all(
        _trusted(files, file, request.folder / file.path) for file in request.files
    )


def _trusted(files: Mapping[str, ProvenFile], file: ListedFile, path: Path) -> bool:
    proven = files.get(file.path)
    return proven is not None and proven.has(file.size, file.digest) and still_proven(proven, path)


def _plausible(file: ListedFile, path: Path) -> bool:
    """Whether it is worth hashing: a regular file of the right size."""
    return path.is_file() and not path.is_symlink() and path.stat().st_size == file.size


def proven_file(file: ListedFile, path: Path, stable: bool) -> ProvenFile:
    """What is written down of a file whose digest has just matched.

    + stable: whether the file system's inode numbers last
    """
    found = path.lstat()
    inode = found.st_ino if stable else 0
    return ProvenFile(file.path, file.size, file.digest, found.st_mtime_ns, inode)


def still_proven(file: ProvenFile, path: Path) -> bool:
    """Whether the file at a path is as it was."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return file.still(found.st_size, found.st_mtime_ns, found.st_ino)


def manifest_in(folder: Path) -> Manifest | None:
    """A snapshot's manifest; None where it is missing or damaged."""
    try:
        return read_manifest((folder / MANIFEST).read_text())
    except (OSError, ValueError):
        return None


def proven_in(folder: Path) -> dict[str, ProvenFile]:
    """The files of a snapshot's manifest by path; empty where it is missing or damaged."""
    return manifest.by_path if (manifest := manifest_in(folder)) else {}


def read_proven(path: Path) -> dict[str, ProvenFile]:
    """What an interrupted fetch wrote down, by path. The last line may be half a line."""
    found = {}
    with contextlib.suppress(OSError):
        for line in path.read_text(errors="replace").splitlines():
            with contextlib.suppress(ValueError, RecursionError, WireError):
                file = ProvenFile.from_json(json.loads(line))
                found[file.path] = file
    return found
