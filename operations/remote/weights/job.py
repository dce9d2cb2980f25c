"""What a fetch is asked to do, and where its files are."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from operations.remote.weights.errors import FetchError

STATE = ".boxwright"
"""Folder inside a snapshot that holds what boxwright knows of it."""

MANIFEST = f"{STATE}/manifest.json"


@dataclass(frozen=True)
class File:
    """One file as the Hub lists it.

    + path: inside the snapshot
    + size: bytes
    + digest: ``sha256:`` of the content, or ``git-sha1:`` of the git blob
    """

    path: str
    size: int
    digest: str

    @property
    def kind(self) -> str:
        """``sha256`` or ``git-sha1``."""
        return self.digest.split(":")[0]

    @property
    def hex(self) -> str:
        """The digest alone: also the file's name in the client's own cache."""
        return self.digest.split(":")[1]


@dataclass(frozen=True)
class Limits:
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
class Job:
    """One commit of one repository into one folder.

    + endpoint: URL of the Hub; None for the one that the environment says
    + folder: where the snapshot goes: its last part is the commit
    + token: of the Hub; from standard input or a credential, and in no repr
    + source: a folder to copy from instead of asking any Hub
    + take: the source's files may be moved away: they were sent for this fetch alone
    + caches: huggingface_hub's own caches to look into before anything is downloaded
    """

    endpoint: str | None
    repo: str
    commit: str
    folder: Path
    files: tuple[File, ...]
    token: str | None = field(default=None, repr=False)
    source: Path | None = None
    take: bool = False
    caches: tuple[Path, ...] = ()
    limits: Limits = Limits()

    @property
    def home(self) -> Path:
        """Folder of the repository, where the snapshots of its commits are side by side."""
        return self.folder.parent

    @property
    def staging(self) -> Path:
        """Where files are gathered until the snapshot is whole: same file system, one rename."""
        return self.home / f".fetching-{self.commit}"

    @property
    def parts(self) -> Path:
        """Files on their way."""
        return self.staging / STATE / "parts"

    @property
    def journal(self) -> Path:
        """One line for each file that is whole and proven in the staging folder."""
        return self.staging / STATE / "proven.jsonl"

    @property
    def lease(self) -> Path:
        """Who is fetching. Beside the staging folder, which is renamed at the end."""
        return self.home / f".fetching-{self.commit}.lease"

    @property
    def progress(self) -> Path:
        """How far it is, for those who wait."""
        return self.home / f".fetching-{self.commit}.progress.json"

    def part(self, file: File) -> Path:
        """Where a file is while it arrives. By content, so that an older part is never mixed in."""
        place = hashlib.sha256(file.path.encode()).hexdigest()[:8]
        return self.parts / f"{file.hex}-{place}"


def read_job(content: Mapping[str, Any]) -> Job:
    """The job in a JSON object.

    + content: endpoint, repo, commit, folder, files, and optionally token, source, caches, limits
    + raises: FetchError where it is none, or where a path would leave the folder
    """
    try:
        files = tuple(
            File(str(one["path"]), int(one["size"]), str(one["digest"])) for one in content["files"]
        )
        source = content.get("source")
        job = Job(
            endpoint=content.get("endpoint"),
            repo=str(content["repo"]),
            commit=str(content["commit"]),
            folder=Path(content["folder"]),
            files=files,
            token=content.get("token") or credential("token"),
            source=Path(source) if source else None,
            take=bool(content.get("take")),
            caches=tuple(Path(one) for one in content.get("caches", ())),
            limits=Limits(**content.get("limits", {})),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise FetchError(f"the job is malformed: {type(error).__name__}: {error}") from None
    if not re.fullmatch(r"[0-9a-f]{40}", job.commit) or not job.folder.is_absolute():
        raise FetchError("the job is malformed: a 40-hex commit and an absolute folder are wanted")
    for file in files:
        if not inside(file.path) or not re.fullmatch(
            r"sha256:[0-9a-f]{64}|git-sha1:[0-9a-f]{40}", file.digest
        ):
            raise FetchError(f"{file.path!r} would leave the folder, or has no digest")
    return job


def inside(path: str) -> bool:
    """Whether a path of the listing stays inside the snapshot's folder."""
    parts = path.split("/")
    return not (
        any(part in {"", ".", ".."} for part in parts)
        or parts[0] == STATE
        or re.search(r"[\x00-\x1f\x7f\\]", path)
    )


def credential(name: str) -> str | None:
    """A credential that systemd holds for this process alone."""
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if folder is None:
        return None
    try:
        return (Path(folder) / name).read_text().strip() or None
    except OSError:
        return None
