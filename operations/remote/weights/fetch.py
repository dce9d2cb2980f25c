"""Fetch one commit of a model repository, completely or not at all.

Runs on the box as the user that will own the snapshot, by hand too::

    python -m operations.remote.weights.fetch < job.json

The job on standard input is what ``job.py`` describes. Every file is hashed while it arrives and
put in place only when its digest is the listed one; the manifest is written last, and the staging
folder becomes the snapshot by one rename. Killed at any moment, the next run goes on at the byte
where this one was.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

from operations.remote.weights.download import download
from operations.remote.weights.errors import FetchError, OneFileError, StoppedError, disk_sentence
from operations.remote.weights.job import File, Job, read_job
from operations.remote.weights.lease import Lease
from operations.remote.weights.manifest import Record
from operations.remote.weights.progress import GIB, Progress, duration, line, read_progress
from operations.remote.weights.publish import publish, register
from operations.remote.weights.retry import FOR_ALL, UNAUTHORIZED, causes, sentence
from operations.remote.weights.reuse import neighbours, reuse
from operations.remote.weights.room import require_room
from operations.remote.weights.source import source_of
from operations.remote.weights.survey import Survey, is_complete, survey

SMALL = 1 << 20
NAMED = 3
KILLED = 143


def fetch(job: Job) -> None:
    """The whole snapshot, by this process or by the one that has the lease.

    + raises: FetchError or OSError: nothing half-trusted is left, and what was proven is kept
    """
    if is_complete(job):
        register(job.folder)
        print(f"fetch: complete already: {job.folder}", flush=True)
        return
    job.home.mkdir(parents=True, exist_ok=True)
    with leading(job) as lease:
        if lease is None:
            register(job.folder)
            print(f"fetch: complete, fetched by another box: {job.folder}", flush=True)
            return
        found = survey(job)
        started = time.monotonic()
        reused = take_over(job, found)
        arrived = bring(job, found, lease) if found.missing else 0
        seconds = time.monotonic() - started
        account = {"downloaded": arrived, "reused": reused, "seconds": round(seconds, 1)}
        problem = publish(job, found, lease.keep, account)
        rate = arrived / max(seconds, 0.001) / 1e6
        print(
            f"fetch: complete, every byte hashed: {job.folder} ({arrived / GIB:.2f} GiB in "
            f"{duration(seconds)}, {rate:.0f} MB/s)",
            flush=True,
        )
        if problem:
            print(f"fetch: an engine could not load it: {problem}", flush=True)


@contextlib.contextmanager
def leading(job: Job) -> Iterator[Lease | None]:
    """The lease, as soon as it is free; None where another one finished the work meanwhile."""
    lease = Lease(job.lease, job.limits)
    said = 0.0
    waited = False
    while not lease.take():
        waited = True
        if time.monotonic() - said >= job.limits.interval:
            said = time.monotonic()
            state = read_progress(job.progress)
            far = line(state) if state else "no progress to be seen yet"
            print(f"fetch: waiting for {lease.leader}: {far}", flush=True)
        time.sleep(min(1.0, job.limits.interval))
        if is_complete(job):
            yield None
            return
    signal.signal(signal.SIGTERM, lambda *_: _leave(lease))
    try:
        # Between two looks, the other one may have finished.
        yield None if waited and is_complete(job) else lease
    finally:
        lease.release()


def _leave(lease: Lease) -> None:
    """End at once. All that was written is of use to the next one, who need not wait."""
    with contextlib.suppress(OSError):
        lease.path.unlink()
    os._exit(KILLED)


def take_over(job: Job, found: Survey) -> int:
    """Take what the box has elsewhere. Returns the bytes."""
    others = neighbours(job)
    bytes_taken = 0
    for file in list(found.missing):
        record = reuse(job, file, others, found.stable)
        if record is not None:
            _enter(job, found, file, record)
            found.missing.remove(file)
            bytes_taken += file.size
    if bytes_taken:
        print(f"fetch: {bytes_taken / GIB:.2f} GiB were on this box already", flush=True)
    return bytes_taken


def bring(job: Job, found: Survey, lease: Lease) -> int:
    """Download what is missing, a few files at once. Returns the bytes that came.

    A file that fails does not keep the others from coming, unless they would fail the same way.
    """
    require_room(job, found.missing)
    source = source_of(job)
    # Small files first: a model's configuration is there early. Then whatever is under way.
    order = sorted(
        found.missing,
        key=lambda file: (file.size > SMALL, not job.part(file).exists(), -file.size, file.path),
    )
    total = sum(file.size for file in order)
    stop = threading.Event()
    errors: dict[str, BaseException] = {}
    with (
        Progress(job, total, len(order)) as progress,
        ThreadPoolExecutor(job.limits.workers, thread_name_prefix="fetch") as pool,
    ):
        running: dict[Future[Record], File] = {
            pool.submit(download, job, file, source, progress, stop, lease.keep, found.stable): file
            for file in order
        }
        for future in as_completed(running):
            file = running[future]
            error = None if future.cancelled() else future.exception()
            if future.cancelled() or isinstance(error, StoppedError):
                continue
            if error is None:
                _enter(job, found, file, future.result())
                found.missing.remove(file)
                continue
            errors[file.path] = error
            silent = time.monotonic() - progress.last
            if for_all(error) or silent > job.limits.patience:
                stop.set()
                for other in running:
                    other.cancel()
    if errors:
        raise FetchError(_failure(job, found, errors))
    return progress.arrived


def for_all(error: BaseException) -> bool:
    """Whether the other files would fail the same way."""
    if isinstance(error, HfHubHTTPError):
        return isinstance(error, FOR_ALL) or error.response.status_code == UNAUTHORIZED
    if isinstance(error, OneFileError):
        return False
    refused = isinstance(error, OSError) and error.errno is not None
    return refused or isinstance(error, (FetchError, OfflineModeIsEnabled))


def _failure(job: Job, found: Survey, errors: dict[str, BaseException]) -> str:
    kept = len(found.placed) + len(found.staged)
    told = [
        explain(error, job.folder)
        if for_all(error) or isinstance(error, OneFileError)
        else f"{path}: {explain(error, job.folder)}"
        for path, error in sorted(errors.items())
    ]
    unique = list(dict.fromkeys(told))
    more = f"; and {len(unique) - NAMED} more files" if unique[NAMED:] else ""
    return (
        f"{'; '.join(unique[:NAMED])}{more} ({kept} of {len(job.files)} files are whole and kept)"
    )


def _enter(job: Job, found: Survey, file: File, record: Record) -> None:
    """Write down that a file in the staging folder is proven."""
    found.staged[file.path] = record
    job.journal.parent.mkdir(parents=True, exist_ok=True)
    with job.journal.open("a") as stream:
        stream.write(json.dumps(vars(record)) + "\n")


def explain(error: BaseException, folder: Path) -> str:
    """An error as one sentence."""
    if isinstance(error, OSError) and not isinstance(error, HfHubHTTPError):
        for one in causes(error):
            told = disk_sentence(one, folder) if isinstance(one, OSError) else None
            if told:
                return told
    return sentence(error)


def main() -> int:
    """Read the job and fetch."""
    os.umask(0o022)
    folder = Path("/")
    try:
        content: dict[str, Any] = json.load(sys.stdin)
        job = read_job(content)
        folder = job.folder
        fetch(job)
    except Exception as error:
        print(f"fetch failed: {explain(error, folder)}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
