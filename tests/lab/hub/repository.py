"""Repositories of the local Hub: folders of plain files, seen as commits, branches and tags.

A commit's name is the sha1 over the sorted paths and digests of its files, so that the same
files give the same 40 hex digits on every machine. A file is stored "in git" (its identity is
the git blob sha1) or "in LFS" (its identity is the sha256 of the content, and the git sha1 is
that of the pointer file), as on the real Hub.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

LFS_SUFFIXES = frozenset({".safetensors", ".bin", ".gguf", ".pt", ".pth"})
LFS_FROM = 10 * 1024 * 1024
"""Bytes from which any file is in LFS. The Hub refuses larger ones in git."""

SKIPPED = frozenset({".git", ".cache", "__pycache__"})


class NotFoundError(LookupError):
    """The Hub has no such thing. ``code`` is the value of the answer's X-Error-Code."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


def git_blob_sha1(size: int, *chunks: bytes) -> str:
    """The name that git gives to a blob.

    >>> git_blob_sha1(5, b"hello")
    'b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0'
    """
    digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


@dataclass(frozen=True)
class Entry:
    """One file of a commit, and where its bytes lie.

    + source: the file on disk
    + size: bytes
    + modified: mtime of the source in nanoseconds when it was hashed
    + oid: git sha1 of the content, or of the pointer for a file in LFS
    + sha256: of the content, for a file in LFS; None for a file in git
    + pointer_size: bytes of the pointer, 0 for a file in git
    """

    path: str
    source: Path
    size: int
    modified: int
    oid: str
    sha256: str | None
    pointer_size: int = 0

    @property
    def etag(self) -> str:
        """What the client takes for the identity of the file."""
        return self.sha256 or self.oid

    def is_intact(self) -> bool:
        """Whether the source is still the file that was hashed."""
        try:
            status = self.source.stat()
        except OSError:
            return False
        return status.st_size == self.size and status.st_mtime_ns == self.modified


def read_entry(source: Path, path: str) -> Entry:
    """Hash one file."""
    status = source.stat()
    size = status.st_size
    sha1 = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    sha256 = hashlib.sha256()
    in_lfs = source.suffix in LFS_SUFFIXES or size >= LFS_FROM
    with source.open("rb") as file:
        while chunk := file.read(1 << 20):
            (sha256 if in_lfs else sha1).update(chunk)
    if not in_lfs:
        return Entry(path, source, size, status.st_mtime_ns, sha1.hexdigest(), None)
    pointer = (
        "version https://git-lfs.github.com/spec/v1\n"
        f"oid sha256:{sha256.hexdigest()}\nsize {size}\n"
    ).encode()
    oid = git_blob_sha1(len(pointer), pointer)
    return Entry(path, source, size, status.st_mtime_ns, oid, sha256.hexdigest(), len(pointer))


@dataclass(frozen=True)
class Commit:
    """The files of one commit by path, in the order of their paths."""

    sha: str
    files: Mapping[str, Entry]

    def directories(self) -> list[str]:
        """Every folder that holds a file, parents first."""
        found = {
            str(parent)
            for path in self.files
            for parent in PurePosixPath(path).parents
            if str(parent) != "."
        }
        return sorted(found)


def read_commit(folder: Path) -> Commit:
    """Hash every file under a folder. Links are followed; ``.git`` and caches are left out."""
    files = {}
    for source in sorted(folder.rglob("*")):
        relative = source.relative_to(folder)
        if source.is_file() and not SKIPPED.intersection(relative.parts):
            files[relative.as_posix()] = read_entry(source, relative.as_posix())
    digest = hashlib.sha1(usedforsecurity=False)
    for path, entry in sorted(files.items()):
        digest.update(f"{path}\0{entry.etag}\n".encode())
    return Commit(digest.hexdigest(), dict(sorted(files.items())))


@dataclass
class Repository:
    """The commits of one repository and the names that point at them."""

    id: str
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    def resolve(self, revision: str) -> Commit:
        """The commit of a branch, a tag, a full ref or 40 hex digits."""
        name = revision.removeprefix("refs/heads/").removeprefix("refs/tags/")
        sha = self.branches.get(name) or self.tags.get(name) or revision
        commit = self.commits.get(sha)
        if commit is None:
            raise NotFoundError("RevisionNotFound", f"Invalid rev id: {revision}")
        return commit


class Library:
    """All repositories of a Hub. Safe to use from several threads."""

    def __init__(self, root: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._repositories: dict[str, Repository] = {}
        if root is not None:
            for folder in sorted(root.glob("*/*")):
                if folder.is_dir() and not folder.name.startswith("."):
                    self.add(f"{folder.parent.name}/{folder.name}", folder)

    def add(self, repo: str, folder: Path, branch: str = "main") -> str:
        """Commit a folder and let a branch point at it.

        Earlier commits stay as long as their files do: a commit whose files were changed in
        place is gone, as after a force push. Give the new state a folder of its own to keep it.
        Returns the commit.
        """
        commit = read_commit(folder)
        with self._lock:
            repository = self._repositories.setdefault(repo, Repository(repo))
            for sha, old in list(repository.commits.items()):
                if not all(entry.is_intact() for entry in old.files.values()):
                    del repository.commits[sha]
            repository.commits[commit.sha] = commit
            repository.branches[branch] = commit.sha
        return commit.sha

    def tag(self, repo: str, name: str, revision: str = "main") -> str:
        """Let a tag point at a revision. Returns the commit."""
        sha = self.commit(repo, revision).sha
        with self._lock:
            self._repositories[repo].tags[name] = sha
        return sha

    def remove(self, repo: str) -> None:
        """Forget a repository: the Hub answers that it does not exist."""
        with self._lock:
            self._repositories.pop(repo, None)

    def repository(self, repo: str) -> Repository:
        """The repository, or NotFoundError."""
        with self._lock:
            found = self._repositories.get(repo)
        if found is None:
            raise NotFoundError("RepoNotFound", "Repository not found")
        return found

    def commit(self, repo: str, revision: str) -> Commit:
        """The commit that a revision names, or NotFoundError."""
        repository = self.repository(repo)
        with self._lock:
            return repository.resolve(revision)

    def entry(self, repo: str, revision: str, path: str) -> tuple[Commit, Entry]:
        """A file of a revision, or NotFoundError."""
        commit = self.commit(repo, revision)
        entry = commit.files.get(path)
        if entry is None:
            raise NotFoundError("EntryNotFound", "Entry not found")
        return commit, entry

    def names(self) -> list[str]:
        """The repositories' ids."""
        with self._lock:
            return sorted(self._repositories)
