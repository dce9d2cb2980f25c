"""What the file system gives: room for everything before the first byte, and inode numbers.

Room is counted, and then reserved where that is possible. Counting knows nothing of quotas and of
what others write meanwhile. Reserving asks the file system itself: it gives the blocks or refuses
them, and no download ends half-way for want of space.
"""

import contextlib
import ctypes
import errno
import os
from collections.abc import Sequence
from pathlib import Path

from inventory.common.fetch import FetchRequest, ListedFile
from inventory.common.units import GIB
from operations.remote.weights.errors import FetchError

_KEEP_SIZE = 1
"""fallocate's mode that takes blocks and leaves the file's length: the length is what arrived."""

_UNSTABLE_INODES = ("fuse", "cifs", "smb", "9p", "vfat", "exfat")
"""File systems that may give a file another inode number after a remount: there it says nothing."""

_UNABLE = {errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}


def reserve_room(request: FetchRequest, missing: Sequence[ListedFile]) -> None:
    """Refuse what the file system cannot hold, and reserve what it can.

    + raises: FetchError with the bytes that are missing; OSError of the file system (quota)
    """
    request.parts.mkdir(parents=True, exist_ok=True)
    need = 0
    for file in missing:
        with contextlib.suppress(FileNotFoundError):
            found = request.part(file).stat()
            need -= min(found.st_blocks * 512, file.size)
        need += 0 if request.sent(file) else file.size
    free = os.statvfs(request.parts)
    available = free.f_bavail * free.f_frsize
    # Some network mounts report no free bytes at all: there only the writing itself can tell.
    if 0 < available < need:
        raise FetchError(
            f"{need / GIB:.2f} GiB are missing and {available / GIB:.2f} GiB are free on the file "
            f"system of {request.home}: free {(need - available) / GIB:.2f} GiB there, or set "
            "model.under to another one; nothing was fetched"
        )
    # In memory, reserving is taking it, page by page, all at once.
    in_memory = _file_system(request.parts) in {"tmpfs", "ramfs"}
    made = []
    try:
        for file in () if request.take or in_memory else missing:
            part = request.part(file)
            if not part.exists():
                made.append(part)
            if not _reserve(part, file.size):
                return
    except OSError as error:
        for part in made:
            with contextlib.suppress(OSError):
                part.unlink()
        error.filename = str(request.home)
        raise


def inodes_last(folder: Path) -> bool:
    """Whether the inode numbers of a folder's file system stay as they are."""
    kind = _file_system(folder)
    return kind is not None and not kind.startswith(_UNSTABLE_INODES)


def _file_system(folder: Path) -> str | None:
    """Kind of a folder's file system; None where the mounts cannot be read.

    Empty where no mount has its device number, as on an overlay or a btrfs subvolume.
    """
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return None
    kinds = {line.split(" ")[2]: line.partition(" - ")[2].split(" ")[0] for line in lines}
    return kinds.get(number, "")


def _reserve(path: Path, size: int) -> bool:
    """Take the blocks of a file. False where the file system cannot."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        if size == 0 or _fallocate is None:
            return True
        if _fallocate(descriptor, _KEEP_SIZE, ctypes.c_int64(0), ctypes.c_int64(size)) == 0:
            return True
        code = ctypes.get_errno()
        if code in _UNABLE:
            return False
        raise OSError(code, os.strerror(code), str(path))
    finally:
        os.close(descriptor)


_fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
