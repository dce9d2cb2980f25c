"""The smoke test against servers that answer well, badly, and not at all."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from inventory.common.switch import Target
from operations.remote.http import ask
from operations.remote.switch.errors import SwitchError
from operations.remote.switch.smoke_test.smoke import smoke
from tests.lab.simulated.conftest import installed, site  # noqa: F401 - site is a fixture
from tests.lab.simulated.driver import Running, engine

REPO = Path(__file__).parents[4]
PARSERS = ("--enable-auto-tool-choice", "--tool-call-parser", "x", "--reasoning-parser", "y")
THINKS = "<think>A greeting is wanted.</think> Hello to all of you."
CALLS = '<tool_call>{"name":"get_weather","arguments":{"city":"Paris"}}</tool_call>'


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = installed(tmp_path_factory.mktemp("smoke"))
    # A box without GPUs: there are more engines here than cards.
    (folder / "opt/simulated/box.json").unlink()
    return folder


@pytest.fixture(scope="module")
def stubs(root: Path, site: Path) -> Iterator[dict[str, Running]]:  # noqa: F811
    """A stub engine for each way of serving, beside each other."""
    plans: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
        mode: ({"serve": mode}, PARSERS)
        for mode in ("answer", "hang", "silent", "garbage", "not-json", "empty", "error", "die")
    }
    plans["thinks"] = ({"text": THINKS}, PARSERS)
    plans["calls"] = ({"text": CALLS}, PARSERS)
    plans["no-parsers"] = ({"text": f"{THINKS} {CALLS}"}, ())
    plans["guarded"] = ({}, ("--api-key", "secret"))
    with ExitStack() as stack:
        started = {
            name: stack.enter_context(
                engine(root, site, "--tensor-parallel-size", "1", *flags, plan=plan, devices=None)
            )
            for name, (plan, flags) in plans.items()
        }
        for stub in started.values():
            stub.wait_ready()
        yield started


def target(stub: Running) -> Target:
    return Target("vllm-x.service", stub.url, "lab/model")


def chat(
    stub: Running, *, tools: bool = True, reasoning: bool = True, seconds: float = 10
) -> tuple[tuple[str, ...], list[str]]:
    """The warnings, and the lines that were printed."""
    lines: list[str] = []
    warnings = smoke(target(stub), lines.append, tools=tools, reasoning=reasoning, seconds=seconds)
    return warnings, lines


def test_an_answer(stubs: dict[str, Running]) -> None:
    warnings, lines = chat(stubs["answer"])
    assert warnings == ()
    assert [line.split(" (")[0] for line in lines] == [
        "smoke: chat: 'Paris is the capital of France.'",
        "smoke: tools: 'Paris is the capital of France.'",
    ]


def test_reasoning_and_a_call_are_told(stubs: dict[str, Running]) -> None:
    warnings, lines = chat(stubs["thinks"])
    assert warnings == ()
    assert "'Hello to all of you.' and 21 characters of reasoning" in lines[0]
    warnings, lines = chat(stubs["calls"])
    assert warnings == ()
    assert 'a call of get_weather({"city": "Paris"})' in lines[1]


def test_a_reasoning_parser_that_is_not_this_models(stubs: dict[str, Running]) -> None:
    (warning,), _ = chat(stubs["no-parsers"], tools=False)
    assert "'<think>': --reasoning-parser" in warning
    assert chat(stubs["no-parsers"], tools=False, reasoning=False)[0] == ()


def test_a_tool_parser_that_is_not_set(stubs: dict[str, Running]) -> None:
    with pytest.raises(SwitchError, match=r"HTTP 400 .*set engine\.tool_call_parser") as caught:
        chat(stubs["no-parsers"])
    assert caught.value.kind == "chat"


def test_garbage_is_a_warning_once(stubs: dict[str, Running]) -> None:
    warnings, lines = chat(stubs["garbage"], tools=False)
    assert [warning.split(":")[0] for warning in warnings] == [
        "the answer repeats '!' over and over"
    ]
    assert len(lines) == 1
    assert len(chat(stubs["garbage"])[0]) == 1


def test_a_key_that_is_not_at_hand(
    stubs: dict[str, Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    (warning,), lines = chat(stubs["guarded"])
    assert "wants an API key" in warning
    assert lines == []
    monkeypatch.setenv("VLLM_API_KEY", "secret")
    assert chat(stubs["guarded"], tools=False)[0] == ()


UNUSABLE = {
    "hang": "no answer from /v1/chat/completions within 1 s",
    "silent": "no answer from /v1/chat/completions within 1 s",
    "not-json": "an answer that is not JSON: '<html>upstream</html>'",
    "empty": "chat: an answer without text, reasoning or tool call",
    "error": "HTTP 500 to one chat request: EngineCore encountered an issue",
    "die": "HTTP 500 to one chat request: EngineCore encountered an issue",
}


@pytest.mark.parametrize("mode", UNUSABLE)
def test_nothing_usable_is_a_failure(stubs: dict[str, Running], mode: str) -> None:
    began = time.monotonic()
    with pytest.raises(SwitchError) as caught:
        chat(stubs[mode], seconds=1)
    assert time.monotonic() - began < 30
    assert caught.value.kind == "chat"
    assert UNUSABLE[mode] in caught.value.sentence


def test_by_hand(stubs: dict[str, Running]) -> None:
    def run(mode: str, *more: str) -> subprocess.CompletedProcess[str]:
        words = [
            sys.executable,
            "-m",
            "operations.remote.switch.smoke_test.smoke",
            "--url",
            stubs[mode].url,
        ]
        words += ["--model", "lab/model", *more]
        return subprocess.run(words, cwd=REPO, capture_output=True, text=True, check=False)

    good = run("garbage", "--tools", "--reasoning")
    assert good.returncode == 0
    assert "warning: the answer repeats '!' over and over" in good.stdout
    bad = run("error", "--seconds", "3")
    assert (bad.returncode, bad.stderr) == (1, "")
    assert bad.stdout.startswith("chat failed: HTTP 500")


@contextmanager
def serving(speak: Callable[[socket.socket, bytes], None]) -> Iterator[str]:
    """A server that reads a request and then does as it is told."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def loop() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    asked = connection.recv(65536)
                    while b"}" not in asked:
                        asked += connection.recv(65536)
                    try:
                        speak(connection, asked)
                    except OSError:
                        continue

        threading.Thread(target=loop, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)


