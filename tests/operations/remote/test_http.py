"""One question to a server: bounded in time and bytes, and asked by no proxy."""

from __future__ import annotations

import http.server
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.remote.http import Reply, ask, get


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def test_a_server_that_says_nothing_costs_the_time_limit(
    listener: socket.socket,
) -> None:
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/health"
    began = time.monotonic()
    assert get(url, 0.1) == (None, b"")
    assert time.monotonic() - began < 2


class Refuses(http.server.BaseHTTPRequestHandler):
    """Says no to all."""

    def do_GET(self) -> None:
        self.send_response(401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def test_a_proxy_of_the_environment_plays_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with http.server.HTTPServer(("127.0.0.1", 0), Refuses) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        assert get(f"http://127.0.0.1:{server.server_port}/v1/models", 5) == (401, b"")


class Echoes(Refuses):
    """Says what it was told, and by whom."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        told = {"path": self.path, "body": json.loads(body), "key": self.headers["Authorization"]}
        content = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def serving(handler: type[http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    """A server of one request."""
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.mark.parametrize(("key", "sent"), [("", None), ("secret", "Bearer secret")])
def test_a_body_is_posted_with_the_key_at_hand(
    monkeypatch: pytest.MonkeyPatch, key: str, sent: str | None
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", key)
    with serving(Echoes) as url:
        reply = ask(f"{url}/v1/x", {"a": 1}, seconds=5)
    assert reply.status == 200
    assert reply.value == {"path": "/v1/x", "body": {"a": 1}, "key": sent}


def test_no_more_is_read_than_was_asked_for() -> None:
    with serving(Echoes) as url:
        assert len(ask(f"{url}/v1/x", {"a": "x" * 1000}, seconds=5, most=100).body) == 100


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://127.0.0.1:x/", "http://["])
def test_where_nobody_answers_there_is_no_status(url: str) -> None:
    assert get(url, 1) == (None, b"")


@given(st.binary() | st.dictionaries(st.text(), st.text()).map(json.dumps).map(str.encode))
def test_any_body_can_be_told(body: bytes) -> None:
    assert len(Reply(500, body, 0.1).said) <= 300


def test_the_message_of_an_error() -> None:
    assert Reply(400, b'{"error": {"message": "too\\nlong"}}', 0.1).said == "too long"
    assert Reply(502, b"<html> upstream", 0.1).said == "<html> upstream"
