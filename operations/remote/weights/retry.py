"""When to try again, for how long, and what an error means in a sentence.

The policy is for one file. It ends by the time without a byte, not by a count of attempts: a file
of many gigabytes may well lose its connection more often than any count allows.
"""

import email.utils
import random
import threading
import time
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import httpx2
from huggingface_hub import errors as hub
from tenacity import RetryCallState, Retrying, retry_if_exception
from tenacity.nap import sleep_using_event

from operations.remote.weights.errors import AgainError, FetchError

FOR_ALL = (
    hub.GatedRepoError,
    hub.RepositoryNotFoundError,
    hub.RevisionNotFoundError,
    hub.DisabledRepoError,
)
"""Answers about the repository: the next file would get the same one."""

FINAL = (
    *FOR_ALL,
    FetchError,
    hub.OfflineModeIsEnabled,
    httpx2.ProxyError,
    hub.BadRequestError,
    hub.RemoteEntryNotFoundError,
)
"""Answers that would be the same again."""

PASSING = {408, 425, 429, 500, 502, 503, 504}
"""Statuses of a server that has trouble, not an opinion."""

FORBIDDEN = 403
UNAUTHORIZED = 401

BAD_CERTIFICATE = "CERTIFICATE_VERIFY_FAILED"

FIRST_WAIT = 0.5
LONGEST_BACKOFF = 30.0
LONGEST_WAIT = 300.0
"""Seconds: the most that a server may ask for."""


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error and what it came from: the client wraps a refused connection in "not found"."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def is_passing(error: BaseException, origin: str) -> bool:
    """Whether another attempt may succeed.

    + origin: URL of the Hub: a 403 of any other host is a signed address that ran out
    """
    if isinstance(error, AgainError):
        return True
    if isinstance(error, FINAL) or BAD_CERTIFICATE in str(error):
        return False
    if isinstance(error, hub.HfHubHTTPError):
        status = error.response.status_code
        elsewhere = urlsplit(str(error.response.url)).netloc != urlsplit(origin).netloc
        return status in PASSING or (status == FORBIDDEN and elsewhere)
    if isinstance(error, (hub.LocalEntryNotFoundError, hub.FileMetadataError)):
        return any(is_passing(one, origin) for one in list(causes(error))[1:])
    return isinstance(error, httpx2.TransportError)


def wanted_wait(error: BaseException | None) -> float | None:
    """Seconds that the server asked to wait, or None.

    ``Retry-After`` in seconds or as a date; else ``ratelimit: …;r=0;t=55``, the Hub's own way.
    """
    response = getattr(error, "response", None)
    if response is None:
        return None
    after = response.headers.get("Retry-After", "").strip()
    if after.isdigit():
        return min(float(after), LONGEST_WAIT)
    if after:
        try:
            date = email.utils.parsedate_to_datetime(after).timestamp()
        except ValueError:
            return None
        return min(max(0.0, date - time.time()), LONGEST_WAIT)
    fields = dict(
        part.strip().split("=", 1)
        for part in response.headers.get("ratelimit", "").split(";")
        if "=" in part
    )
    if fields.get("r") == "0" and fields.get("t", "").isdigit():
        return min(float(fields["t"]), LONGEST_WAIT)
    return None


def backoff(fruitless: int) -> float:
    """Seconds to wait after attempts that brought nothing, the first not counted: they double."""
    seconds: float = min(FIRST_WAIT * 2 ** min(fruitless, 16), LONGEST_BACKOFF)
    return seconds * random.uniform(1, 1.5)  # noqa: S311 - no secret


def policy(
    origin: str,
    patience: float,
    last_byte: Callable[[], float],
    stop: threading.Event,
    note: Callable[[BaseException, float], None],
) -> Retrying:
    """How often one file is tried.

    + patience: seconds without a byte of this file
    + last_byte: when its last byte came, or the first attempt began (monotonic seconds)
    + stop: set when the whole fetch ends: then nothing waits and nothing is tried again
    + note: takes the error of each failed attempt, and the seconds until the next one
    """
    fruitless = 0
    seen = last_byte()

    def wait(state: RetryCallState) -> float:
        nonlocal fruitless, seen
        # An attempt that brought bytes does not count as a failure in a row, however it ended.
        fruitless = fruitless + 1 if last_byte() == seen else 0
        seen = last_byte()
        error = state.outcome.exception() if state.outcome else None
        asked = wanted_wait(error)
        return backoff(fruitless) if asked is None else asked + 0.1

    def over(_: RetryCallState) -> bool:
        return stop.is_set() or time.monotonic() - last_byte() > patience

    def tell(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        if error is not None:
            note(error, state.upcoming_sleep)

    return Retrying(
        retry=retry_if_exception(lambda error: is_passing(error, origin)),
        wait=wait,
        stop=over,
        before_sleep=tell,
        sleep=sleep_using_event(stop),
        reraise=True,
    )


def sentence(error: BaseException) -> str:
    """An error of the Hub or of the way there, as one sentence with what to do."""
    plain = " ".join(str(error).split())[:300]
    if isinstance(error, FetchError):
        return plain
    for one in causes(error):
        for kind, told in SENTENCES.items():
            if isinstance(one, kind):
                return told
        if isinstance(one, hub.HfHubHTTPError):
            return _status_sentence(one)
    if BAD_CERTIFICATE in plain:
        return (
            "the certificate of the Hub, or of a proxy that inspects traffic, is not trusted on "
            "the box: install the site's CA there and set SSL_CERT_FILE in /etc/environment"
        )
    return f"{type(error).__name__}: {plain}"


SENTENCES: dict[type[BaseException], str] = {
    hub.GatedRepoError: "the repository is gated: accept its licence on the model's page, and set "
    "HF_TOKEN to a token of that account",
    hub.RepositoryNotFoundError: "the Hub has no such repository, or a private one: set HF_TOKEN",
    hub.RevisionNotFoundError: "the Hub does not have this commit any more: its author rewrote "
    "history; resolve the revision anew (--data upgrade=true)",
    hub.RemoteEntryNotFoundError: "the Hub lists this file and answers 404 for it",
    hub.OfflineModeIsEnabled: "HF_HUB_OFFLINE is set on the box: nothing can be fetched",
    httpx2.ProxyError: "the proxy refuses: correct HTTPS_PROXY or NO_PROXY in /etc/environment",
}
"""In this order: a gated repository is a repository that was not found, to the client."""


def _status_sentence(error: hub.HfHubHTTPError) -> str:
    status = error.response.status_code
    host = urlsplit(str(error.response.url)).netloc
    if status == UNAUTHORIZED:
        return f"{host} does not accept the token, or wants one (401): set HF_TOKEN to a valid one"
    return f"{host} answers {status}"
