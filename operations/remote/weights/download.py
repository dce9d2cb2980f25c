"""One file: taken up where it broke off, hashed while it arrives, placed once it is proven."""

import threading
import time
from collections.abc import Callable

from inventory.common.fetch import FetchRequest, ListedFile
from inventory.common.manifest import ProvenFile
from operations.remote.weights import errors
from operations.remote.weights.partial import PartialFile
from operations.remote.weights.progress import FetchProgress
from operations.remote.weights.retry import policy, sentence
from operations.remote.weights.source import Source
from operations.remote.weights.survey import proven_file

STRIDE = 256 << 10
"""Bytes that count as progress. Fewer do not: a trickle would feed the patience for ever."""

STRIKES = 3
SUSPECTS = {
    errors.CorruptError: "suspect a proxy on the way, the network card or the memory of this box "
    "(memtest), or a mirror that holds other bytes",
    errors.PortalError: "sign in to the network, or let the box through to the storage of the Hub",
}


def download(
    request: FetchRequest,
    file: ListedFile,
    source: Source,
    progress: FetchProgress,
    stop: threading.Event,
    keep: Callable[[], None],
    stable: bool,
) -> ProvenFile:
    """One file into the staging folder.

    + stop: set when the whole fetch ends
    + keep: raises where the lease is lost; called before the file is put in its place
    + returns: the file, proven
    """
    if sent := request.sent(file):
        # Hashed where it is to stay: no second copy of a model that was just sent here.
        sent.replace(request.part(file))
    part = PartialFile(request.part(file), file)
    progress.had(part.size)
    last, mark = time.monotonic(), part.whole
    strikes = 0

    def once() -> None:
        nonlocal last, mark
        # A file that is longer than one answer may be comes in several.
        while part.whole < file.size:
            with source.read(file, part.whole) as body:
                if body.start != part.whole:
                    progress.had(-part.whole)
                    part.restart()
                for chunk in body.chunks:
                    if stop.is_set():
                        raise errors.StoppedError(file.path)
                    part.take(chunk[: file.size - part.whole])
                    progress.came(len(chunk))
                    if abs(part.whole - mark) >= STRIDE:
                        last, mark = time.monotonic(), part.whole
                    if file.path in progress.trouble:
                        progress.recovered(file.path)
            if part.whole < body.end:
                raise errors.AgainError(
                    f"{file.path}: {source.name} sent {part.whole} of {file.size} bytes and said "
                    "that this was all"
                )
        part.prove()

    def attempt() -> None:
        nonlocal strikes
        try:
            once()
        except (errors.CorruptError, errors.PortalError) as error:
            # A part that an earlier process left may have lost bytes in a power cut: that says
            # nothing of the network or of this machine's memory.
            strikes += 0 if part.resumed else 1
            if isinstance(error, errors.CorruptError):
                progress.had(-part.whole)
                part.restart()
            if strikes >= STRIKES:
                raise errors.OneFileError(
                    f"{error}, {strikes} times; {SUSPECTS[type(error)]}"
                ) from None
            raise

    def stumble(error: BaseException, seconds: float) -> None:
        progress.stumbled(file.path, f"{sentence(error)}; again in {seconds:.0f} s")

    try:
        policy(source.url, request.limits.patience, lambda: last, stop, stumble)(attempt)
        keep()
        place = request.staging / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        part.path.replace(place)
    finally:
        part.close()
    progress.finished(file.path)
    return proven_file(file, place, stable)
