"""Phases told line by line on the box are those that the controller reads from all lines."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.journal.formats import entry as read_entry
from facts.journal.lines import read_journal
from facts.journal.phases import phases
from facts.journal.starts import starts
from inventory.common.start_phases import PHASES, seconds_left
from operations.remote.switch.waiting.journal import JournalEntry
from operations.remote.switch.waiting.phases import MOST_LINES, PhaseTracker
from tests.facts.diagnosis.journals import API, ENGINE, NAMES, Made, text_of, worker


def entries(text: str) -> list[JournalEntry]:
    """A recorded journal, as the box reads it."""
    found = [read_entry(line) for line in text.split("\n")]
    return [
        JournalEntry(one.time, one.time, one.ident, one.pid, one.text)
        for one in found
        if one is not None and one.time is not None
    ]


def tracked(text: str) -> PhaseTracker:
    given = entries(text)
    track = PhaseTracker(given[0].monotonic)
    for entry in given:
        track.take(entry)
    return track


def became_ready(name: str) -> bool:
    journal = read_journal(text_of(name))
    return len(starts(journal)) == 1 and phases(journal).ready is not None


READY = [name for name in NAMES if became_ready(name)]


def test_there_are_healthy_journals() -> None:
    assert {name for name in NAMES if "healthy" in name} <= set(READY)


@pytest.mark.parametrize("name", READY)
def test_phases_are_those_of_the_whole_journal(name: str) -> None:
    track, whole = tracked(text_of(name)), phases(read_journal(text_of(name)))
    assert track.up_at is not None
    assert track.seconds(track.up_at) == pytest.approx(whole.seconds, abs=1e-3)


@pytest.mark.parametrize("name", READY)
def test_the_kept_lines_tell_the_same(name: str) -> None:
    kept = phases(read_journal("\n".join(tracked(text_of(name)).lines)))
    whole = phases(read_journal(text_of(name)))
    assert kept.seconds == pytest.approx(whole.seconds, abs=1e-3)
    assert kept.engine == whole.engine
    assert kept.ready == pytest.approx(whole.ready, abs=1e-3)


@pytest.mark.parametrize("name", READY)
def test_what_is_left_is_what_the_controller_would_say(name: str) -> None:
    before = phases(read_journal(text_of(name))).seconds
    lines = text_of(name).split("\n")
    text = "\n".join(lines[: len(lines) // 3])
    now = entries(text)[-1].monotonic
    so_far = phases(read_journal(text))
    track = PhaseTracker(entries(text)[0].monotonic, before)
    for entry in entries(text):
        track.take(entry)
    if not track.is_up:
        assert so_far.current is not None
        left = seconds_left(so_far.current.name, so_far.current.seconds, before)
        assert track.left(now) == pytest.approx(left, abs=1e-3)


def test_nothing_is_said_of_what_is_left_without_a_record() -> None:
    assert tracked(Made().banner().text).left(1.0) is None


LINES = st.one_of(
    st.text(max_size=80),
    st.sampled_from(
        [
            "INFO:     Application startup complete.",
            *(
                f"(Worker_TP0 pid=7) INFO 01-01 00:00:00 [a.py:1] {text}"
                for text in (
                    "non-default args: {}",
                    "Initializing a V1 LLM engine (v0.32.0)",
                    "world_size=2 rank=0",
                    "Loading model from scratch...",
                    "Loading weights took 3 seconds",
                    "Model loading took 1 GiB memory and 4 seconds",
                    "Graph capturing finished in 1 secs, took 1.3 GiB",
                )
            ),
        ]
    ),
)


@given(st.lists(st.tuples(LINES, st.floats(0, 1000))), st.floats(1000, 2000))
def test_phases_sum_to_the_whole_start(said: list[tuple[str, float]], until: float) -> None:
    track = PhaseTracker(1.0)
    for text, at in said:
        track.take(JournalEntry(at, at, "vllm", 7, text))
    parts = track.seconds(until)
    assert sum(parts.values()) == pytest.approx(until - 1.0)
    assert all(length >= 0 for length in parts.values())
    assert track.phase in PHASES
    assert all("\n" not in line for line in track.lines)


def test_a_slower_rank_ends_the_phase_once_more() -> None:
    made = Made().banner(tensor_parallel_size=2).workers(2)
    made.info(worker(0), "Model loading took 20 GiB memory and 40.0 seconds")
    made.wait(9).info(worker(1), "Model loading took 20 GiB memory and 50.0 seconds")
    track = tracked(made.text)
    assert track.seconds(track.since)["load"] == pytest.approx(11)
    assert track.phase == "compile"


def test_a_percentage_belongs_to_its_phase() -> None:
    made = Made().banner().workers()
    made.raw("vllm[300]", "\rLoading safetensors checkpoint shards:  45% Completed | 57/126")
    track = tracked(made.text)
    assert (track.phase, track.percent) == ("load", 45)
    made.info(worker(0), "Loading weights took 60.2 seconds")
    assert tracked(made.text).percent is None


def test_only_what_goes_on_is_progress() -> None:
    made = Made().banner().workers()
    track = tracked(made.text)
    at = track.progress
    idle = "No available shared memory broadcast block found in 60 seconds. This typically happens"
    for _ in range(3):
        made.wait(59).info(ENGINE, idle)
    made.info(API, "Engine 000: Avg prompt throughput: 0.0 tokens/s, Running: 0 reqs")
    made.raw("vllm[100]", 'INFO:     127.0.0.1:5000 - "GET /health HTTP/1.1" 200 OK')
    made.systemd("vllm-x.service: Consumed 3 s of CPU time.")
    track = tracked(made.text)
    assert (track.progress, track.heartbeats) == (at, 3)
    made.raw("vllm[300]", "Loading safetensors checkpoint shards:  50% Completed | 1/2")
    track = tracked(made.text)
    assert track.progress > at
    assert track.heartbeats == 0


def test_kept_lines_are_bounded_and_hold_both_ends() -> None:
    made = Made().banner()
    for number in range(3 * MOST_LINES):
        made.info(ENGINE, f"Available KV cache memory: {number} GiB")
    made.ready()
    kept = tracked(made.text).lines
    assert len(kept) == MOST_LINES
    assert "Started vllm-x.service" in kept[0]
    assert "Application startup complete." in kept[-1]


def test_a_key_on_the_command_line_is_not_kept() -> None:
    made = Made().banner(api_key=["sk-letmein"], hf_token="hf_letmein")  # noqa: S106
    kept = "\n".join(tracked(made.text).lines)
    assert "letmein" not in kept
    assert "'port': 8000" in kept


def test_a_service_that_names_no_phase_but_the_last_is_one_phase() -> None:
    track = PhaseTracker(100.0)
    assert not track.is_told
    track.take(JournalEntry(104.0, 0.0, "vllm", 7, "INFO:     Application startup complete."))
    assert track.is_told
    assert track.is_up
    assert track.seconds(105.0) == {"server": 5.0}
    assert PhaseTracker(100.0).seconds(105.0) == {"server": 5.0}


@given(st.text())
def test_any_text_is_a_line(text: str) -> None:
    line = JournalEntry(1.0, 1_800_000_000.0, "vllm", 7, text).line()
    assert "\n" not in line


def test_a_line_reads_back_as_it_was() -> None:
    entry = JournalEntry(1.0, 1_800_000_000.25, "vllm", 7, "(EngineCore pid=7) INFO x")
    back = read_entry(entry.line())
    assert back is not None
    assert (back.time, back.ident, back.pid, back.text) == (entry.realtime, "vllm", 7, entry.text)
    back = read_entry(replace(entry, pid=None).line())
    assert back is not None
    assert back.pid is None
