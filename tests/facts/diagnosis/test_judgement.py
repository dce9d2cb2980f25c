"""What a diagnosis must not fall for, and what it says where it does not know."""

from __future__ import annotations

import pytest

from facts.diagnosis import Hints, from_text
from facts.diagnosis.__main__ import explained
from facts.diagnosis.remarks import remarks
from facts.diagnosis.result import UNKNOWN, explain
from facts.diagnosis.rules import HARMLESS
from facts.journal.lines import read_journal
from tests.facts.diagnosis.examples.scenes import nccl_silence, oom, serving_fault, waits
from tests.facts.diagnosis.journals import (
    API,
    ENGINE,
    Made,
    echoes,
    worker,
    worker_fails,
)


def test_the_unknown_stays_unknown_and_is_shown() -> None:
    journal = worker_fails(
        "ZeroDivisionError: division by zero", (("layers/odd.py", "return a / b"),)
    )
    found = from_text(journal)
    assert found is not None
    assert (found.cause, found.known) == (UNKNOWN, False)
    assert found.line.process == "Worker_TP2"
    assert "division by zero" in found.line.text
    assert "return a / b" in explain(found)


def test_the_first_workers_error_is_the_cause() -> None:
    made = Made().banner(tensor_parallel_size=2).workers(2)
    made.fails(worker(1), "worker", "ValueError: torn")
    made.fails(worker(0), "worker", "RuntimeError: NCCL error: remote process exited")
    found = from_text(echoes(made).text)
    assert found is not None
    assert (found.cause, found.line.process) == (UNKNOWN, "Worker_TP1")


def test_a_known_cause_goes_before_lost_peers() -> None:
    made = Made().banner(tensor_parallel_size=2).workers(2)
    made.fails(worker(0), "rpc", "RuntimeError: [1] Connection closed by peer [10.0.0.1]")
    made.fails(worker(1), "rpc", "OSError: [Errno 28] No space left on device")
    found = from_text(echoes(made).text)
    assert found is not None
    assert found.cause == "D8"
    assert any("closed by peer" in quote.text for quote in found.echoes)


def test_an_unwritable_home_is_harmless_where_nothing_is_compiled() -> None:
    made = Made().banner()
    for line in ("Error saving model info cache.", "Traceback (most recent call last):"):
        made.said(API, "ERROR", "registry.py:1041", line)
    made.said(
        API, "ERROR", "registry.py:1041", "PermissionError: [Errno 13] Permission denied: '/'"
    )
    made.workers()
    assert from_text(made.text) is None
    assert from_text(made.ready().text) is None
    assert "D9-model-info" in {remark.cause for remark in remarks(read_journal(made.text))}
    worse = made.fails(ENGINE, "step", "ValueError: other").exits(0)
    found = from_text(worse.text)
    assert found is not None
    assert "ValueError: other" in found.line.text


def test_before_the_ready_line_is_no_cause_of_a_later_death() -> None:
    made = Made().banner().workers()
    made.said(API, "ERROR", "a.py:1", "[Errno 24] Too many open files")
    made.ready().fails(worker(0), "rpc", "ValueError: other").exits(0)
    found = from_text(made.text)
    assert found is not None
    assert (found.cause, found.phase) == ("H21", "serving")


def test_a_requests_own_error_does_not_end_the_service() -> None:
    made = Made().banner().workers().ready()
    made.crashes("ValueError: [Errno 28] No space left on device")
    assert from_text(made.text) is None


def test_a_stop_while_serving_is_no_failure() -> None:
    made = Made().banner().workers().ready().systemd("Stopping vllm-x.service - vLLM...")
    made.fails(ENGINE, "step", "RuntimeError: Executor failed.").exits(0)
    assert from_text(made.text) is None


def test_a_failure_before_the_stop_is_one() -> None:
    made = Made().banner().workers()
    made.fails(worker(0), "worker", "OSError: [Errno 28] No space left on device")
    made.systemd("Stopping vllm-x.service - vLLM...").exits(0)
    found = from_text(made.text)
    assert found is not None
    assert found.cause == "D8"


def test_still_loading_is_no_failure() -> None:
    assert from_text(Made().banner().workers().text) is None
    assert from_text("") is None


def test_an_error_on_stderr_counts_if_nothing_follows() -> None:
    made = Made().banner().crashes("RuntimeError: No CUDA GPUs are available")
    found = from_text(made.text)
    assert found is not None
    assert found.cause == "H4"
    assert from_text(made.workers().text) is None


def test_an_end_without_a_word() -> None:
    serving = from_text(Made().banner().workers().ready().exits(0).text)
    loading = from_text(Made().banner().workers().exits(3).text)
    assert serving is not None
    assert loading is not None
    assert (serving.cause, loading.cause) == ("H25", UNKNOWN)
    assert loading.numbers == {"exit_status": 3}


