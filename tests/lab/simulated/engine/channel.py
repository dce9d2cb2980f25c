"""Messages between two processes of the stub: one JSON object a line over a socket pair."""

from __future__ import annotations

import json
import select
import socket
from typing import Any

Message = dict[str, Any]


class Channel:
    """One end."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._buffer = b""

    def send(self, message: Message) -> None:
        """Send. Nothing happens if the other side is gone: the next ``receive`` tells."""
        try:
            self._end.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            return

    def receive(self, timeout: float) -> Message | None:
        """The next message; None if none came in time. Raises EOFError when the peer is gone."""
        while b"\n" not in self._buffer:
            readable, _, _ = select.select([self._end], [], [], timeout)
            if not readable:
                return None
            try:
                part = self._end.recv(65536)
            except ConnectionError:
                part = b""
            if not part:
                raise EOFError
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: Message = json.loads(line)
        return message

    def close(self) -> None:
        """Close this end."""
        self._end.close()


def channel_pair() -> tuple[Channel, Channel]:
    """Both ends."""
    one, other = socket.socketpair()
    return Channel(one), Channel(other)
