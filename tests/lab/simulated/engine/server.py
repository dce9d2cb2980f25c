"""The HTTP side of the stub. The socket is bound long before it listens, as vLLM's is."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from . import answers
from .console import write
from .setting import Setting

OPEN_ROUTES = ("/health", "/version", "/metrics", "/ping", "/load")
"""Routes that an API key does not guard (vLLM 0.32.0 serve/middleware/authenticate.py:11)."""

COMPLETIONS = {"/v1/chat/completions": True, "/v1/completions": False}


class Server(ThreadingHTTPServer):
    """Serves one engine.

    + bound: the socket, bound and not listening
    + died: set once the engine is dead
    + kill: tells the engine to die
    """

    daemon_threads = True

    def __init__(self, setting: Setting, bound: socket.socket) -> None:
        super().__init__(bound.getsockname()[:2], Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = bound
        self.setting = setting
        self.since = int(time.time())
        self.died = threading.Event()
        self.fatal = threading.Event()
        self.running = 0
        self.generated = 0
        self.counting = threading.Lock()

    def listen(self) -> None:
        """Open for requests, in threads of this process."""
        self.socket.listen(2048)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that hung up."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "uvicorn"
    sys_version = ""

    def handle(self) -> None:
        """Answer, unless the plan is to take connections and stay silent."""
        if self.server.setting.plan.serve == "silent":
            threading.Event().wait()
        super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        """The access log is written with the answer, in uvicorn's shape."""

    def do_GET(self) -> None:
        """Health, version, models, metrics."""
        setting, path = self.server.setting, self.path.partition("?")[0]
        if not self._allowed(path):
            return
        match path:
            case "/health" | "/ping":
                self._send(503 if self.server.died.is_set() else 200, b"")
            case "/version":
                self._json(200, {"version": setting.version})
            case "/v1/models":
                self._json(200, answers.models(setting, self.server.since))
            case "/metrics":
                text = answers.metrics(setting, self.server.running, self.server.generated)
                self._send(200, text.encode(), "text/plain; version=0.0.4")
            case _:
                self._json(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        """Completions."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        if not self._allowed(path):
            return
        if path not in COMPLETIONS:
            self._json(404, {"detail": "Not Found"})
            return
        try:
            asked = json.loads(body)
        except ValueError:
            self._json(400, answers.error(400, "invalid JSON", "BadRequestError"))
            return
        names = [model["id"] for model in answers.models(self.server.setting, 0)["data"]]
        name = asked.get("model", names[0])
        if name not in names:
            message = f"The model `{name}` does not exist."
            self._json(404, answers.error(404, message, "NotFoundError"))
            return
        with self.server.counting:
            self.server.running += 1
        try:
            self._complete(asked, COMPLETIONS[path])
        finally:
            with self.server.counting:
                self.server.running -= 1

    def _complete(self, asked: dict[str, Any], chat: bool) -> None:
        setting = self.server.setting
        match setting.plan.serve:
            case "hang":
                threading.Event().wait()
            case "die":
                self.server.fatal.set()
                self.server.died.wait()
            case "not-json":
                self._send(200, b"<html>upstream</html>", "text/html")
                return
        if self.server.died.is_set() or setting.plan.serve == "error":
            message = "EngineCore encountered an issue. See stack trace (above) for the root cause."
            self._json(500, answers.error(500, message, "InternalServerError"))
            return
        if chat and (message := answers.refused(setting, asked)):
            self._json(400, answers.error(400, message, "BadRequestError"))
            return
        whole = answers.completion(setting, asked, chat)
        count = whole["usage"]["completion_tokens"]
        if asked.get("stream"):
            self._stream(
                answers.chunks(whole, answers.words_of(setting, count, endless=True), chat)
            )
        else:
            self._take_time(count)
            self._json(200, whole)
        with self.server.counting:
            self.server.generated += count

    def _take_time(self, tokens: int) -> None:
        rate = self.server.setting.plan.tokens_per_second
        if rate:
            time.sleep(tokens / rate)

    def _stream(self, parts: list[dict[str, Any]]) -> None:
        """Server-sent events, one a token."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for part in parts:
            self._take_time(1)
            self.wfile.write(b"data: " + json.dumps(part).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")
        self._log(200)

    def _allowed(self, path: str) -> bool:
        keys = self.server.setting.arguments.api_key
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if not keys or path in OPEN_ROUTES or given in keys:
            return True
        self._json(401, {"error": "Unauthorized"})
        return False

    def _json(self, status: int, value: dict[str, Any]) -> None:
        self._send(status, json.dumps(value).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self._log(status)

    def _log(self, status: int) -> None:
        host, port = self.client_address[:2]
        phrase = self.responses[status][0] if status in self.responses else ""
        write(
            f'INFO:     {host}:{port} - "{self.command} {self.path} HTTP/1.1" {status} {phrase}\n'
        )
