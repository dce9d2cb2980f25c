"""The manifest: what each file of a snapshot was when its digest matched.

Written last. Without it the snapshot does not exist. A file with the same size, modification time
and inode as before is taken to have the same bytes, as git's index does. Other files are hashed
again.
"""

import json
from dataclasses import dataclass, field
from typing import ClassVar

from inventory.common.fetch import FetchAccount, ListedFile
from inventory.common.wire import Wire, WireError


@dataclass(frozen=True)
class ProvenFile(ListedFile):
    """A file as it was when its digest matched.

    + modified_ns: nanoseconds since the epoch
    + inode: 0 where the file system's numbers do not last
    """

    tolerant: ClassVar[bool] = True

    modified_ns: int
    inode: int

    def has(self, size: int, digest: str) -> bool:
        """Whether these are the bytes that a listing has."""
        return (self.size, self.digest) == (size, digest)

    def still(self, size: int, modified_ns: int, inode: int) -> bool:
        """Whether a file on the disk is as this one was then."""
        return (size, modified_ns) == (self.size, self.modified_ns) and self.inode in {0, inode}


@dataclass(frozen=True)
class Manifest(Wire):
    """What the fetch wrote after every byte was hashed.

    + problem: why an engine could not load the files; empty if it can
    + version: of the file's format
    + source: the folder or the Hub that the files came from
    + verified_at: seconds since the epoch
    """

    tolerant: ClassVar[bool] = True

    repo: str
    commit: str
    problem: str
    files: tuple[ProvenFile, ...]
    version: int = 2
    source: str | None = None
    verified_at: int = 0
    fetch: FetchAccount = field(default_factory=FetchAccount)

    @property
    def by_path(self) -> dict[str, ProvenFile]:
        """The files by their paths."""
        return {file.path: file for file in self.files}

    @property
    def text(self) -> str:
        """The file's content."""
        # Without blanks: it is read on every run.
        return json.dumps(self.to_json(), separators=(",", ":")) + "\n"


def read_manifest(text: str) -> Manifest:
    """The manifest that a file holds.

    + text: content of the file, whatever it is
    + raises: WireError
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WireError(f"not JSON: {type(error).__name__}") from None
    return Manifest.from_json(content)
