"""Any text is read: formats, starts, tracebacks, and what is no journal at all."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from facts.diagnosis import from_text
from facts.diagnosis.diagnose import diagnose
from facts.diagnosis.remarks import remarks
from facts.diagnosis.result import explain
from facts.journal.formats import entry
from facts.journal.lines import read_journal
from facts.journal.phases import phases
from facts.journal.settings import settings as settings_of
from facts.journal.starts import last_chain, starts
from facts.journal.tracebacks import tracebacks
from tests.facts.diagnosis.journals import ENGINE, NAMES, Made, text_of, worker

TOKENS = st.sampled_from(
    [
        "Traceback (most recent call last):",
        '  File "a.py", line 3, in f',
        "    raise ValueError(x)",
        "ValueError: ",
        "AssertionError",
        "During handling of the above exception, another exception occurred:",
        "2026-11-30T10:00:00+0000 box systemd[1]: Started x.service - x.",
        "2026-11-30T10:00:01+0000 box systemd[1]: x.service: Main process exited, code=exited, "
        "status=1/FAILURE",
        "2026-11-30T10:00:01+0000 box vllm[3]: (Worker_TP1 pid=3) ERROR 01-01 00:00:00 "
        "[multiproc_executor.py:953] ",
        "2026-99-99T99:99:99+0000 box vllm[3]: x",
        "Feb 30 10:00:00 box kernel: NVRM: Xid (PCI:0000:c1:00): 79, x",
        '{"MESSAGE": ',
        '{"MESSAGE": [1, 300, -1, "x"], "__REALTIME_TIMESTAMP": "9e999"}',
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 0.00 MiB. GPU 0 has a "
        "total capacity of 0 bytes of which 0 bytes is free",
        "RuntimeError: CUDA out of memory occurred when warming up sampler with 0 dummy requests",
        "Free memory on device (0/0 GiB) on startup is less than desired GPU memory utilization "
        "(0, 0 GiB)",
        "non-default args: {'port': '9' * 99, 'tensor_parallel_size': 0}",
        "Total number of attention heads (0) must be divisible by tensor parallel size (0).",
        "The output_size of gate's and up's weight = 0 is not divisible by weight quantization "
        "block_n = 0.",
        "To serve at least one request with the model's max seq len (0), (0 GiB KV cache is "
        "needed, which is larger than the available KV cache memory (0 GiB)",
        "World size (0) is larger than the number of available GPUs (0)",
        "vLLM is using nccl==2",
        "GPU KV cache size: 9,,9 tokens",
        "2026-11-30T10:00:02+0000 b systemd-journald[9]: Suppressed 99999999999 messages from x",
        "2026-11-30T10:00:03+0000 b vllm[3]: [48.0K blob data]",
        "2026-11-30T09:00:03+0000 b vllm[3]: (Worker pid=3) (Worker_TP0 pid=3) INFO 01-01 00:00:00 "
        "[a.py:1] Loading weights took 2.1 seconds",
        "2026-11-30T10:00:04+0000 b vllm[3]: (a pid=3) (a pid=3) (a pid=4) x",
        "Failed: Cuda error custom_all_reduce.cuh:1 ''",
        "\x00\ud800",
    ]
)


@settings(max_examples=100, deadline=None)
@given(st.one_of(st.text(), st.lists(st.one_of(TOKENS, st.text(max_size=20))).map("\n".join)))
@example("2020-11-10T10:00:02.0 0 0:\n2020-11-10T10:00:01.0 0 0:")
def test_any_text_gives_a_result(text: str) -> None:
    found = from_text(text, text)
    if found is not None:
        assert explain(found)
        assert found.to_json()
    journal = read_journal(text)
    assert phases(journal).total >= 0
    remarks(journal)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_give_a_result(data: bytes) -> None:
    journal = read_journal(data)
    diagnose(journal, data)
    assert len(journal.lines) <= data.count(b"\n") + 1


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(NAMES), st.integers(0, 1_000_000), st.integers(0, 1_000_000))
def test_any_part_of_a_journal_gives_a_result(name: str, begin: int, end: int) -> None:
    text = text_of(name)
    a, b = sorted((begin % len(text), end % len(text)))
    diagnose(read_journal(text[a:b]))


@pytest.mark.timeout(10)
@pytest.mark.parametrize("piece", ["1", "a", "'", "(", "api_key", "NCCL WARN ", "x_y=", "--a "])
def test_very_long_lines_take_no_longer(piece: str) -> None:
    """No pattern goes over a line again and again; this took a minute once."""
    long = piece * (60_000 // len(piece))
    head = "ERROR 01-01 00:00:00 [core.py:1] "
    text = f"{head}{long}\n{long}\nTraceback (most recent call last):\n{long}\n"
    found = from_text(text)
    assert found is None or len(found.line.text) < 1000
    remarks(read_journal(long))


@pytest.mark.parametrize(
    ("line", "ident", "pid", "text"),
    [
        ("2026-11-30T10:00:00+0000 b vllm[7]: up", "vllm", 7, "up"),
        ("2026-11-30T10:00:00.123456+00:00 b vllm[7]: up", "vllm", 7, "up"),
        ("2026-11-30T10:00:00Z b systemd[1]: up", "systemd", 1, "up"),
        ("Nov 30 10:00:00 b vllm[7]: up", "vllm", 7, "up"),
        ("Nov  3 10:00:00.123456 b vllm[7]: up", "vllm", 7, "up"),
        ("Mon 2026-11-30 10:00:00 UTC b vllm[7]: up: x", "vllm", 7, "up: x"),
        ("1796000000.123456 b vllm[7]: up", "vllm", 7, "up"),
        ("[  123.456789] NVRM: Xid", "kernel", None, "NVRM: Xid"),
        (
            "[Mon Nov 30 10:00:00 2026] NVRM: Xid (PCI:1): 79",
            "kernel",
            None,
            "NVRM: Xid (PCI:1): 79",
        ),
        ('{"MESSAGE": "up", "SYSLOG_IDENTIFIER": "vllm", "_PID": "7"}', "vllm", 7, "up"),
        ('{"MESSAGE": [117, 112], "_COMM": "vllm", "_PID": "7"}', "vllm", 7, "up"),
        ('{"MESSAGE": null, "_TRANSPORT": "kernel"}', "kernel", None, ""),
    ],
)
def test_formats(line: str, ident: str, pid: int | None, text: str) -> None:
    found = entry(line)
    assert found is not None
    assert (found.ident, found.pid, found.text) == (ident, pid, text)


@pytest.mark.parametrize("line", ["", "text", "{}", "{not json", "2026-13-01T00:00:00+0000 b v: x"])
def test_lines_without_a_head(line: str) -> None:
    assert entry(line) is None


def test_an_invocation_is_kept_alone() -> None:
    lines = [
        '{"MESSAGE": "old", "_SYSTEMD_INVOCATION_ID": "a"}',
        '{"MESSAGE": "new", "_SYSTEMD_INVOCATION_ID": "b"}',
        '{"MESSAGE": "NVRM: x", "_TRANSPORT": "kernel"}',
    ]
    read = read_journal("\n".join(lines), invocation="b")
    assert [line.text for line in read.lines] == ["new", "NVRM: x"]


def test_further_lines_belong_to_the_entry_above() -> None:
    read = read_journal(
        "2026-11-30T10:00:00+0000 b vllm[7]: (Worker_TP3 pid=7) ERROR 11-30 10:00:00 [a.py:1] one\n"
        "                                    two\n"
    )
    assert [(line.text, line.rank) for line in read.lines] == [("one", 3), ("two", None)]
    assert read.lines[1].role == "Worker"


def test_starts_and_chains() -> None:
    by_hand = Made().banner().exits()
    by_hand.systemd("vllm-x.service: Scheduled restart job, restart counter is at 1.")
    by_hand.systemd("Started vllm-x.service - vLLM.").exits()
    by_hand.systemd("Started session-4.scope - Session 4 of User root.")
    by_hand.systemd("Started cron.service - Regular background program processing daemon.")
    by_hand.systemd("Started vllm-x.service - vLLM.")
    found = starts(read_journal(by_hand.text))
    assert [(start.nth, start.chained) for start in found] == [(0, False), (1, True), (2, False)]
    assert [start.nth for start in last_chain(found)] == [2]
    assert [start.exit_status for start in found] == [1, 1, None]


def test_starting_and_started_are_one_start() -> None:
    made = Made()
    made.lines.clear()
    made.systemd("Starting vllm-x.service - vLLM...").wait(5)
    made.systemd("Started vllm-x.service - vLLM.").wait(5).exits()
    (only,) = starts(read_journal(made.text))
    assert only.began is not None
    assert only.last is not None
    assert only.last - only.began == 12


@pytest.mark.parametrize(
    ("prefix", "process", "rank", "rest"),
    [
        ("(Worker_TP3 pid=7) ", "Worker_TP3", 3, "torn"),
        ("(Worker pid=7) (Worker_TP3_EP3 pid=7) ", "Worker_TP3_EP3", 3, "torn"),
        ("(Worker pid=7) (Other pid=8) ", "Worker", None, "(Other pid=8) torn"),
        ("(ApiServer_1 pid=7) ", "ApiServer_1", None, "torn"),
    ],
)
def test_names_of_processes(prefix: str, process: str, rank: int | None, rest: str) -> None:
    (line,) = read_journal(f"2026-11-30T10:00:00+0000 b vllm[7]: {prefix}torn").lines
    assert (line.process, line.rank, line.text) == (process, rank, rest)


def test_mixed_tracebacks_are_put_together() -> None:
    first = Made().fails(worker(0), "worker", "ValueError: a", (("x.py", "f(a)"),)).lines[1:]
    second = Made().fails(worker(1), "worker", "ValueError: b", (("y.py", "g(b)"),)).lines[1:]
    mixed = [line for pair in zip(first, second, strict=True) for line in pair]
    found = tracebacks(read_journal("\n".join(mixed)).lines)
    assert [trace.chain[0].frames[0].file for trace in found] == [
        "/opt/vllm/lib/x.py",
        "/opt/vllm/lib/y.py",
    ]
    assert [one.line.text for trace in found for one in trace.chain if one.line] == [
        "ValueError: a",
        "ValueError: b",
    ]


def test_settings_with_values_that_are_no_literals() -> None:
    made = Made().info(
        "APIServer pid=1", "non-default args: {'port': 9001, 'x': <A.b: 1>, 'max_num_seqs': 4}"
    )
    made.info(ENGINE, "Using V2 Model Runner")
    found = settings_of(read_journal(made.text).lines)
    assert (found.port, found.max_num_seqs, found.runner) == (9001, 4, "V2")
