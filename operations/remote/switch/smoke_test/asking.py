"""One question to a served model, answered within a time or not at all."""

from __future__ import annotations

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
class Answer:
    """What came back.

    + status: of HTTP
    + text: the body
    + seconds: from the connection to the last byte
    """

    status: int
    text: str
    seconds: float

    @property
    def value(self) -> Any:
        """The body as JSON.

        + raises: ValueError where it is none
        """
        return json.loads(self.text)

    @property
    def said(self) -> str:
        """The message of an error, or the beginning of the body."""
        try:
            message = self.value["error"]["message"]
        except (ValueError, KeyError, TypeError):
            message = self.text
        return " ".join(str(message).split())[:300]


def post(url: str, path: str, body: Mapping[str, Any], seconds: float) -> Answer:
    """Ask, with the key of ``VLLM_API_KEY`` where this environment has one.

    No proxy of the environment plays a part: the box asks itself.

    + url: base URL, http only
    + seconds: for the whole exchange, however slowly the bytes come
    + raises: OSError, TimeoutError among them; http.client.HTTPException for what is no HTTP
    """
    began = time.monotonic()
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=seconds)
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("VLLM_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    try:
        connection.request("POST", place.path.rstrip("/") + path, json.dumps(body), headers)
        socket = connection.sock
        response = connection.getresponse()
        parts: list[bytes] = []
        while sum(map(len, parts)) < LARGEST:
            left = began + seconds - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            socket.settimeout(left)
            part = response.read1(65536)
            if not part:
                break
            parts.append(part)
    finally:
        connection.close()
    text = b"".join(parts).decode(errors="replace")
    return Answer(response.status, text, time.monotonic() - began)
