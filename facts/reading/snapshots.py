"""A snapshot's folder on the box: its manifest, and the files by name, size, time and inode."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from facts.sections import MISSING, Section
from inventory.base import Frozen, Unknown

ABSENT = 3
"""box.sh's exit status where the folder does not exist."""

NANOSECONDS = 9
"""Digits behind the point that a file's time has."""


class FileOnDisk(Frozen):
    """One file below the snapshot's folder."""

    path: str
    size: int
    """Bytes."""
    modified_ns: int
    """Nanoseconds since the epoch."""
    inode: int


class Proven(Frozen):
    """A file as it was when its digest matched."""

    size: int
    modified_ns: int
    inode: int
    """0 where the file system's numbers do not last."""
    digest: str

    def still(self, file: FileOnDisk | None) -> bool:
        """Whether the file on the disk is as it was then."""
        return (
            file is not None
            and (file.size, file.modified_ns) == (self.size, self.modified_ns)
            and self.inode in {0, file.inode}
        )


class Manifest(Frozen):
    """What the fetcher wrote after every byte was hashed."""

    repo: str
    commit: str
    problem: str
    """Why an engine could not load the files; empty for no reason."""
    files: dict[str, Proven]
    downloaded: int = 0
    """Bytes that the fetch brought."""
    reused: int = 0
    """Bytes that the box had already."""
    seconds: float = 0.0
    """Of the fetch."""


class SnapshotState(Frozen):
    """The folder of one commit. Complete only with a manifest that the files still match."""

    exists: bool | Unknown
    manifest: Manifest | Unknown | None = None
    """None where the folder has none: the fetch did not finish, or somebody else made it."""
    files: tuple[FileOnDisk, ...] = ()
    host: str = ""
    """The box's own name."""
    users: tuple[str, ...] = ()
    """Names of the boxes that serve it."""


def read_snapshot(found: Mapping[str, Section]) -> SnapshotState:
    """The snapshot's folder.

    + found: sections ``manifest``, ``files`` and ``users``
    """
    listing = found.get("files", MISSING)
    host, *users = found.get("users", MISSING).lines or ("",)
    if listing.rc == ABSENT:
        return SnapshotState(exists=False, host=host)
    if listing.rc != 0:
        return SnapshotState(exists=Unknown(unknown=listing.text.strip() or "not read"), host=host)
    files = [file for file in map(_file, listing.lines) if file is not None]
    files.sort(key=lambda file: file.path)
    return SnapshotState(
        exists=True,
        manifest=_manifest(found.get("manifest", MISSING)),
        files=tuple(files),
        host=host,
        users=tuple(users),
    )


def _file(line: str) -> FileOnDisk | None:
    """A regular file of the listing. A link or a socket is none, whatever its name is."""
    match = re.fullmatch(
        r"f\|([0-9]{1,19})\|([0-9]{1,12})(?:\.([0-9]+))?\|[0-9]+\|([0-9]{1,20})\|(.+)", line
    )
    if match is None:
        return None
    size, seconds, fraction, inode, path = match.groups()
    # As digits: a float cannot hold a time to the nanosecond.
    nanoseconds = int((fraction or "0")[:NANOSECONDS].ljust(NANOSECONDS, "0"))
    return FileOnDisk(
        path=path,
        size=int(size),
        modified_ns=int(seconds) * 10**NANOSECONDS + nanoseconds,
        inode=int(inode),
    )


def _manifest(section: Section) -> Manifest | Unknown | None:
    if section.rc != 0:
        return None
    return read_manifest(section.text)


def read_manifest(text: str) -> Manifest | Unknown:
    """A manifest, or why it is none.

    + text: content of the file, whatever it is
    """
    try:
        content: Any = json.loads(text)
        account = content.get("fetch", {})
        return Manifest(
            repo=str(content["repo"]),
            commit=str(content["commit"]),
            problem=str(content["problem"]),
            files={
                str(file["path"]): Proven(
                    size=int(file["size"]),
                    modified_ns=int(file["modified_ns"]),
                    inode=int(file["inode"]),
                    digest=str(file["digest"]),
                )
                for file in content["files"]
            },
            downloaded=int(account.get("downloaded", 0)),
            reused=int(account.get("reused", 0)),
            seconds=float(account.get("seconds", 0)),
        )
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
        OverflowError,
    ) as error:
        return Unknown(unknown=f"the manifest is damaged: {type(error).__name__}")
