"""Fetch one commit of a model repository, completely or not at all.

Runs on the box as the user that will own the snapshot, by hand too::

    python -m operations.remote.weights.fetch < request.json

The request on standard input is a ``FetchRequest``, as JSON. Every file is hashed while it arrives
and put in place only when its digest is the listed one; the manifest is written last, and the
staging folder becomes the snapshot by one rename. Killed at any moment, the next run goes on at the
byte where this one was.
"""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

from inventory.common.fetch import FetchAccount, FetchRequest, ListedFile
from inventory.common.manifest import ProvenFile
from inventory.common.units import GIB, first_few
from operations.remote.weights.download import download
from operations.remote.weights.errors import FetchError, OneFileError, StoppedError, disk_sentence
from operations.remote.weights.lease import Lease
from operations.remote.weights.progress import FetchProgress, duration, line, read_progress
from operations.remote.weights.publish import publish, register
from operations.remote.weights.retry import FOR_ALL, UNAUTHORIZED, causes, sentence
from operations.remote.weights.reuse import neighbours, reuse
from operations.remote.weights.room import reserve_room
from operations.remote.weights.source import source_of
from operations.remote.weights.survey import Survey, is_complete, survey

_SMALL = 1 << 20
_KILLED = 143


def fetch(request: FetchRequest) -> None:
    """The whole snapshot, by this process or by the one that has the lease.

    + raises: FetchError or OSError: nothing half-trusted is left, and what was proven is kept
    """
    if is_complete(request):
        register(request.folder)
        print(f"fetch: complete already: {request.folder}", flush=True)
        return
    request.home.mkdir(parents=True, exist_ok=True)
    with leading(request) as lease:
        if lease is None:
            register(request.folder)
            print(f"fetch: complete, fetched by another box: {request.folder}", flush=True)
            return
        found = survey(request)
        started = time.monotonic()
        reused = take_over(request, found)
        arrived = bring(request, found, lease) if found.missing else 0
        seconds = time.monotonic() - started
        account = FetchAccount(arrived, reused, round(seconds, 1))
        problem = publish(request, found, lease.keep, account)
        rate = arrived / max(seconds, 0.001) / 1e6
        print(
            f"fetch: complete, every byte hashed: {request.folder} ({arrived / GIB:.2f} GiB in "
            f"{duration(seconds)}, {rate:.0f} MB/s)",
            flush=True,
        )
        if problem:
            print(f"fetch: an engine could not load it: {problem}", flush=True)


@contextlib.contextmanager
def leading(request: FetchRequest) -> Iterator[Lease | None]:
    """The lease, as soon as it is free; None if another process finished the work meanwhile."""
    lease = Lease(request.lease, request.limits)
    said = 0.0
    waited = False
    while not lease.take():
        waited = True
        if time.monotonic() - said >= request.limits.interval:
            said = time.monotonic()
            state = read_progress(request.progress)
            far = line(state) if state else "no progress to be seen yet"
            print(f"fetch: waiting for {lease.leader}: {far}", flush=True)
        time.sleep(min(1.0, request.limits.interval))
        if is_complete(request):
            yield None
            return
    signal.signal(signal.SIGTERM, lambda *_: _leave(lease))
    try:
        # Between two looks, the other one may have finished.
        yield None if waited and is_complete(request) else lease
    finally:
        lease.release()


def _leave(lease: Lease) -> None:
    """End at once. The next process uses all that was written, and need not wait."""
    with contextlib.suppress(OSError):
        lease.path.unlink()
    os._exit(_KILLED)


def take_over(request: FetchRequest, found: Survey) -> int:
    """Take what the box has elsewhere. Returns the bytes."""
    others = neighbours(request)
    bytes_taken = 0
    for file in list(found.missing):
        proven = reuse(request, file, others, found.stable)
        if proven is not None:
            _enter(request, found, proven)
            found.missing.remove(file)
            bytes_taken += file.size
    if bytes_taken:
        print(f"fetch: {bytes_taken / GIB:.2f} GiB were on this box already", flush=True)
    return bytes_taken


