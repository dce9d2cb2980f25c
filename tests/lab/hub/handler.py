"""What both origins do with a request: log it, let a fault have it, answer, count the bytes."""

from __future__ import annotations

import json
import select
import socket
import socketserver
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

from tests.lab.hub.access import RefusedError, refusal
from tests.lab.hub.faults import Fault
from tests.lab.hub.repository import NotFoundError
from tests.lab.hub.state import State

LOGIN_PAGE = b"<!DOCTYPE html><html><head><title>Sign in to the network</title></head></html>\n"


@dataclass(frozen=True)
class Call:
    """What a request asks for.

    + repo, path: as in :class:`~tests.lab.hub.log.Request`
    + answer: sends the answer
    """

    repo: str
    path: str
    answer: Callable[[Fault | None], None]


class Server(ThreadingHTTPServer):
    """One origin. Quiet when a client goes away."""

    daemon_threads = True
    request_queue_size = 128

    def server_bind(self) -> None:
        """Bind without asking a name server for the host's name, as HTTPServer would."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that hung up; tell of everything else."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """A connection to one origin. Subclasses say which, and what a request asks for."""

    where: ClassVar[str]
    state: ClassVar[State]
    protocol_version = "HTTP/1.1"
    server_version = "local-hub"
    disable_nagle_algorithm = True
    body: bytes = b""
    number: int = 0

    def call(self, segments: list[str]) -> Call:
        """What the request asks for. May raise NotFoundError or RefusedError when it is answered.

        + segments: the path of the URL, split at "/" and unquoted
        """
        raise NotImplementedError

    def log_message(self, format: str, *args: Any) -> None:
        """Stay quiet: the log is read over the control endpoint."""

    @property
    def query(self) -> dict[str, str]:
        """The last value of each query parameter."""
        return {name: values[-1] for name, values in parse_qs(urlsplit(self.path).query).items()}

    @property
    def token(self) -> str | None:
        """What the Authorization header carries."""
        header = self.headers.get("Authorization")
        return None if header is None else header.removeprefix("Bearer ")

    def _serve(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        target = urlsplit(self.path).path
        call = self.call([unquote(part) for part in target.strip("/").split("/")])
        self.number = self.state.log.open(
            where=self.where,
            method=self.command,
            repo=call.repo,
            path=call.path,
            target=target,
            range=self.headers.get("Range"),
            authorized=self.headers.get("Authorization") is not None,
        )
        fault = self.state.faults.take(self.where, call.repo, self.command, call.path)
        self.state.log.update(self.number, fault=fault.kind if fault else None)
        try:
            if not (fault and self._fail(fault)):
                call.answer(fault)
        except NotFoundError as error:
            self.refuse(refusal(error, self.token))
        except RefusedError as error:
            self.refuse(error)
        except ConnectionError:
            self.close_connection = True
        finally:
            self.state.log.update(self.number, done=True)

    def do_GET(self) -> None:
        """Answer a GET."""
        self._serve()

    def do_HEAD(self) -> None:
        """Answer a HEAD."""
        self._serve()

    def do_POST(self) -> None:
        """Answer a POST."""
        self._serve()

    def _fail(self, fault: Fault) -> bool:
        """Commit a fault that takes the place of the answer. False where there is still one."""
        match fault.kind:
            case "status":
                self.send_json({"error": "Injected fault"}, fault.status, fault.headers)
            case "html":
                self.send_bytes(LOGIN_PAGE, 200, {"Content-Type": "text/html"})
            case "drop":
                self.close_connection = True
            case "hang":
                return not self.pause(fault.seconds)
            case _:
                return False
        return True

    def pause(self, seconds: float) -> bool:
        """Wait for a time, 0 for ever. False once there is nobody left to answer."""
        until = time.monotonic() + seconds if seconds else float("inf")
        while not self.state.stopping.is_set():
            left = until - time.monotonic()
            if left <= 0:
                return True
            readable, _, _ = select.select([self.connection], [], [], min(left, 0.05))
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                break
            if readable:
                time.sleep(min(left, 0.05))
        self.close_connection = True
        return False

    def refuse(self, error: RefusedError) -> None:
        """Answer with an error as the Hub words it."""
        headers = {"X-Error-Message": str(error)}
        if error.code:
            headers["X-Error-Code"] = error.code
        self.send_json({"error": str(error)}, error.status, headers)

    def send_json(
        self, value: Any, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """Answer with JSON."""
        body = json.dumps(value).encode()
        self.send_bytes(body, status, {"Content-Type": "application/json"} | dict(headers or {}))

    def send_bytes(self, body: bytes, status: int, headers: Mapping[str, str]) -> None:
        """Answer with a short body; a HEAD gets its length only."""
        self.send_head(status, {**headers, "Content-Length": str(len(body))})
        if self.command != "HEAD":
            self.wfile.write(body)
            self.state.log.update(self.number, sent=len(body))

    def send_head(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the status line and the headers."""
        self.state.log.update(self.number, status=status)
        self.send_response(status)
        self.send_header("X-Request-Id", f"local-{self.where}-{self.number}")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
