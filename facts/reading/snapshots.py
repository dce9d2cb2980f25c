"""A snapshot's folder on the box: its manifest, and the files by name, size, time and inode."""

import re
from collections.abc import Mapping

from facts.sections import ABSENT, MISSING, Section
from inventory.base import Frozen, Unknown
from inventory.common.manifest import Manifest, read_manifest
from inventory.common.wire import WireError

_NANOSECONDS = 9
"""Digits behind the point that a file's time has."""


class FileOnDisk(Frozen):
    """One file below the snapshot's folder."""

    path: str
    size: int
    """Bytes."""
    modified_ns: int
    """Nanoseconds since the epoch."""
    inode: int


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
    """A regular file of the listing; None for a link, a socket and the like."""
    match = re.fullmatch(
        r"f\|([0-9]{1,19})\|([0-9]{1,12})(?:\.([0-9]+))?\|[0-9]+\|([0-9]{1,20})\|(.+)", line
    )
    if match is None:
        return None
    size, seconds, fraction, inode, path = match.groups()
    # As digits: a float cannot hold a time to the nanosecond.
    nanoseconds = int((fraction or "0")[:_NANOSECONDS].ljust(_NANOSECONDS, "0"))
    return FileOnDisk(
        path=path,
        size=int(size),
        modified_ns=int(seconds) * 10**_NANOSECONDS + nanoseconds,
        inode=int(inode),
    )


def _manifest(section: Section) -> Manifest | Unknown | None:
    if section.rc != 0:
        return None
    try:
        return read_manifest(section.text)
    except WireError as error:
        return Unknown(unknown=f"the manifest is damaged: {error}")