@pytest.mark.parametrize(("seconds", "hangs"), [(60, False), (200, True)])
def test_silence_after_nccl(seconds: float, hangs: bool) -> None:
    journal = read_journal(nccl_silence())
    last = journal.lines[-1].time
    assert last is not None
    found = from_text(nccl_silence(), hints=Hints(now=last + seconds))
    assert (found is not None) is hangs


def test_a_hang_that_was_stopped_is_still_a_hang() -> None:
    made = Made().banner(tensor_parallel_size=4)
    made.info(worker(0), "vLLM is using nccl==2.28.9").wait(500)
    made.systemd("Stopping vllm-x.service - vLLM...").exits(0)
    found = from_text(made.text)
    assert found is not None
    assert (found.cause, found.numbers["silent_minutes"]) == ("H11", 8)


def test_a_kill_after_a_silence_is_no_hang() -> None:
    made = Made().banner().workers().wait(900)
    made.systemd("vllm-x.service: Main process exited, code=killed, status=9/KILL")
    found = from_text(made.text)
    assert found is not None
    assert found.cause == "H24"


def test_minutes_of_waiting_while_compiling_are_no_hang() -> None:
    assert from_text(waits(4)) is None
    made = Made().banner(tensor_parallel_size=4).workers(4)
    made.info(worker(0), "Model loading took 53.75 GiB memory and 60 seconds")
    made.info(worker(0), "Starting torch.compile")
    for _ in range(8):
        made.wait(59).info(ENGINE, "No available shared memory broadcast block found in 60 seconds")
    assert from_text(made.text) is None
    made.info(worker(0), "torch.compile took 480.0 s in total")
    for _ in range(8):
        made.wait(59).info(ENGINE, "No available shared memory broadcast block found in 60 seconds")
    found = from_text(made.text)
    assert found is not None
    assert found.cause == "H11"


def test_the_oom_killers_other_victims_are_no_cause() -> None:
    line = "2026-11-30T10:00:09+0000 b kernel: Out of memory: Killed process {} ({}) total-vm:1kB"
    found = from_text(serving_fault(True), line.format(9999, "postgres"))
    assert found is not None
    assert found.cause == "H25"
    found = from_text(serving_fault(True), line.format(301, "comm"))
    assert found is not None
    assert (found.cause, found.numbers["pid"]) == ("H19", 301)


def test_old_kernel_messages_are_no_cause() -> None:
    old = "2026-11-29T10:00:09+0000 b kernel: NVRM: Xid (PCI:0000:c1:00): 79, GPU has fallen off"
    found = from_text(serving_fault(True), old)
    assert found is not None
    assert found.cause == "H25"


def test_kernel_messages_without_a_time_need_gpu_trouble() -> None:
    line = "[ 100.123456] NVRM: Xid (PCI:0000:c1:00): 79, pid=1, GPU has fallen off the bus."
    found = from_text(serving_fault(True), line)
    assert found is not None
    assert found.cause == "H23"
    found = from_text(worker_fails("OSError: [Errno 28] No space left on device"), line)
    assert found is not None
    assert found.cause == "D8"


def test_a_program_fault_is_not_the_hardwares() -> None:
    line = "2026-11-30T10:00:12+0000 b kernel: NVRM: Xid (PCI:0000:c1:00): 31, pid=301, MMU Fault"
    found = from_text(serving_fault(True), line)
    assert found is not None
    assert found.cause == "H25"


def test_the_failure_of_a_chain_that_recovered_says_so() -> None:
    made = Made().banner().workers()
    made.fails(
        ENGINE,
        "engine",
        "AssertionError: Error in memory profiling. Initial free memory "
        "1.0 GiB, current free memory 9.0 GiB.",
    ).exits()
    made.systemd("vllm-x.service: Scheduled restart job, restart counter is at 1.")
    made.systemd("Started vllm-x.service - vLLM.").banner().workers().ready()
    found = from_text(made.text)
    assert found is not None
    assert (found.cause, found.recovered, found.attempt) == ("M6", True, 1)
    assert "became ready" in explain(found)


def test_secrets_are_not_quoted() -> None:
    made = Made().banner().crashes("ValueError: api_key=sk-12345 token: hf_abcdefghijklmnopqrst")
    found = from_text(made.exits().text)
    assert found is not None
    assert "sk-12345" not in explain(found)
    assert "hf_abcdefgh" not in explain(found)


@pytest.mark.parametrize(("version", "seqs"), [("0.32.0", 256), ("0.15.1", 128)])
def test_sequences_are_computed_from_what_was_left(version: str, seqs: int) -> None:
    made = Made().banner(tensor_parallel_size=4, gpu_memory_utilization=0.95)
    made.lines = [line.replace("0.32.0", version) for line in made.lines]
    made.workers(4).said(worker(0), "INFO", "gpu_model_runner.py:1", "Model loading took 5 GiB")
    made.fails(worker(0), "rpc", f"{oom(gpu=0)}", (("x.py", "self._dummy_sampler_run(h)"),))
    made.fails(
        worker(0),
        "rpc",
        "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy "
        "requests.",
    )
    found = from_text(echoes(made).text)
    assert found is not None
    assert found.numbers["fits_max_num_seqs"] == seqs


