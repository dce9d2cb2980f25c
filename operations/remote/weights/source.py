"""Where bytes come from: a Hub, by ranges over plain HTTP, or a folder on the box.

The client's own download function keeps nothing across processes and hashes nothing: the body is
read here. Addresses, headers, errors and the connection pool are huggingface_hub's.
"""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx2
from huggingface_hub import get_hf_file_metadata, get_session, hf_hub_url
from huggingface_hub.utils._headers import build_hf_headers
from huggingface_hub.utils._http import hf_raise_for_status

from inventory.common.fetch import FetchRequest, ListedFile
from operations.remote.weights import errors
from operations.remote.weights.hashing import CHUNK

PARTIAL = 206
NOT_SATISFIABLE = 416


@dataclass(frozen=True)
class Body:
    """Bytes of a file on their way.

    + start: the position of the first byte: where it was asked for, or 0
    + end: the position behind the last byte that was asked for
    + chunks: the bytes; fewer than that where the answer was short
    """

    start: int
    end: int
    chunks: Iterator[bytes]


class HubSource:
    """The Hub, or a mirror of it.

    The token goes only to the Hub's own origin. Storage has signed addresses: it would refuse the
    token, or record it.
    """

    def __init__(self, request: FetchRequest) -> None:
        self.request = request
        self.limits = request.limits
        # get_session's client has no timeout of its own.
        self.timeout = httpx2.Timeout(request.limits.silence)

    @property
    def url(self) -> str:
        """The Hub's own address."""
        return hf_hub_url(self.request.repo, "x", endpoint=self.request.endpoint)

    @property
    def name(self) -> str:
        """The Hub's host."""
        return urlsplit(self.url).netloc

    @contextlib.contextmanager
    def read(self, file: ListedFile, start: int) -> Iterator[Body]:
        """Ask the Hub where the file is, and open it there.

        + start: the byte to begin with; the body may begin earlier
        """
        address = hf_hub_url(
            self.request.repo,
            file.path,
            revision=self.request.commit,
            endpoint=self.request.endpoint,
        )
        location = self._locate(address, file)
        end = min(file.size, start + self.limits.longest)
        token = self.request.token if _same(address, location) else None
        headers = build_hf_headers(token=token or False)
        headers["Accept-Encoding"] = "identity"
        if start > 0 or end < file.size:
            headers["Range"] = f"bytes={start}-{end - 1}"
        with get_session().stream(
            "GET", location, headers=headers, timeout=self.timeout, follow_redirects=True
        ) as response:
            if response.status_code == NOT_SATISFIABLE:
                raise errors.CorruptError(f"{file.path}: storage has less than {start} bytes of it")
            if response.is_error:
                response.read()
            hf_raise_for_status(response)
            begin = self._begin(response, file, start)
            whole = response.status_code != PARTIAL
            yield Body(begin, file.size if whole else end, self._chunks(response, file))

    def _locate(self, address: str, file: ListedFile) -> str:
        """Where the file's bytes are, after a look at what the Hub says of them."""
        metadata = get_hf_file_metadata(
            address,
            token=self.request.token or False,
            timeout=self.limits.silence,
            endpoint=self.request.endpoint,
        )
        if metadata.commit_hash is None:
            raise errors.FetchError(
                f"{self.name} answers, but not as a Hub does (no X-Repo-Commit header): a captive "
                "portal or a proxy stands in between, or the endpoint is wrong; open it in a "
                "browser on the box's network, or correct model.endpoint"
            )
        if metadata.size is not None and metadata.size != file.size:
            raise errors.OneFileError(
                f"{file.path}: {self.name} has {metadata.size} bytes where {file.size} are listed: "
                "the mirror is of another commit, or damaged"
            )
        return urljoin(address, metadata.location)

    def _begin(self, response: httpx2.Response, file: ListedFile, start: int) -> int:
        """The position of the answer's first byte; refuses an answer that is not the file."""
        if response.status_code == PARTIAL:
            unit, _, span = response.headers.get("Content-Range", "").partition(" ")
            if unit != "bytes" or span.partition("-")[0] != str(start):
                raise errors.CorruptError(f"{file.path}: {response.url.host} sends another range")
            return start
        web_page = response.headers.get("Content-Type", "").startswith("text/html")
        if web_page and response.headers.get("Content-Length", "") != str(file.size):
            raise errors.PortalError(
                f"{file.path}: {response.url.host} sends a web page in place of the file: a "
                "captive portal or a proxy stands in between"
            )
        return 0

    def _chunks(self, response: httpx2.Response, file: ListedFile) -> Iterator[bytes]:
        """The body, watched: too slow counts as silent.

        huggingface_hub's timeout is between two reads only: 100 bytes a second pass it for ever.
        """
        encoded = response.headers.get("Content-Encoding", "identity") != "identity"
        seen, since = 0, time.monotonic()
        for chunk in response.iter_bytes() if encoded else response.iter_raw():
            yield chunk
            seen += len(chunk)
            now = time.monotonic()
            if now - since >= self.limits.window:
                if seen < self.limits.floor * (now - since):
                    raise errors.StalledError(
                        f"{file.path}: {seen / (now - since) / 1000:.1f} kB/s over "
                        f"{now - since:.0f} s: the connection is given up"
                    )
                seen, since = 0, now


class FolderSource:
    """A folder that holds the files by their paths: a disk that was carried in, a network mount."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = ""
        self.name = str(folder)

    @contextlib.contextmanager
    def read(self, file: ListedFile, start: int) -> Iterator[Body]:
        """Open the file."""
        path = self.folder / file.path
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            raise errors.OneFileError(f"{file.path} is not in {self.folder}") from None
        if size != file.size:
            raise errors.OneFileError(
                f"{path} has {size} bytes where {file.size} are listed: it is of another commit, "
                "or was not copied to its end"
            )
        with path.open("rb", buffering=0) as stream:
            stream.seek(start)
            yield Body(start, file.size, iter(lambda: stream.read(CHUNK), b""))


Source = HubSource | FolderSource
"""Where files come from. Its ``url`` is empty where no network is asked."""


def source_of(request: FetchRequest) -> Source:
    """Where a request's files come from."""
    if request.source is None:
        return HubSource(request)
    if not request.source.is_dir():
        raise errors.FetchError(
            f"{request.source} is not a folder on this box: correct model.source"
        )
    return FolderSource(request.source)


def _same(one: str, other: str) -> bool:
    """Whether two addresses have one origin."""
    first, second = urlsplit(one), urlsplit(other)
    return (first.scheme, first.netloc.lower()) == (second.scheme, second.netloc.lower())
