"""The benchmark as a process: its results rung by rung, its failures, its time limit.

In its place runs a script that takes the same arguments and does what a test says. The real one
is run in tests/deploys/test_real_engine.py.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from inventory.common.throughput import Load, ThroughputRequest
from operations.remote.throughput.tool import ToolError, climb

REQUEST = ThroughputRequest(
    unit="lab.service",
    url="http://127.0.0.1:1",
    model="lab/model",
    python="",
    version="0.32.0",
    user=None,
    tokenizer="/m",
    more=("--trust-remote-code",),
    rungs=(1, 4),
    load=Load(32, 16, 3),
    digest="01234567",
    regression=0.15,
    timeout=20,
    accept=False,
)
RESULT = {
    "completed": 3,
    "failed": 0,
    "output_throughput": 50.0,
    "median_ttft_ms": 60.0,
    "p99_ttft_ms": 80.0,
    "median_tpot_ms": 15.0,
    "p99_tpot_ms": 18.0,
}
WRITE = f"""
for words in json.loads(sys.argv[3]):
    open(words[-1], "w").write(json.dumps({RESULT!r}))
    print("Serving Benchmark Result", "\\n@@boxwright-rung", words[-1], flush=True)
"""


def python(folder: Path, body: str) -> str:
    """An executable in the place of the engine's Python."""
    path = folder / "python"
    path.write_text(f"#!{sys.executable}\nimport json, os, sys, time\n{body}\n")
    path.chmod(0o755)
    return str(path)


def run(folder: Path, body: str, seconds: float = 20) -> list[int]:
    """The rungs that were measured."""
    rungs = climb(replace(REQUEST, python=python(folder, body), timeout=seconds), seed=7)
    return [rung.concurrency for rung in rungs]


def test_each_rung_is_told_as_it_is_done(tmp_path: Path) -> None:
    # Its second rung waits until the first was taken from it.
    gate = tmp_path / "gate"
    wait = (
        f"    while words[-1] != '1.json' and not os.path.exists({str(gate)!r}): time.sleep(0.02)"
    )
    body = WRITE.replace("    open", f"{wait}\n    open")
    rungs = climb(replace(REQUEST, python=python(tmp_path, body)), seed=7)
    first = next(rungs)
    assert (first.concurrency, first.output_tokens_per_second) == (1, 50.0)
    gate.touch()
    assert [rung.concurrency for rung in rungs] == [4]


def test_it_runs_bare_and_in_a_folder_that_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("VLLM_API_KEY", "secret")
    note = tmp_path / "note.json"
    body = f"open({str(note)!r}, 'w').write(json.dumps([os.getcwd(), dict(os.environ)]))\n{WRITE}"
    assert run(tmp_path, body) == [1, 4]
    folder, environment = json.loads(note.read_text())
    assert not Path(folder).exists()
    assert environment["HOME"] == folder
    assert environment["OPENAI_API_KEY"] == "secret"
    assert environment["HF_HUB_OFFLINE"] == "1"
    assert "HTTP_PROXY" not in environment


FAILURES = {
    "no module": (
        "raise ModuleNotFoundError(\"No module named 'vllm'\")",
        "No module named 'vllm'",
    ),
    "no result": ("print('\\n@@boxwright-rung 1.json')", "No such file"),
    "no JSON": (WRITE.replace("json.dumps({", "str({"), "Expecting property name"),
    "requests failed": (WRITE.replace("'failed': 0", "'failed': 2"), "2 requests of 1 stream were"),
    "half a ladder": (WRITE.replace("sys.argv[3])", "sys.argv[3])[:1]"), "ended with status 0"),
    "more than asked": (f"{WRITE}\nprint('@@boxwright-rung 9.json')", "pop from empty list"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_says_why(tmp_path: Path, name: str) -> None:
    body, words = FAILURES[name]
    with pytest.raises(ToolError) as caught:
        run(tmp_path, body)
    assert words in str(caught.value)


def test_the_time_limit_ends_it_with_its_children(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    body = (
        f"print('Loading'); sys.stdout.flush(); child = os.fork() or os.getpid()\n"
        f"open({str(note)!r}, 'a').write(f'{{child}}\\n'); time.sleep(600)"
    )
    began = time.monotonic()
    with pytest.raises(ToolError, match="not done within 1 s\n    Loading"):
        run(tmp_path, body, seconds=1)
    assert time.monotonic() - began < 50
    for pid in map(int, note.read_text().split()):
        until = time.monotonic() + 60
        while alive(pid):
            assert time.monotonic() < until
            time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_an_unknown_user_is_named(tmp_path: Path) -> None:
    rungs = climb(replace(REQUEST, python=python(tmp_path, WRITE), user="no-such-user"), seed=1)
    with pytest.raises(ToolError, match="there is no user no-such-user"):
        next(rungs)


def test_an_engine_that_is_not_there_is_named(tmp_path: Path) -> None:
    rungs = climb(replace(REQUEST, python=str(tmp_path / "python")), seed=1)
    with pytest.raises(ToolError, match="python does not start: No such file"):
        next(rungs)
