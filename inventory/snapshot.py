"""A snapshot: one commit of a model repository, file by file. Kept as a lock file in git."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, field_validator

from inventory.common.fetch import COMMIT, DIGEST, ListedFile
from inventory.common.paths import INCOMING, inside
from inventory.desired import Desired, Repository, Revision, built
from inventory.errors import DesiredStateError
from inventory.service import Model

Commit = Annotated[str, Field(pattern=f"^{COMMIT}$")]


def short(commit: str) -> str:
    """A commit as people are shown it."""
    return commit[:12]


def label_of(repo: str, commit: str) -> str:
    """A commit of a repository in one word."""
    return f"{repo}@{short(commit)}"


class SnapshotFile(Desired):
    """One file as the Hub lists it."""

    path: str
    size: int = Field(ge=0)
    """Bytes."""
    digest: Annotated[str, Field(pattern=f"^({DIGEST})$")]

    @field_validator("path")
    @classmethod
    def _stays_inside(cls, path: str) -> str:
        if not inside(path):
            raise ValueError(f"{path!r} would leave the snapshot's folder")
        return path

    @property
    def listed(self) -> ListedFile:
        """The file as the programs on the box have it."""
        return ListedFile(self.path, self.size, self.digest)


class Snapshot(Desired):
    """What the Hub lists for one commit: the definition of complete.

    The number N in names like ``model-00001-of-N`` is a name and nothing more: sets that start
    at zero or carry an extra shard are common (sgl-project/sglang#24237).
    """

    version: Literal[1] = 1
    """Of the lock file's format."""
    repo: Repository
    revision: Revision
    """What was asked for when the commit was resolved."""
    commit: Commit
    files: tuple[SnapshotFile, ...] = Field(min_length=1)

    @field_validator("files")
    @classmethod
    def _ordered(cls, files: tuple[SnapshotFile, ...]) -> tuple[SnapshotFile, ...]:
        paths = [file.path for file in files]
        if len(set(paths)) != len(paths):
            raise ValueError("a file is listed twice")
        return tuple(sorted(files, key=lambda file: file.path))

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True)
class LocalSnapshot:
    """A snapshot on a box: what it is, and where.

    + listing: the commit, with the files that are fetched
    + home: folder of the repository, where the snapshots of its commits are side by side
    """

    listing: Snapshot
    home: str

    @classmethod
    def of(cls, model: Model, listing: Snapshot) -> LocalSnapshot:
        """The snapshot in the folder that the model says."""
        return cls(listing, model.home)

    @property
    def repo(self) -> str:
        """The repository."""
        return self.listing.repo

    @property
    def commit(self) -> str:
        """The commit, whole."""
        return self.listing.commit

    @property
    def folder(self) -> str:
        """Its own directory: one per commit, so that a new one never touches an old."""
        return f"{self.home}/{self.commit}"

    @property
    def incoming(self) -> str:
        """Where a controller sends its files."""
        return f"{self.home}/{INCOMING}{self.commit}"

    @property
    def label(self) -> str:
        """Repository and commit in one word."""
        return label_of(self.repo, self.commit)

    @property
    def words(self) -> str:
        """Repository and commit within a sentence."""
        return f"{self.repo} at {short(self.commit)}"


def lock_name(model: Model) -> str:
    """File name of the model's lock: one per repository and revision."""
    return f"{model.repo}@{model.revision}".replace("/", "--") + ".json"


def lock_text(snapshot: Snapshot) -> str:
    """The lock file: one line a file, so that a diff in git shows what moved."""
    head = {key: value for key, value in snapshot.to_json().items() if key != "files"}
    files = ",\n".join(f"    {json.dumps(file.to_json())}" for file in snapshot.files)
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    return "{\n" + ",\n".join(lines) + f',\n  "files": [\n{files}\n  ]\n}}\n'


def read_lock(text: str, where: str, model: Model) -> Snapshot:
    """The snapshot that a lock file holds.

    + where: its name, for errors
    + model: what it should be the lock of
    + raises: DesiredStateError where the text is not a lock, or the lock of something else
    """
    try:
        snapshot = built(Snapshot, json.loads(text), f"lock file {where}")
    except ValueError as error:
        raise _unreadable(where, f"text that is not JSON ({error})") from None
    except DesiredStateError as error:
        raise _unreadable(where, error.found) from None
    if (snapshot.repo, snapshot.revision) != (model.repo, model.revision):
        raise DesiredStateError(
            wanted=f"the lock of {model.repo} at {model.revision} in {where}",
            found=f"the lock of {snapshot.repo} at {snapshot.revision}",
            why="the file was renamed or edited by hand; its digests belong to other weights",
            next_step=_remake(where),
        )
    return snapshot


def _unreadable(where: str, found: str) -> DesiredStateError:
    return DesiredStateError(
        wanted=f"a valid lock file {where}",
        found=found,
        why="the lock file defines which bytes are the model; a damaged one defines nothing",
        next_step=_remake(where),
    )


def _remake(where: str) -> str:
    return f"restore {where} from git, or delete it and run again to resolve the revision anew"