@pytest.mark.parametrize("rule", HARMLESS, ids=[rule.cause for rule in HARMLESS])
def test_harmless_texts_are_remarks_and_no_cause(rule: object) -> None:
    texts = {
        "A5-chat-refused": 'INFO:     1.1.1.1:1 - "POST /v1/chat/completions HTTP/1.1" 400 Bad',
        "P3-refined": "FP8 MoE block scales refined from [128, 128] to [64, 64] to fit the "
        "TP-sharded intermediate size 192.",
        "H6": "Detected different devices in the system: A, B. Please make sure to set",
        "H12": "Custom allreduce is disabled because it's not supported on more than two PCIe-only "
        "GPUs.",
        "H12b": "Custom allreduce is disabled because your platform lacks GPU P2P capability or "
        "P2P test failed.",
        "H15-degraded": "FlashInfer kernels are disabled: flashinfer-cubin is not installed",
        "H13-limit": "Found ulimit of 1024 and failed to automatically increase with error x",
        "P9-allowed": "User-specified max_model_len (9) is greater than the derived max_model_len",
        "D9-model-info": "Error saving model info cache.",
        "H11-waiting": "No available shared memory broadcast block found in 60 seconds.",
        "A12-config": "Using default MoE config. Performance might be sub-optimal!",
    }
    cause = rule.cause  # type: ignore[attr-defined]
    made = Made().banner().workers().ready()
    made.said(worker(0), "WARNING", "a.py:1", texts[cause])
    (found,) = [one for one in remarks(read_journal(made.text)) if one.cause == cause]
    assert found.why
    assert found.next_step
    assert from_text(made.text) is None


def vanished(*more: str) -> str:
    """A worker that is gone without a word."""
    made = Made().banner(tensor_parallel_size=2).workers(2)
    for line in more:
        made.raw("systemd-journald[61]", line)
    return echoes(made).text


def test_what_journald_dropped_may_hold_the_cause() -> None:
    killed = from_text(vanished())
    assert killed is not None
    assert killed.cause == "H19"
    lost = from_text(vanished("Suppressed 4711 messages from vllm-x.service"))
    assert lost is not None
    assert lost.cause == UNKNOWN
    assert "4711 lines" in lost.next_step
    assert "LogRateLimitIntervalSec=0" in lost.next_step


def test_dropped_lines_are_not_told_where_the_cause_is_known() -> None:
    made = Made().banner().workers()
    made.raw("systemd-journald[61]", "Suppressed 4711 messages from vllm-x.service")
    made.fails(worker(0), "worker", "OSError: [Errno 28] No space left on device")
    found = from_text(echoes(made).text)
    assert found is not None
    assert found.cause == "D8"
    assert "4711" not in found.next_step


@pytest.mark.parametrize("letter", ["x", "\u00e9"])
def test_the_rest_of_a_cut_line_is_as_harmless_as_its_beginning(letter: str) -> None:
    """A dump of a request at ERROR: any word may stand in it, beyond the first 48 KiB too."""
    made = Made().banner().workers().ready()
    head = "(EngineCore pid=200) ERROR 11-30 10:00:09 [dump_input.py:79] prompt="
    words = "CUDA out of memory. Tried to allocate 9.00 GiB"
    whole = f"{head}{letter * 120_000}{words}".encode()
    for at in range(0, len(whole), 48 * 1024):
        piece = whole[at : at + 48 * 1024]
        try:
            made.raw("vllm[200]", piece.decode())
        except UnicodeDecodeError:
            made.raw("vllm[200]", "[48.0K blob data]" if len(piece) == 48 * 1024 else words)
    made.fails(worker(0), "rpc", "OSError: [Errno 24] Too many open files").exits(0)
    found = from_text(made.text)
    assert found is not None
    assert found.cause == "H13"
    assert not any("out of memory" in quote.text for quote in (*found.same, *found.echoes))
    lines = read_journal(made.text).lines
    (said,) = [line for line in lines if line.text.endswith(words)]
    assert (said.level, said.source) == ("ERROR", "dump_input.py")


def test_a_journal_is_explained_by_hand() -> None:
    made = Made().banner(tensor_parallel_size=2).workers(2)
    made.said(worker(0), "WARNING", "a.py:1", "Custom allreduce is disabled because it's not sup")
    assert explained(made.ready().text).startswith("no failed start")
    made = Made().banner().workers()
    made.info(ENGINE, "Error saving model info cache.")
    made.fails(worker(0), "worker", "OSError: [Errno 28] No space left on device")
    told = explained(echoes(made).text.encode())
    assert told.startswith("cause: D8")
    assert "next: " in told
    assert "besides: " in told
