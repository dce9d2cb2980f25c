"""H18 to H20, H24, H25: processes that are gone without a word, and the echoes of that."""

import signal

from facts.diagnosis.rule import Evidence, Number, Numbers, Rank, Rule
from facts.diagnosis.rules.serving import ALWAYS

_LIMIT_S = 600
"""VLLM_ENGINE_READY_TIMEOUT_S by default (vLLM 0.32.0 envs.py:811)."""
_LOOK = "journalctl -k around that second names the OOM killer, coredumpctl a crash"


def _rank(evidence: Evidence) -> dict[str, Number | None]:
    several = evidence.scene.settings.world > 1
    rank = evidence.groups().get("rank")
    return {"rank": rank if several and isinstance(rank, int) else None}


def _signal(number: Number | None) -> str:
    """A negative exit code as a signal's name."""
    try:
        return signal.Signals(abs(int(number or 0))).name
    except ValueError:
        return f"signal {number}"


def _killed(evidence: Evidence, n: Numbers) -> str:
    code = n.get("exit_code")
    reasons = {
        -9: "the host's OOM killer, or somebody",
        -7: "a bus error: /dev/shm is full, or a file could not be paged in",
        -11: "a crash in native code",
        -6: "an abort in native code, after an error above",
    }
    reason = reasons.get(code, "somebody, or the system") if isinstance(code, int) else ""
    restart = f"; {ALWAYS}" if evidence.scene.serving else ""
    return f"{_signal(code)} came from {reason}: {_LOOK}{restart}"


def _died_by_signal(evidence: Evidence) -> bool:
    return str(evidence.groups().get("exit_code", "")).startswith("-")


def _vanished(evidence: Evidence) -> bool:
    """No worker said why: the engine's word that one failed is all there is."""
    start = evidence.scene.start
    return start.ready is None and not start.suppressed


def _elapsed(evidence: Evidence) -> float:
    began, time = evidence.scene.start.began, evidence.line.time
    return time - began if began is not None and time is not None else 0.0


_ECHO_WHY = "the process only repeats that another one failed"
_ECHO_NEXT = "journalctl of the unit from its start: the first error of a worker is the cause"

_ECHOES: tuple[Rule, ...] = (
    # Texts that only say that something failed before: told, and never the cause.
    Rule(
        cause="H18",
        title="the engine did not start",
        patterns=(
            r"Engine core initialization failed\. See root cause above",
            r"Frontend process failed during engine core initialization",
            r"EngineCore failed to start\.",
            r"EngineCore encountered a fatal error",
            r"EngineDeadError",
            r"AsyncLLM output_handler failed",
            r"RuntimeError: Executor failed\.",
        ),
        rank=Rank.ECHO,
        why=_ECHO_WHY,
        next_step=_ECHO_NEXT,
        source="vLLM 0.32.0 v1/engine/utils.py:1431, core.py:1510",
    ),
    Rule(
        cause="H18b",
        title="a worker did not start",
        patterns=(
            r"WorkerProc failed to start",
            r"WorkerProc hit an exception",
            r"Worker proc \S{1,40} died unexpectedly \(exit code: (?:0|[1-9][0-9]*|None)\)",
            r"Process group watchdog thread terminated with exception",
            r"terminate called after throwing",
        ),
        rank=Rank.ECHO,
        why=_ECHO_WHY,
        next_step=_ECHO_NEXT,
        source="vLLM 0.32.0 v1/executor/multiproc_executor.py:790, 953",
    ),
)

PROCESSES: tuple[Rule, ...] = (
    Rule(
        cause="H19",
        title="a worker was killed",
        patterns=(
            r"Worker proc (?:VllmWorker-)?(?P<rank>[0-9]{1,4}) died unexpectedly "
            r"\(exit code: (?P<exit_code>-?[0-9]{1,4})",
        ),
        when=_died_by_signal,
        rank=Rank.LOSS,
        why="a worker that ends by a signal says nothing itself, and the whole engine goes with it",
        next_step=_killed,
        source="vLLM 0.32.0 v1/executor/multiproc_executor.py:316",
        numbers=_rank,
    ),
    Rule(
        cause="H20",
        title="the engine took longer than the server waits",
        patterns=(
            r"Timed out waiting for engine core processes to start.*?"
            r"Waited (?P<waited_s>[0-9]{1,6}) ?s",
            r"Timed out waiting for engine core processes to start",
        ),
        why="with several API servers or engines, the server gives up after "
        "VLLM_ENGINE_READY_TIMEOUT_S, 600 s unless set",
        next_step="VLLM_ENGINE_READY_TIMEOUT_S of twice the expected load time",
        source="vLLM 0.32.0 v1/engine/core_client.py:743; vllm-project/vllm#35547",
    ),
    Rule(
        cause="H20",
        title="the engine lost its server",
        patterns=(
            r"Did not receive response from front-end process within (?P<minutes>[0-9]{1,6}) min",
        ),
        rank=Rank.LOSS,
        why="the server did not answer its engine: it was killed, or it hangs",
        next_step=_LOOK,
        source="vLLM 0.32.0 v1/engine/core.py:1373",
    ),
    Rule(
        cause="H20",
        title="the engine took longer than the server waits",
        patterns=(r"Failed core proc\(s\): \{\}",),
        when=lambda evidence: (
            abs(_elapsed(evidence) - _LIMIT_S) <= _LIMIT_S * 0.1
            and not any(trace.fatal and trace.logged for trace in evidence.scene.traces)
        ),
        rank=Rank.LOSS,
        why="no engine process failed, but the server gave up after VLLM_ENGINE_READY_TIMEOUT_S, "
        "600 s unless set",
        next_step="VLLM_ENGINE_READY_TIMEOUT_S of twice the expected load time",
        source="vllm-project/vllm#32116",
    ),
    Rule(
        cause="H19",
        title="a worker vanished while loading",
        patterns=(r"WorkerProc initialization failed due to an exception in a background process",),
        when=_vanished,
        rank=Rank.LOSS,
        why="no worker printed an error, so it did not fail but was killed from outside: by the "
        "host's OOM killer, a bus error (/dev/shm, a file that could not be paged in), or somebody",
        next_step=_LOOK,
        source="vLLM 0.32.0 v1/executor/multiproc_executor.py:790",
    ),
    Rule(
        cause="H19",
        title="the engine's process was killed while loading",
        patterns=(r"Failed core proc\(s\): \{'[^']{1,60}': (?P<exit_code>-[0-9]{1,4})",),
        rank=Rank.LOSS,
        why="the engine printed no error: it was killed from outside",
        next_step=_killed,
        source="vLLM 0.32.0 v1/engine/utils.py:1431",
    ),
    Rule(
        cause="H25",
        title="the engine's process was killed",
        patterns=(r"\[shutdown\] MPClient: engine core exited unexpectedly",),
        rank=Rank.LOSS,
        warns=True,
        why="the engine ended without an error of its own, so it was killed from outside, and the "
        "server exited as if all were well",
        next_step=f"{_LOOK}; {ALWAYS}",
        source="vllm-project/vllm#48966",
    ),
    *_ECHOES,
)
