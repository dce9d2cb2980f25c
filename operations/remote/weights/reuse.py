"""Files that need no download: from another commit's snapshot, or from the client's own cache.

A block-sharing copy (reflink) where the file system has it, else a hard link, else a copy on the
same disk. What comes from another snapshot was proven there and is unchanged since; what comes from
a cache is hashed first: there a file's name is a claim that nobody checked.
"""

import contextlib
import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from inventory.common.fetch import FetchRequest, ListedFile
from inventory.common.manifest import ProvenFile
from operations.remote.weights.hashing import is_good
from operations.remote.weights.survey import proven_file, proven_in, still_proven

FICLONE = 0x40049409
"""ioctl that makes a file share all blocks of another (linux/fs.h)."""

_NO_LINKS = {errno.EOPNOTSUPP, errno.ENOSYS}
_UNLINKABLE = {errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, *_NO_LINKS}
"""Another file system, a file of another user, a file system without links."""


def neighbours(request: FetchRequest) -> dict[str, tuple[Path, ProvenFile]]:
    """Digest -> path and proven file, of all other snapshots of this repository on the box."""
    found = {}
    for folder in sorted(request.home.glob("[0-9a-f]" * 40)):
        if folder == request.folder:
            continue
        for file in proven_in(folder).values():
            found[file.digest] = (folder / file.path, file)
    return found


def cached(request: FetchRequest, file: ListedFile) -> Iterator[Path]:
    """Where huggingface_hub's caches would keep a file: blobs are named by their digest."""
    for cache in (*request.caches, *own_caches()):
        blob = cache / f"models--{request.repo.replace('/', '--')}" / "blobs" / file.hex
        with contextlib.suppress(OSError):
            real = blob.resolve()
            if real.is_file() and real.stat().st_size == file.size:
                yield real


def own_caches() -> tuple[Path, ...]:
    """The caches that huggingface_hub itself would use, as this user."""
    home = os.environ.get("HF_HOME")
    found = [Path(home) / "hub"] if home else []
    if named := os.environ.get("HF_HUB_CACHE"):
        found.append(Path(named))
    with contextlib.suppress(RuntimeError):
        found.append(Path.home() / ".cache" / "huggingface" / "hub")
    return tuple(found)


def reuse(
    request: FetchRequest,
    file: ListedFile,
    others: dict[str, tuple[Path, ProvenFile]],
    stable: bool,
) -> ProvenFile | None:
    """Put a file into the staging folder without downloading it, if the box has it.

    + returns: the file, proven; None where the box does not have it
    """
    place = request.staging / file.path
    place.parent.mkdir(parents=True, exist_ok=True)
    if file.digest in others:
        origin, proven = others[file.digest]
        if still_proven(proven, origin) and _take(origin, place):
            found = proven_file(file, place, stable)
            linked = (found.inode, found.modified_ns) == (proven.inode, proven.modified_ns)
            if linked or is_good(place, file):
                return found
            place.unlink()
    for origin in cached(request, file):
        if _take(origin, place):
            if is_good(place, file):
                return proven_file(file, place, stable)
            place.unlink()
    return None


def _take(origin: Path, place: Path) -> bool:
    """Make ``place`` have the content of ``origin``. False where that cannot be."""
    with contextlib.suppress(FileNotFoundError):
        place.unlink()
    try:
        if _clone(origin, place):
            return True
        try:
            os.link(origin, place)
        except OSError as error:
            if error.errno not in _UNLINKABLE:
                raise
            shutil.copyfile(origin, place)
            place.chmod(0o444)
    except OSError as error:
        with contextlib.suppress(OSError):
            place.unlink()
        if error.errno in {errno.EACCES, errno.ENOENT, errno.ESTALE, errno.EIO}:
            return False
        raise
    return True


def _clone(origin: Path, place: Path) -> bool:
    with origin.open("rb") as source:
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
        try:
            fcntl.ioctl(descriptor, FICLONE, source.fileno())
        except OSError:
            place.unlink()
            return False
        finally:
            os.close(descriptor)
    return True
