"""One question to a server on this box: answered in time, or not at all.

No proxy of the environment plays a part: the box asks itself.
"""

import http.client
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

LARGEST = 4 << 20
"""Bytes of an answer that are read: a bounded completion takes a few thousand."""


@dataclass(frozen=True)
class Reply:
    """What came back.

    + status: of HTTP
    + body: the part that was read
    + seconds: from the connection to the last byte
    """

    status: int
    body: bytes
    seconds: float

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode(errors="replace")

    @property
    def value(self) -> Any:
        """The body as JSON.

        + raises: ValueError where it is something else
        """
        return json.loads(self.text)

    @property
    def said(self) -> str:
        """The message of an error, or the beginning of the body."""
        try:
            message = self.value["error"]["message"]
        except (ValueError, KeyError, TypeError, RecursionError):
            message = self.text
        return " ".join(str(message).split())[:300]


def ask(
    url: str, body: Mapping[str, Any] | None = None, *, seconds: float, most: int = LARGEST
) -> Reply:
    """Ask, and read the answer. Redirects are not followed.

    + url: http only
    + body: is posted, with the key of ``VLLM_API_KEY`` where this environment has one
    + seconds: for the whole exchange, however slowly the bytes come
    + most: bytes of the answer that are read
    + raises: OSError, TimeoutError among them; http.client.HTTPException for what is not HTTP;
      ValueError for what is not a URL
    """
    began = time.monotonic()
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=seconds)
    method, headers, content = "GET", {}, None
    if body is not None:
        method, headers["Content-Type"], content = "POST", "application/json", json.dumps(body)
        if key := os.environ.get("VLLM_API_KEY"):
            headers["Authorization"] = f"Bearer {key}"
    try:
        connection.request(method, place.path or "/", content, headers)
        socket = connection.sock
        response = connection.getresponse()
        found = b""
        while len(found) < most:
            left = began + seconds - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            socket.settimeout(left)
            part = response.read1(min(65536, most - len(found)))
            if not part:
                break
            found += part
    finally:
        connection.close()
    return Reply(response.status, found, time.monotonic() - began)


def get(url: str, seconds: float, most: int = LARGEST) -> tuple[int | None, bytes]:
    """Status and body of an answer; no status where none came."""
    try:
        reply = ask(url, seconds=seconds, most=most)
    except (OSError, ValueError, http.client.HTTPException):
        return None, b""
    return reply.status, reply.body