def bring(request: FetchRequest, found: Survey, lease: Lease) -> int:
    """Download what is missing, a few files at once. Returns the bytes that came.

    A file that fails does not keep the others from coming, unless they would fail the same way.
    """
    reserve_room(request, found.missing)
    source = source_of(request)

    # Small files first: a model's configuration is there early. Then files that are under way.
    def rank(file: ListedFile) -> tuple[bool, bool, int, str]:
        return file.size > _SMALL, not request.part(file).exists(), -file.size, file.path

    queue = sorted(found.missing, key=rank)
    total = sum(file.size for file in queue)
    stop = threading.Event()
    errors: dict[str, BaseException] = {}
    with (
        FetchProgress(request, total, len(queue)) as progress,
        ThreadPoolExecutor(request.limits.workers, thread_name_prefix="fetch") as pool,
    ):
        running: dict[Future[ProvenFile], ListedFile] = {
            pool.submit(
                download, request, file, source, progress, stop, lease.keep, found.stable
            ): file
            for file in queue
        }
        for future in as_completed(running):
            file = running[future]
            error = None if future.cancelled() else future.exception()
            if future.cancelled() or isinstance(error, StoppedError):
                continue
            if error is None:
                _enter(request, found, future.result())
                found.missing.remove(file)
                continue
            errors[file.path] = error
            silent = time.monotonic() - progress.last
            if for_all(error) or silent > request.limits.patience:
                stop.set()
                for other in running:
                    other.cancel()
    if errors:
        raise FetchError(_failure(request, found, errors))
    return progress.arrived


def for_all(error: BaseException) -> bool:
    """Whether the other files would fail the same way."""
    if isinstance(error, HfHubHTTPError):
        return isinstance(error, FOR_ALL) or error.response.status_code == UNAUTHORIZED
    if isinstance(error, OneFileError):
        return False
    refused = isinstance(error, OSError) and error.errno is not None
    return refused or isinstance(error, (FetchError, OfflineModeIsEnabled))


def _failure(request: FetchRequest, found: Survey, errors: dict[str, BaseException]) -> str:
    kept = len(found.placed) + len(found.staged)
    told = [
        explain(error, request.folder)
        if for_all(error) or isinstance(error, OneFileError)
        else f"{path}: {explain(error, request.folder)}"
        for path, error in sorted(errors.items())
    ]
    unique = list(dict.fromkeys(told))
    few = first_few(unique, "; ", "; and {} more files")
    return f"{few} ({kept} of {len(request.files)} files are whole and kept)"


def _enter(request: FetchRequest, found: Survey, file: ProvenFile) -> None:
    """Write down that a file in the staging folder is proven."""
    found.staged[file.path] = file
    request.proven.parent.mkdir(parents=True, exist_ok=True)
    with request.proven.open("a") as stream:
        stream.write(json.dumps(file.to_json()) + "\n")


def explain(error: BaseException, folder: Path) -> str:
    """An error as one sentence."""
    if isinstance(error, OSError) and not isinstance(error, HfHubHTTPError):
        for one in causes(error):
            told = disk_sentence(one, folder) if isinstance(one, OSError) else None
            if told:
                return told
    return sentence(error)


def read_request(text: str) -> FetchRequest:
    """The request in a JSON text, with the token from there or from systemd.

    + raises: FetchError
    """
    try:
        request = FetchRequest.from_json(json.loads(text))
    except ValueError as error:
        raise FetchError(f"the request is malformed: {error}") from None
    # systemd holds credentials for this process alone.
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if request.token or folder is None:
        return request
    with contextlib.suppress(OSError):
        return replace(request, token=Path(folder, "token").read_text().strip() or None)
    return request


def main() -> int:
    """Read the request and fetch."""
    os.umask(0o022)
    folder = Path("/")
    try:
        request = read_request(sys.stdin.read())
        folder = request.folder
        fetch(request)
    except Exception as error:
        print(f"fetch failed: {explain(error, folder)}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
