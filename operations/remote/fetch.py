"""Fetch one commit of a model repository, completely or not at all.

Runs on the box as the user that will own the snapshot, by hand too::

    python fetch.py < job.json

The job on standard input: endpoint (or null), repo, commit, folder, files (path, size, digest)
and token (or null). Every file is downloaded into a staging folder beside the target, hashed
there and only then counted; the manifest is written last, and the staging folder becomes the
target by one rename. In a target that is already there, single files are replaced the same way.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

MANIFEST = ".boxwright/manifest.json"
WORKERS = 4
ATTEMPTS = 6
CHUNK = 1 << 20
PROGRESS_SECONDS = 5.0


class FetchError(Exception):
    """What ends the fetch, in a sentence for the operator."""


def digest_of(path: Path, kind: str) -> str:
    """The digest of a file as the Hub writes it: sha256 of the content, or git's blob sha1."""
    if kind == "sha256":
        hasher = hashlib.sha256()
    else:
        hasher = hashlib.sha1(b"blob %d\0" % path.stat().st_size)  # noqa: S324 - git's own choice
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            hasher.update(chunk)
    return f"{kind}:{hasher.hexdigest()}"


def good(path: Path, file: dict[str, Any]) -> bool:
    """Whether a file on disk is the listed one, byte for byte."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size != file["size"]:
            return False
        return digest_of(path, file["digest"].split(":")[0]) == str(file["digest"])
    except OSError:
        return False


def proven(target: Path) -> dict[str, tuple[int, float]]:
    """Path -> size and modification time of the files that an earlier run hashed."""
    try:
        manifest = json.loads((target / MANIFEST).read_text())
        return {file["path"]: (file["size"], file["modified"]) for file in manifest["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def unchanged(path: Path, before: tuple[int, float] | None) -> bool:
    """Whether a file is as it was when its digest matched."""
    try:
        stat = path.stat()
    except OSError:
        return False
    return before == (stat.st_size, round(stat.st_mtime, 6))


def transient(error: BaseException) -> bool:
    """Whether trying again can help: the network and the server, not the answer "no"."""
    from huggingface_hub.errors import (  # noqa: PLC0415 - read after HF_* are set
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    if isinstance(error, (GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError)):
        return False
    if isinstance(error, LocalEntryNotFoundError):  # the client's word for "no answer"
        return True
    if isinstance(error, EntryNotFoundError):
        return False
    if isinstance(error, HfHubHTTPError):
        status = error.response.status_code
        # 403 on the storage side is an expired signed address: asking again gives a new one.
        return status in {403, 408, 429} or status >= 500  # noqa: PLR2004
    if isinstance(error, OSError) and error.errno is not None:
        return False  # disk full, read-only, permission: the same the next time
    return isinstance(error, (OSError, FetchError)) or "httpx" in type(error).__module__


def download(job: dict[str, Any], file: dict[str, Any], staging: Path) -> None:
    """One file into the staging folder, hashed; a wrong byte is a failed attempt."""
    from huggingface_hub import hf_hub_download  # noqa: PLC0415
    from tenacity import (  # noqa: PLC0415
        retry,
        retry_if_exception,
        stop_after_attempt,
        wait_exponential_jitter,
    )

    @retry(
        retry=retry_if_exception(transient),
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential_jitter(multiplier=0.5, max=30),
        reraise=True,
    )
    def attempt() -> None:
        hf_hub_download(
            job["repo"],
            file["path"],
            revision=job["commit"],
            local_dir=staging,
            endpoint=job["endpoint"],
            token=job["token"] or False,
        )
        if not good(staging / file["path"], file):
            (staging / file["path"]).unlink(missing_ok=True)
            raise FetchError(f"{file['path']}: the bytes that came are not those the Hub lists")

    attempt()


def fetch(job: dict[str, Any]) -> None:
    """The whole snapshot: what is missing is downloaded, what is there is proven."""
    target = Path(job["folder"])
    staging = target.parent / f".fetching-{job['commit']}"
    staging.mkdir(parents=True, exist_ok=True)
    for name in ("HF_HOME", "HF_HUB_CACHE"):
        os.environ[name] = str(staging / ".cache" / "home")
    # Plain HTTP: xet keeps gigabytes of buffers and stalls on some network file systems.
    os.environ.update(HF_HUB_DISABLE_XET="1", HF_HUB_DISABLE_TELEMETRY="1")

    before = proven(target)
    missing = []
    for file in job["files"]:
        there = target / file["path"]
        if unchanged(there, before.get(file["path"])) and there.stat().st_size == file["size"]:
            continue
        if not good(there, file) and not good(staging / file["path"], file):
            missing.append(file)
    total = sum(file["size"] for file in missing)
    print(
        f"fetch: {len(missing)} of {len(job['files'])} files, {total / 2**30:.2f} GiB", flush=True
    )
    started, done, said = time.monotonic(), 0, time.monotonic()
    with ThreadPoolExecutor(WORKERS) as pool:
        running = {pool.submit(download, job, file, staging): file for file in missing}
        for future in as_completed(running):
            if future.exception() is not None:
                pool.shutdown(cancel_futures=True)
            future.result()
            done += running[future]["size"]
            if time.monotonic() - said > PROGRESS_SECONDS or done == total:
                said = time.monotonic()
                rate = done / max(said - started, 0.001) / 1e6
                print(
                    f"fetch: {done / 2**30:.2f} of {total / 2**30:.2f} GiB, {rate:.0f} MB/s",
                    flush=True,
                )
    publish(job, staging, target)


def publish(job: dict[str, Any], staging: Path, target: Path) -> None:
    """Put proven files in place. The manifest comes last: it is what makes a folder complete."""
    shutil.rmtree(staging / ".cache", ignore_errors=True)
    listed = {file["path"] for file in job["files"]}
    whole = not target.exists()
    root = staging if whole else target
    if whole:
        for path in sorted(staging.rglob("*"), reverse=True):
            if path.is_file() and path.relative_to(staging).as_posix() not in listed:
                path.unlink()
    else:
        # Until the new manifest stands, the old one does not match the replaced files: a run that
        # is killed here leaves a folder that the next one proves again.
        for file in job["files"]:
            staged = staging / file["path"]
            if staged.is_file():
                (target / file["path"]).parent.mkdir(parents=True, exist_ok=True)
                staged.replace(target / file["path"])
    manifest = {
        "repo": job["repo"],
        "commit": job["commit"],
        "files": [
            {
                **file,
                "modified": round((root / file["path"]).stat().st_mtime, 6),
            }
            for file in job["files"]
        ],
    }
    (root / MANIFEST).parent.mkdir(exist_ok=True)
    draft = root / f"{MANIFEST}.new"
    draft.write_text(json.dumps(manifest))
    draft.replace(root / MANIFEST)
    os.sync()
    if whole:
        staging.rename(target)
    else:
        shutil.rmtree(staging, ignore_errors=True)
    print(f"fetch: complete, every byte hashed: {target}", flush=True)


def explain(error: BaseException) -> str:
    """An error as one sentence."""
    text = " ".join(str(error).split())[:600]
    return text if isinstance(error, FetchError) else f"{type(error).__name__}: {text}"


def main() -> int:
    """Read the job, hold the lock of its staging folder, fetch."""
    os.umask(0o022)
    job = json.load(sys.stdin)
    home = Path(job["folder"]).parent
    try:
        with (home / f".lock-{job['commit']}").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print("fetch: another run is fetching this snapshot; waiting for it", flush=True)
                fcntl.flock(lock, fcntl.LOCK_EX)
            fetch(job)
    except Exception as error:
        print(f"fetch failed: {explain(error)}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