def said(status: str, body: Any) -> bytes:
    content = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    return head.encode() + content


def test_a_connection_that_ends() -> None:
    with serving(lambda _, __: None) as url, pytest.raises(SwitchError, match="connection ended"):
        smoke(Target("x.service", url, "m"), print, tools=False, reasoning=False)


def test_a_port_where_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(SwitchError, match="ConnectionRefusedError"):
        smoke(Target("x.service", url, "m"), print, tools=False, reasoning=False)


def test_words_that_are_no_http() -> None:
    with (
        serving(lambda connection, _: connection.sendall(b"220 mail ready\r\n")) as url,
        pytest.raises(SwitchError, match="BadStatusLine"),
    ):
        smoke(Target("x.service", url, "m"), print, tools=False, reasoning=False)


def test_an_answer_that_trickles_is_not_waited_for() -> None:
    def trickle(connection: socket.socket, _: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for piece in [b" "] * 1000:
            connection.sendall(piece)
            time.sleep(0.1)

    began = time.monotonic()
    with serving(trickle) as url, pytest.raises(TimeoutError):
        ask(f"{url}/v1/chat/completions", {}, seconds=0.5)
    assert time.monotonic() - began < 50


def test_a_model_that_only_completes_text() -> None:
    def speak(connection: socket.socket, asked: bytes) -> None:
        if b"/v1/chat/" in asked:
            words = (
                "default chat template is no longer allowed, so you must provide a chat template"
            )
            connection.sendall(said("400 Bad Request", {"error": {"message": words}}))
            return
        choice = {"text": " there was a hello.", "finish_reason": "stop"}
        connection.sendall(said("200 OK", {"model": "m", "choices": [choice]}))

    lines: list[str] = []
    with serving(speak) as url:
        warnings = smoke(Target("x.service", url, "m"), lines.append, tools=True, reasoning=False)
    assert ["no chat template" in warning for warning in warnings] == [True]
    assert "completion: 'there was a hello.'" in lines[0]
