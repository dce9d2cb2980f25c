"""Files that are proven: what is written down of them, and whether it still holds."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from inventory.common.fetch import ListedFile
from inventory.common.manifest import Manifest, ProvenFile, read_manifest
from inventory.common.paths import MANIFEST
from inventory.common.wire import WireError


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
    manifest = manifest_in(folder)
    return manifest.by_path if manifest else {}


def read_proven(path: Path) -> dict[str, ProvenFile]:
    """What an interrupted fetch wrote down, by path. The last line may be half a line."""
    found = {}
    with contextlib.suppress(OSError):
        for line in path.read_text(errors="replace").splitlines():
            with contextlib.suppress(ValueError, RecursionError, WireError):
                file = ProvenFile.from_json(json.loads(line))
                found[file.path] = file
    return found
