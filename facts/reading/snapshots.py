"""A snapshot's folder on the box: its manifest, and the files by name and size."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from facts.sections import MISSING, Section
from inventory.base import Frozen, Unknown

ABSENT = 3
"""box.sh's exit status where the folder does not exist."""


class FileOnDisk(Frozen):
    """One file below the snapshot's folder."""

    path: str
    size: int
    """Bytes."""
    modified: float
    """Seconds since the epoch."""


class Manifest(Frozen):
    """What the fetcher wrote after every byte was hashed."""

    repo: str
    commit: str
    files: dict[str, tuple[int, float]]
    """Path -> size in bytes, modification time: as they were when the digest matched."""


class SnapshotState(Frozen):
    """The folder of one commit. Complete only with a manifest that the files still match."""

    exists: bool | Unknown
    manifest: Manifest | Unknown | None = None
    """None where the folder has none: the fetch did not finish, or somebody else made it."""
    files: tuple[FileOnDisk, ...] = ()


def read_snapshot(found: Mapping[str, Section]) -> SnapshotState:
    """The snapshot's folder.

    + found: sections ``manifest`` and ``files``
    """
    listing = found.get("files", MISSING)
    if listing.rc == ABSENT:
        return SnapshotState(exists=False)
    if listing.rc != 0:
        return SnapshotState(exists=Unknown(unknown=listing.text.strip() or "not read"))
    files = []
    for line in listing.lines:
        match = re.fullmatch(r"f\|([0-9]{1,19})\|([0-9]{1,12}(?:\.[0-9]+)?)\|[0-9]+\|(.+)", line)
        if match:
            files.append(
                FileOnDisk(
                    path=match.group(3), size=int(match.group(1)), modified=float(match.group(2))
                )
            )
    files.sort(key=lambda file: file.path)
    return SnapshotState(
        exists=True, manifest=_manifest(found.get("manifest", MISSING)), files=tuple(files)
    )


def _manifest(section: Section) -> Manifest | Unknown | None:
    if section.rc != 0:
        return None
    try:
        content: Any = json.loads(section.text)
        return Manifest(
            repo=str(content["repo"]),
            commit=str(content["commit"]),
            files={
                str(file["path"]): (int(file["size"]), float(file["modified"]))
                for file in content["files"]
            },
        )
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        return Unknown(unknown=f"the manifest is damaged: {type(error).__name__}")
