"""A fetch: the files of a snapshot, what the program on the box is asked, and what came of it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from inventory.common.paths import FETCHING, PARTIAL_FILES, PROVEN_FILES, inside
from inventory.common.wire import Wire, WireError

if TYPE_CHECKING:
    import mmap

COMMIT = r"[0-9a-f]{40}"
DIGEST = r"sha256:[0-9a-f]{64}|git-sha1:[0-9a-f]{40}"
"""``sha256:`` of the content where the Hub keeps a file in LFS, else ``git-sha1:`` of the git
blob."""
_DIGEST = re.compile(DIGEST)


class Hasher(Protocol):
    """The part of hashlib's objects that is used here."""

    def update(self, data: bytes | memoryview | mmap.mmap, /) -> None:
        """Take bytes in."""

    def hexdigest(self) -> str:
        """The digest of all that was taken in."""


@dataclass(frozen=True)
class ListedFile(Wire):
    """One file as the Hub lists it.

    + path: inside the snapshot
    + size: bytes
    + digest: of the form of :data:`DIGEST`
    """

    path: str
    size: int
    digest: str

    def __post_init__(self) -> None:
        if not inside(self.path) or self.size < 0 or not _DIGEST.fullmatch(self.digest):
            raise WireError(f"{self.path!r} would leave the folder, or has no size or digest")

    @property
    def hex(self) -> str:
        """The digest alone: also the file's name in the client's own cache."""
        return self.digest.partition(":")[2]

    def hasher(self) -> Hasher:
        """A fresh hasher: sha256 of the content, or git's sha1 over a header and the content."""
        if self.digest.startswith("sha256:"):
            return hashlib.sha256()
        return hashlib.sha1(b"blob %d\0" % self.size, usedforsecurity=False)


@dataclass(frozen=True)
class FetchLimits(Wire):
    """How hard and how long to try. Times in seconds.

    + workers: files at once; as many as the client's own downloader runs
    + silence: without a byte on a connection, before it is given up
    + window, floor: a connection that brings less than ``floor`` bytes a second over ``window``
      is given up too
    + patience: without a byte of a file, over all attempts, before the file is given up
    + hang: without a byte at all, before the process ends itself to be started anew
    + beat, dead: the lease is renewed every ``beat``, and is dead after ``dead`` without
    + interval: between two lines of progress
    + longest: bytes in one request: content networks refuse answers of more than some tens of GB
    """

    workers: int = 8
    silence: float = 10.0
    window: float = 30.0
    floor: int = 16 * 1024
    patience: float = 300.0
    hang: float = 900.0
    beat: float = 5.0
    dead: float = 60.0
    interval: float = 10.0
    longest: int = 16 << 30


@dataclass(frozen=True)
class FetchRequest(Wire):
    """One commit of one repository into one folder. Also says where the fetch keeps its files.

    + user: who fetches, and owns the snapshot
    + folder: where the snapshot goes: its last part is the commit
    + files: the part of the listing that is fetched
    + endpoint: URL of the Hub; None for the one that the environment says
    + token: of the Hub. It travels on standard input or as a credential, and is in no repr
    + source: a folder to copy from instead of asking any Hub
    + take: the source's files may be moved away: they were sent for this fetch alone
    + caches: huggingface_hub's own caches to look into before anything is downloaded
    """

    user: str
    repo: str
    commit: str
    folder: Path
    files: tuple[ListedFile, ...]
    endpoint: str | None = None
    token: str | None = field(default=None, repr=False)
    source: Path | None = None
    take: bool = False
    caches: tuple[Path, ...] = ()
    limits: FetchLimits = FetchLimits()

    def __post_init__(self) -> None:
        if not re.fullmatch(COMMIT, self.commit) or not self.folder.is_absolute():
            raise WireError("a 40-hex commit and an absolute folder are wanted")

    @property
    def home(self) -> Path:
        """Folder of the repository, where the snapshots of its commits are side by side."""
        return self.folder.parent

    @property
    def staging(self) -> Path:
        """Where files are gathered until the snapshot is whole: same file system, one rename."""
        return self.home / f"{FETCHING}{self.commit}"

    @property
    def parts(self) -> Path:
        """Files on their way."""
        return self.staging / PARTIAL_FILES

    @property
    def proven(self) -> Path:
        """One line for each file that is whole and proven in the staging folder."""
        return self.staging / PROVEN_FILES

    @property
    def lease(self) -> Path:
        """Who is fetching. Beside the staging folder, which is renamed at the end."""
        return self.home / f"{FETCHING}{self.commit}.lease"

    @property
    def progress(self) -> Path:
        """How far it is, for those who wait."""
        return self.home / f"{FETCHING}{self.commit}.progress.json"

    def sent(self, file: ListedFile) -> Path | None:
        """A file that was sent for this fetch alone, and may be moved away."""
        path = self.source / file.path if self.take and self.source else None
        return path if path and path.is_file() else None

    def part(self, file: ListedFile) -> Path:
        """Where a file is while it arrives. By content, so that an older part is never mixed in."""
        place = hashlib.sha256(file.path.encode()).hexdigest()[:8]
        return self.parts / f"{file.hex}-{place}"


@dataclass(frozen=True)
class FetchAccount(Wire):
    """How a snapshot came to a box.

    + downloaded: bytes that the fetch brought
    + reused: bytes that the box had already
    + seconds: of the fetch
    """

    tolerant: ClassVar[bool] = True

    downloaded: int = 0
    reused: int = 0
    seconds: float = 0.0
