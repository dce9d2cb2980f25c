"""Sending a file, whole or a range of it, truthfully or with a fault."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import struct
import termios
import time
from collections.abc import Mapping
from typing import BinaryIO

from tests.lab.hub.faults import Fault
from tests.lab.hub.handler import Handler
from tests.lab.hub.repository import Entry

CHUNK = 256 * 1024
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


def wanted_range(header: str | None, size: int) -> tuple[int, int] | None:
    """The first byte and the byte after the last that a Range header asks for.

    None where the whole file is meant: no header, or one that a server may ignore. Raises
    ValueError where nothing of the file is in the range (416).

    >>> wanted_range("bytes=10-19", 100), wanted_range("bytes=90-", 100)
    ((10, 20), (90, 100))
    >>> wanted_range("bytes=-5", 100), wanted_range(None, 100)
    ((95, 100), None)
    """
    match = _RANGE.fullmatch(header.strip()) if header else None
    if match is None or match.group(0) == "bytes=-":
        return None
    first, last = match.groups()
    if not first:
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), min(size, int(last) + 1 if last else size)
        if last and int(last) < start:
            return None
    if start >= size or start >= end:
        raise ValueError(f"nothing of {header} in {size} bytes")
    return start, end


def send_file(
    handler: Handler, entry: Entry, headers: Mapping[str, str], fault: Fault | None
) -> None:
    """Answer with a file of a repository.

    + headers: of the answer, beside those that describe the body
    + fault: how to misbehave; None to be truthful
    """
    if not entry.is_intact():
        handler.send_json({"error": f"{entry.path} changed under the local Hub; add it again"}, 500)
        return
    no_range = fault is not None and fault.kind == "norange"
    try:
        part = None if no_range else wanted_range(handler.headers.get("Range"), entry.size)
    except ValueError:
        handler.send_bytes(b"", 416, {"Content-Range": f"bytes */{entry.size}"})
        return
    start, end = part or (0, entry.size)
    length = end - start
    if fault is not None and fault.kind == "short":
        length = min(length, fault.at)
    described = {"Content-Length": str(length), "Content-Type": "application/octet-stream"}
    if not no_range:
        described["Accept-Ranges"] = "bytes"
    if part is not None:
        described["Content-Range"] = f"bytes {start}-{end - 1}/{entry.size}"
    handler.send_head(200 if part is None else 206, {**headers, **described})
    if handler.command == "HEAD":
        return
    with entry.source.open("rb") as file:
        file.seek(start)
        _Body(handler, file, length, fault).send()


class _Body:
    """One body on its way."""

    def __init__(self, handler: Handler, file: BinaryIO, length: int, fault: Fault | None) -> None:
        self.handler = handler
        self.file = file
        self.length = length
        self.fault = fault
        self.sent = 0

    def send(self) -> None:
        """Send everything, or as far as the fault lets it come."""
        throttle = self.handler.state.throttle
        at = self.fault.at if self.fault else -1
        while self.sent < self.length and not self.handler.state.stopping.is_set():
            if self.sent == at and not self._reach_fault():
                return
            size = min(throttle.chunk(CHUNK), self.length - self.sent)
            if self.sent < at:
                size = min(size, at - self.sent)
            elif self.fault and self.fault.kind == "trickle":
                size = min(size, max(1, self.fault.rate // 10))
                time.sleep(size / self.fault.rate)
            chunk = bytearray(self.file.read(size))
            if self.fault and self.fault.kind == "corrupt" and self.sent == at:
                chunk[0] ^= 0x01
            time.sleep(throttle.delay(size))
            self.handler.wfile.write(chunk)
            self.sent += size
            self.handler.state.log.update(self.handler.number, sent=self.sent)
        if self.sent < self.length:
            self.handler.close_connection = True

    def _reach_fault(self) -> bool:
        """Do what the fault does at its place. False where the body ends here."""
        match self.fault:
            case Fault(kind="cut"):
                self.handler.close_connection = True
                return False
            case Fault(kind="reset"):
                reset(self.handler.connection)
                self.handler.close_connection = True
                return False
            case Fault(kind="stall", seconds=seconds):
                return self.handler.pause(seconds)
        return True


def reset(connection: socket.socket) -> None:
    """Break a connection with RST, after the peer has taken what was sent so far."""
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        waiting = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, b"\0\0\0\0")
        if struct.unpack("i", waiting)[0] == 0:
            break
        time.sleep(0.005)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    os.close(connection.detach())
