"""The policy alone: what passes, how long a server may ask to wait, and when it is over."""

import email.utils
import threading
import time
from typing import Any

import httpx2
import pytest
from huggingface_hub.errors import (
    BadRequestError,
    FileMetadataError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from hypothesis import given
from hypothesis import strategies as st

from operations.remote.weights.errors import AgainError, FetchError, StalledError
from operations.remote.weights.retry import (
    LONGEST_BACKOFF,
    LONGEST_WAIT,
    backoff,
    is_passing,
    policy,
    sentence,
    wanted_wait,
)

HUB = "https://hub.example/o/n/resolve/main/x"
CDN = "https://cdn.example/x"


def answer(status: int, url: str = HUB, **headers: str) -> httpx2.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.Response(status, headers=named, request=httpx2.Request("GET", url))


def http(status: int, url: str = HUB, kind: Any = HfHubHTTPError, **headers: str) -> Exception:
    error: Exception = kind("no", response=answer(status, url, **headers))
    return error


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_trouble_of_a_server_passes(status: int) -> None:
    assert is_passing(http(status), HUB)
    assert is_passing(http(status, CDN), HUB)


@pytest.mark.parametrize("status", [400, 401, 404, 410, 416, 451, 501])
def test_an_opinion_of_a_server_stays(status: int) -> None:
    assert not is_passing(http(status), HUB)
    assert not is_passing(http(status, CDN), HUB)


def test_403_is_an_expired_signature_anywhere_but_at_the_hub() -> None:
    assert is_passing(http(403, CDN), HUB)
    assert not is_passing(http(403), HUB)


@pytest.mark.parametrize(
    "error",
    [
        httpx2.ConnectError("refused"),
        httpx2.ReadError("reset"),
        httpx2.RemoteProtocolError("FIN"),
        httpx2.ReadTimeout("stall"),
        AgainError("short"),
        StalledError("trickle"),
        caused(LocalEntryNotFoundError("x"), httpx2.ConnectError("refused")),
        caused(FileMetadataError("x"), http(503)),
    ],
)
def test_the_network_passes(error: Exception) -> None:
    assert is_passing(error, HUB)


@pytest.mark.parametrize(
    "error",
    [
        http(403, kind=GatedRepoError),
        http(401, kind=RepositoryNotFoundError),
        http(404, kind=RevisionNotFoundError),
        http(404, kind=RemoteEntryNotFoundError),
        http(400, CDN, kind=BadRequestError),
        OfflineModeIsEnabled("off"),
        httpx2.ProxyError("407"),
        httpx2.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"),
        FetchError("portal"),
        LocalEntryNotFoundError("x"),
        OSError(28, "full"),
        ValueError("x"),
    ],
)
def test_the_rest_stays(error: Exception) -> None:
    assert not is_passing(error, HUB)
    told = sentence(error)
    assert told
    assert "\n" not in told


class TestWait:
    def test_as_the_server_says(self) -> None:
        date = email.utils.format_datetime(
            email.utils.localtime().fromtimestamp(time.time() + 20).astimezone()
        )
        assert wanted_wait(http(429, Retry_After="7")) == 7
        assert 17 <= (wanted_wait(http(503, Retry_After=date)) or 0) <= 20
        assert wanted_wait(http(429, ratelimit='"api";r=0;t=55')) == 55

    def test_not_longer_than_anybody_would(self) -> None:
        assert wanted_wait(http(429, Retry_After="86400")) == LONGEST_WAIT

    @pytest.mark.parametrize("text", ["", "soon", "-5", "1.5"])
    def test_nonsense_is_no_wait(self, text: str) -> None:
        assert wanted_wait(http(429, Retry_After=text)) is None

    def test_what_has_no_answer_says_nothing(self) -> None:
        assert wanted_wait(httpx2.ReadError("x")) is None
        assert wanted_wait(None) is None
        assert wanted_wait(http(429, ratelimit='"api";r=5;t=55')) is None

    @given(st.text(max_size=40).filter(lambda text: text.isascii() and text.isprintable()))
    def test_whatever_it_says_nothing_breaks(self, text: str) -> None:
        for error in (http(429, Retry_After=text), http(429, ratelimit=text)):
            wait = wanted_wait(error)
            assert wait is None or 0 <= wait <= LONGEST_WAIT

    @given(st.integers(0, 10_000))
    def test_backoff_has_bounds(self, fruitless: int) -> None:
        assert 0.5 <= backoff(fruitless) <= 1.5 * LONGEST_BACKOFF


class TestPolicy:
    def run(self, failures: int, patience: float, bytes_come: bool) -> int:
        """Attempts at a file that fails some times, each after a tenth of a second."""
        last = time.monotonic()
        tries = 0

        def attempt() -> None:
            nonlocal tries, last
            tries += 1
            time.sleep(0.02)
            if bytes_come:
                last = time.monotonic()
            if tries <= failures:
                raise AgainError("x")

        retrying = policy(HUB, patience, lambda: last, threading.Event(), lambda *_: None)
        # The waits are what they are; only their length is cut.
        retrying.wait = lambda _: 0.02
        retrying(attempt)
        return tries

    def test_progress_keeps_it_going_for_ever(self) -> None:
        assert self.run(failures=20, patience=0.15, bytes_come=True) == 21

    def test_without_a_byte_it_ends_by_the_clock(self) -> None:
        began = time.monotonic()
        with pytest.raises(AgainError):
            self.run(failures=10_000, patience=0.3, bytes_come=False)
        assert 0.3 <= time.monotonic() - began < 60

    def test_the_end_of_the_fetch_ends_every_wait(self) -> None:
        stop = threading.Event()
        threading.Timer(0.1, stop.set).start()
        began = time.monotonic()

        def attempt() -> None:
            raise http(429, Retry_After="60")

        retrying = policy(HUB, 600, lambda: began, stop, lambda *_: None)
        with pytest.raises(HfHubHTTPError):
            retrying(attempt)
        assert time.monotonic() - began < 30
