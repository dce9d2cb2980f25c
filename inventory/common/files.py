"""Small files that are either whole or not there."""

import contextlib
import os
import tempfile
from pathlib import Path

DRAFT = ".boxwright."
"""Beginning of the name under which a file is written, before it is renamed into its place."""


def write_whole(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Replace a file in one rename, and have it on the disk. A missing folder is made.

    + mode: permissions of the file, from its first byte on
    + raises: OSError; what was there is then still there
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Made for its owner alone, and opened up once it is whole.
    descriptor, draft = tempfile.mkstemp(prefix=DRAFT, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
            stream.flush()
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        Path(draft).rename(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Have a folder's entries on the disk, where the file system can do that."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
