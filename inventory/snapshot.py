"""A snapshot: one commit of a model repository, file by file. Kept as a lock file in git."""

from __future__ import annotations

import json
import re
from typing import Annotated, Literal

from pydantic import Field, field_validator

from inventory.desired import Desired, Repository, Revision, built
from inventory.errors import DesiredStateError
from inventory.service import Model

Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]


class SnapshotFile(Desired):
    """One file as the Hub lists it."""

    path: str
    size: int = Field(ge=0)
    """Bytes."""
    digest: Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64}|git-sha1:[0-9a-f]{40})$")]
    """``sha256:`` of the content where the Hub keeps the file in LFS, else ``git-sha1:`` of the
    git blob."""

    @field_validator("path")
    @classmethod
    def _stays_inside(cls, path: str) -> str:
        parts = path.split("/")
        unsafe = any(part in {"", ".", ".."} for part in parts) or parts[0] == ".boxwright"
        if unsafe or re.search(r"[\x00-\x1f\x7f\\]", path):
            raise ValueError(f"{path!r} would leave the snapshot's folder")
        return path


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

    + text: content of the file
    + where: its name, for errors
    + model: what it should be the lock of
    + raises: DesiredStateError where the text is no lock, or the lock of something else
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
