"""A diagnosis depends on what the engine says, and on nothing else in the text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facts.diagnosis import Hints, from_text
from facts.diagnosis.result import Diagnosis
from tests.facts.diagnosis.journals import ENTRIES, NAMES, hints_of, text_of

BY_NAME = {str(entry["name"]): entry for entry in ENTRIES}
SILENT = [name for name in NAMES if BY_NAME[name]["outcome"] == "hang"]
HEAD = re.compile(r"(\S+T\S+?)([+-]\d{4}) (\S+) (\S+?)(?:\[(\d+)\])?: (.*)")
SHIFT = timedelta(days=41, hours=7, minutes=3)

NOISE = (
    "(APIServer pid={pid}) INFO 01-02 03:04:05 [loggers.py:335] Engine 000: Avg prompt throughput",
    "(Worker_TP1 pid={pid}) WARNING 01-02 03:04:05 [a.py:1] User-specified max_model_len (9) is "
    "greater than the derived max_model_len (max_position_embeddings=8)",
    "(APIServer pid={pid}) INFO 01-02 03:04:05 [b.py:2] request: CUDA out of memory. Tried to "
    "allocate 9.00 GiB; No available memory for the cache blocks",
    '(EngineCore pid={pid}) ERROR 01-02 03:04:05 [dump_input.py:79] prompt="[Errno 98] Address '
    'already in use, header too large, No such file or directory: nvcc"',
    "/opt/x.py:3: UserWarning: [Errno 24] Too many open files",
    "[W1130 09:14:58.085278639 utils.cpp:68] Warning: NUMA binding",
    'INFO:     10.0.0.1:1 - "GET /metrics HTTP/1.1" 200 OK',
)


def said(found: Diagnosis | None) -> tuple[object, ...] | None:
    """What must not change: everything but line numbers, names and paths."""
    if found is None:
        return None
    numbers = {
        name: value
        for name, value in found.numbers.items()
        if name not in {"path", "file", "pid", "timeout_start_s", "silent_minutes"}
    }
    return found.cause, found.title, found.phase, found.ending, numbers


@cache
def unchanged(name: str) -> tuple[object, ...] | None:
    return said(from_text(text_of(name), hints=hints_of(BY_NAME[name])))


def moved_in_time(text: str) -> str:
    def later(match: re.Match[str]) -> str:
        at = datetime.fromisoformat(f"{match[1]}{match[2]}") + SHIFT
        return f"{at.strftime('%Y-%m-%dT%H:%M:%S%z')} "

    return re.sub(r"(?m)^(\d{4}-\S+?)([+-]\d{4}) ", later, text)


def other_processes(text: str) -> str:
    text = re.sub(r"pid=(\d+)", lambda match: f"pid={int(match[1]) + 100_000}", text)
    return re.sub(
        r"(?m)^(\S+ \S+ (?:vllm|python)\[)(\d+)\]",
        lambda match: f"{match[1]}{int(match[2]) + 100_000}]",
        text,
    )


def other_paths(text: str) -> str:
    for old, new in (
        ("/opt/vllm", "/home/serve/engines/a b"),
        ("/srv/models", "/shared/m"),
        ("/srv/box", "/data/c-1"),
        ("gpu-box", "h7.example.org"),
        ("vllm-minimax-m25.service", "llm@m2.service"),
    ):
        text = text.replace(old, new)
    return text


def other_source_lines(text: str) -> str:
    """Another patch release: the same files, other lines in them."""
    text = re.sub(r"(\w+\.py):(\d+)\]", lambda m: f"{m[1]}:{int(m[2]) + 13}]", text)
    return re.sub(r'(\.py", line )(\d+)', lambda m: f"{m[1]}{int(m[2]) + 13}", text)


def as_json(text: str) -> str:
    lines = []
    for line in text.split("\n"):
        match = HEAD.fullmatch(line)
        if match is None:
            continue
        at = datetime.fromisoformat(match[1] + match[2]).timestamp()
        fields = {
            "__REALTIME_TIMESTAMP": str(round(at * 1_000_000)),
            "SYSLOG_IDENTIFIER": match[4],
            "MESSAGE": match[6] if len(line) % 11 else list(match[6].encode()),
            "_TRANSPORT": "kernel" if match[4] == "kernel" else "stdout",
        }
        lines.append(json.dumps(fields | ({"_PID": match[5]} if match[5] else {})))
    return "\n".join(lines)


def as_short_precise(text: str) -> str:
    def short(match: re.Match[str]) -> str:
        at = datetime.fromisoformat(match[1] + match[2])
        return f"{at.strftime('%b %d %H:%M:%S')}.123456 "

    return re.sub(r"(?m)^(\d{4}-\S+?)([+-]\d{4}) ", short, text)


def as_iso_precise(text: str) -> str:
    return re.sub(r"(?m)^(\d{4}-\S+?)\+(\d\d)(\d\d) ", r"\1.000250+\2:\3 ", text)


def as_unix(text: str) -> str:
    return re.sub(
        r"(?m)^(\d{4}-\S+?)([+-]\d{4}) ",
        lambda m: f"{datetime.fromisoformat(m[1] + m[2]).timestamp():.6f} ",
        text,
    )


def as_cat(text: str) -> str:
    return "\n".join(HEAD.sub(r"\6", line) for line in text.split("\n"))


def torn(text: str) -> str:
    """Lines in Windows' way, colours, an empty line and a boot mark."""
    text = text.replace("ERROR", "\x1b[31mERROR\x1b[0m").replace("\n", "\r\n")
    return f"-- Boot 0123456789abcdef --\n\n{text}\n\x00\ufffd\n"


