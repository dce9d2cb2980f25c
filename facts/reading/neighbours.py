"""What lies beside a snapshot: other commits, interrupted fetches, caches; and who uses them."""

import contextlib
import re
from collections.abc import Mapping

from pydantic import Field

from facts.sections import MISSING, Section
from inventory.base import Frozen
from inventory.common.manifest import read_manifest
from inventory.common.paths import FETCHING, INCOMING, commit_of
from inventory.common.wire import WireError

_BLOCK = 512
"""Bytes of find's %b, whatever the file system's own blocks are."""


class Neighbour(Frozen):
    """Another commit of the repository on the box, whole or on its way."""

    name: str
    """Name of its folder: the commit, or ``.fetching-`` and the commit."""
    frees: int
    """Bytes that deleting it gives back: files that another snapshot links to give none."""
    units: tuple[str, ...] = ()
    """Unit files that name it."""
    processes: tuple[int, ...] = ()
    """Processes of this box that have files of it open or mapped, or name it."""
    boxes: tuple[str, ...] = ()
    """Other boxes that serve it from the shared folder."""


class Neighbours(Frozen):
    """Everything beside a snapshot that saves a download, or room."""

    read: bool = False
    """Whether it was asked for: it is not where the snapshot is there."""
    snapshots: tuple[Neighbour, ...] = ()
    staged: dict[str, tuple[int, int]] = Field(default_factory=dict)
    """Commit and path of files of unfinished fetches -> size, bytes on the disk."""
    proven: frozenset[str] = frozenset()
    """Digests of files that other snapshots hold."""
    cached: dict[str, int] = Field(default_factory=dict)
    """Digest without its kind -> size, of cached files that can be linked: on the same file system
    and the service user's own. Others are copied, which needs room."""


def read_neighbours(found: Mapping[str, Section]) -> Neighbours:
    """What lies beside the snapshot.

    + found: sections ``beside``, ``proven``, ``cached``, ``uses``, ``users`` and ``account``
    """
    section = found.get("beside")
    if section is None:
        return Neighbours()
    device = ""
    frees: dict[str, int] = {}
    staged: dict[str, tuple[int, int]] = {}
    for line in section.lines:
        if line.startswith("device|"):
            device = line.removeprefix("device|")
        match = re.fullmatch(r"file\|([0-9]+)\|([0-9]{1,16})\|([0-9]{1,19})\|([^/]+)/(.+)", line)
        if match is None:
            continue
        links, blocks, size, name, inner = match.groups()
        on_disk = int(blocks) * _BLOCK
        frees[name] = frees.get(name, 0) + (on_disk if links == "1" else 0)
        if name.startswith((FETCHING, INCOMING)):
            staged[f"{commit_of(name)}/{inner}"] = (int(size), on_disk)
    # This box's own mark says nothing that its units and processes do not say better.
    own = (found.get("users", MISSING).lines or ("",))[0]
    uses = [line.split("|", 2) for line in found.get("uses", MISSING).lines]

    def using(kind: str, name: str) -> tuple[str, ...]:
        return tuple(cells[2] for cells in uses if cells[:2] == [kind, name] and cells[2:])

    return Neighbours(
        read=True,
        snapshots=tuple(
            Neighbour(
                name=name,
                frees=size,
                units=tuple(unit.rpartition("/")[2] for unit in using("unit", name)),
                processes=tuple(int(pid) for pid in using("process", name) if pid.isdigit()),
                boxes=tuple(one for one in using("box", name) if one != own),
            )
            for name, size in sorted(frees.items())
        ),
        staged=staged,
        proven=_proven(found.get("proven", MISSING)),
        cached=_cached(found.get("cached", MISSING), device, _uid(found)),
    )


def _proven(section: Section) -> frozenset[str]:
    digests: set[str] = set()
    for line in section.lines:
        with contextlib.suppress(WireError):
            digests.update(file.digest for file in read_manifest(line).files)
    return frozenset(digests)


def _uid(found: Mapping[str, Section]) -> str:
    """The service user's number, as getent prints it."""
    cells = (found.get("account", MISSING).lines or ("",))[0].split(":")
    return cells[2] if len(cells) > 2 else ""  # noqa: PLR2004


def _cached(section: Section, device: str, uid: str) -> dict[str, int]:
    cells = [line.split("|") for line in section.lines]
    return {
        one[3]: int(one[2])
        for one in cells
        if len(one) == 4 and one[:2] == [device, uid] and one[2].isdigit()  # noqa: PLR2004
    }
