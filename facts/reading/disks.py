"""Room on the file system that will hold a path, and the folders on the way."""

from collections.abc import Mapping

from facts.hardware.cells import number
from facts.sections import MISSING, Section
from inventory.base import Frozen, Unknown

DISK_FIELDS = 4
FOLDER_FIELDS = 5


class Disk(Frozen):
    """The file system that holds, or will hold, a path."""

    path: str
    parent: str
    """Nearest parent of the path that exists."""
    writable: bool
    available: int | Unknown
    """Bytes that an ordinary user may still write."""
    size: int | Unknown
    """Bytes in all."""
    free_inodes: int | Unknown
    """Unknown where the file system makes them as needed (btrfs prints 0 of 0)."""
    file_system: str
    """Type, e.g. ext4, xfs, nfs4."""
    mounted_on: str


class Folder(Frozen):
    """A path that boxwright needs as a directory."""

    path: str
    kind: str
    """``directory``, ``regular file``, … or ``absent``."""
    mode: str = ""
    """Octal permissions, e.g. 755."""
    owner: str = ""
    group: str = ""


def read_disks(found: Mapping[str, Section]) -> tuple[Disk, ...]:
    """One entry for each path that the probe was asked for and could resolve."""
    disks = []
    for line in found.get("disks", MISSING).lines:
        head = line.split("|", 3)
        cells = head[3].split(None, 4) if len(head) == DISK_FIELDS else []
        if len(cells) != 5:  # noqa: PLR2004 - df's five columns, the mount point last
            continue
        inodes = number(cells[2])
        disks.append(
            Disk(
                path=head[0],
                parent=head[1],
                writable=head[2] == "rw",
                available=number(cells[0]),
                size=number(cells[1]),
                free_inodes=Unknown(unknown="the file system does not count")
                if inodes == 0
                else inodes,
                file_system=cells[3],
                mounted_on=cells[4],
            )
        )
    return tuple(disks)


def read_folders(found: Mapping[str, Section]) -> tuple[Folder, ...]:
    """One entry for each folder that the probe was asked for."""
    folders = []
    for line in found.get("folders", MISSING).lines:
        cells = line.split("|")
        if cells[1:] == ["absent"]:
            folders.append(Folder(path=cells[0], kind="absent"))
        elif len(cells) == FOLDER_FIELDS:
            path, kind, mode, owner, group = cells
            folders.append(Folder(path=path, kind=kind, mode=mode, owner=owner, group=group))
    return tuple(folders)
