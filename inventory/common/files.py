"""Small files that are either whole or not there."""

import contextlib
import os
from pathlib import Path

DRAFT = ".boxwright."
"""Beginning of the name under which a file is written, before it is renamed into its place."""


def write_whole(path: Path, content: str | bytes, mode: int | None = 0o644) -> None:
    """Replace a file in one rename, and have it on the disk. A missing folder is made.

    + mode: permissions of the file, from its first byte on; None leaves them to the user's umask
    + raises: OSError; what was there is then still there
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{DRAFT}{os.urandom(8).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    # With a mode, made for its owner alone and opened up once it is whole.
    descriptor = os.open(draft, flags, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
            stream.flush()
            if mode is not None:
                os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        draft.rename(path)
    except BaseException:
        draft.unlink(missing_ok=True)
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
