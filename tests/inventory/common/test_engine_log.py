"""The engine's lines, taken apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.common.engine_log import holds_numbers, information, logged, prefix_of, uncoloured

NAMES = st.sampled_from(["APIServer", "EngineCore_DP0", "Worker_TP3", "VllmWorker rank=2"])
LEVELS = st.sampled_from(["DEBUG", "INFO", "WARNING", "WARN", "ERROR", "CRITICAL"])


@given(NAMES, st.integers(0, 10**9), LEVELS, st.text())
def test_a_line_is_taken_apart(name: str, pid: int, level: str, text: str) -> None:
    line = f"({name} pid={pid}) {level} 11-24 21:03:20.123 [v1/core.py:3] {text}"
    prefix = prefix_of(line)
    assert prefix is not None
    assert (prefix.name, prefix.pid) == (name, pid)
    told = logged(prefix.rest)
    assert told is not None
    assert told.level == level.replace("WARNING", "WARN").replace("WARN", "WARNING")
    assert (told.stamp, told.where, told.text) == ("11-24 21:03:20", "v1/core.py:3", text)
    assert information(line) == (uncoloured(text) if level == "INFO" else None)


@given(st.text())
def test_any_text_is_a_line(text: str) -> None:
    assert information(text) is None or text
    assert uncoloured(uncoloured(text)) == uncoloured(text) or "\x1b" in text


def test_the_longer_name_of_the_same_process_counts() -> None:
    found = prefix_of("(Worker pid=7) (Worker_TP1 pid=7) (x pid=8) INFO up")
    assert found is not None
    assert (found.name, found.pid, found.rest) == ("Worker_TP1", 7, "(x pid=8) INFO up")


def test_colours_and_uvicorn() -> None:
    assert information("\x1b[32mINFO\x1b[0m:     Application startup complete.") == (
        "Application startup complete."
    )
    assert information("INFO: one blank is no logger of uvicorn's") is None


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("Available KV cache memory: 12.5 GiB", True),
        ("Directly load the compiled graph(s) for compile range (1, 8192)", True),
        ("saved AOT compiled function to /x", True),
        ("vLLM is using nccl==2.28.9", True),
        ("No available shared memory broadcast block found in 60 seconds.", True),
        ("Using V2 Model Runner", False),
        ("", False),
    ],
)
def test_which_lines_hold_numbers(text: str, holds: bool) -> None:
    assert holds_numbers(text) is holds