MUTATIONS: tuple[Callable[[str], str], ...] = (
    moved_in_time,
    other_processes,
    other_paths,
    other_source_lines,
    as_json,
    as_short_precise,
    as_iso_precise,
    as_unix,
    torn,
)


def shifted(hints: Hints, change: Callable[[str], str]) -> Hints:
    """The time of reading, in the mutated journal's calendar."""
    if hints.now is None or change is as_short_precise:
        return hints.model_copy(update={"now": None})
    later = SHIFT.total_seconds() if change is moved_in_time else 0
    return hints.model_copy(update={"now": hints.now + later})


@pytest.mark.parametrize("name", NAMES)
def test_same_diagnosis(name: str) -> None:
    text, hints = text_of(name), hints_of(BY_NAME[name])
    wanted = unchanged(name)
    for change in MUTATIONS[NAMES.index(name) % 4 :: 4]:
        found = from_text(change(text), hints=shifted(hints, change))
        assert said(found) == wanted, change.__name__


@pytest.mark.parametrize("change", MUTATIONS)
def test_mutations_do_something(change: Callable[[str], str]) -> None:
    name = "recreated-nccl-hang-first-collective"
    text, hints = text_of(name), hints_of(BY_NAME[name])
    assert change(text) != text
    found = from_text(change(text), hints=shifted(hints, change))
    assert found is not None
    assert found.cause == "H11"


@pytest.mark.parametrize("name", [name for name in NAMES if name not in SILENT])
def test_bare_messages_are_enough(name: str) -> None:
    """``-o cat`` has neither times nor writers; only how it ended is lost with them."""
    found = from_text(as_cat(text_of(name)), hints=hints_of(BY_NAME[name]))
    assert (found and found.cause) == BY_NAME[name]["root_cause_id"]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([name for name in NAMES if name not in SILENT]), st.data())
def test_unrelated_lines_change_nothing(name: str, data: st.DataObject) -> None:
    hints = hints_of(BY_NAME[name])
    lines = text_of(name).rstrip("\n").split("\n")
    first = next(nth for nth, line in enumerate(lines) if " Started " in line or "Starting" in line)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(first + 1, len(lines)))
        noise = data.draw(st.sampled_from(NOISE)).format(pid=77)
        head = HEAD.fullmatch(lines[at - 1])
        assert head is not None
        lines.insert(at, f"{head[1]}{head[2]} {head[3]} vllm[77]: {noise}")
    assert said(from_text("\n".join(lines), hints=hints)) == unchanged(name)
