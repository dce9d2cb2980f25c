"""H18: texts that only say that something failed before. They are told, and never the cause."""

from __future__ import annotations

from facts.diagnosis.rule import Rank, Rule

_WHY = "the process only repeats that another one failed"
_NEXT = "journalctl of the unit from its start: the first error of a worker is the cause"

ECHOES: tuple[Rule, ...] = (
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
        why=_WHY,
        next_step=_NEXT,
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
        why=_WHY,
        next_step=_NEXT,
        source="vLLM 0.32.0 v1/executor/multiproc_executor.py:790, 953",
    ),
)
