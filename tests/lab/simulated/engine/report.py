"""How each process tells of a failure: the worker the cause, the others its echoes."""

from __future__ import annotations

from .console import Console, traceback, write_error
from .failures import Failure

_ENGINE = (
    ("vllm/v1/engine/core.py", 1482, "run_engine_core"),
    ("vllm/v1/engine/core.py", 1194, "__init__"),
)
_EXECUTOR = (
    *_ENGINE,
    ("vllm/v1/executor/abstract.py", 126, "__init__"),
    ("vllm/v1/executor/multiproc_executor.py", 815, "wait_for_ready"),
)
_CALL = (
    *_ENGINE,
    ("vllm/v1/executor/abstract.py", 141, "compile_or_warm_up_model"),
    ("vllm/v1/executor/multiproc_executor.py", 444, "get_response"),
)
_SERVER = (
    ("vllm/entrypoints/launchers/api_server/entry.py", 177, "run_server"),
    ("vllm/entrypoints/launchers/api_server/entry.py", 195, "run_server_worker"),
)
_CLIENT = (
    *_SERVER,
    ("vllm/v1/engine/core_client.py", 682, "__init__"),
    ("vllm/v1/engine/utils.py", 1431, "wait_for_engine_startup"),
)

UNINITIALISED = (
    "Exception: WorkerProc initialization failed due to an exception in a background process. "
    "See stack trace for root cause."
)
ILLEGAL_ACCESS = "CUDA error: an illegal memory access was encountered"
_ASYNCHRONOUS = (
    "CUDA kernel errors might be asynchronously reported at some other API call, so the "
    "stacktrace below might be incorrect.\n"
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
)


def by_worker(console: Console, failure: Failure) -> None:
    """The cause, from the worker's own process."""
    if failure.before is not None:
        console.error(*failure.before)
    text = traceback(failure.frames, failure.error)
    if failure.cause is not None:
        error, frames = failure.cause
        joint = "\n\nThe above exception was the direct cause of the following exception:\n\n"
        text = traceback(frames, error) + joint + text
    if failure.stage == "worker-start":
        console.error("multiproc_executor.py:953", f"WorkerProc failed to start.\n{text}")
    else:
        # A failed call prints its traceback twice.
        console.error("multiproc_executor.py:1063", f"WorkerProc hit an exception.\n{text}\n{text}")


def by_engine(console: Console, failure: Failure, ranks: int) -> None:
    """The echo of a worker's failure, or the engine's own."""
    if failure.stage == "engine" or ranks == 1:
        if failure.before is not None:
            console.error(*failure.before)
        text = traceback((*_ENGINE, *failure.frames), failure.error)
    elif failure.stage == "worker-call":
        text = traceback(
            _CALL,
            f"RuntimeError: Worker failed with error '{failure.message}', please check the stack "
            "trace above for the root cause",
        )
    else:
        _workers_left(console, ranks)
        text = traceback(_EXECUTOR, UNINITIALISED)
    console.error("core.py:1510", f"EngineCore failed to start.\n{text}")
    if failure.stage in {"engine", "worker-call"} and ranks > 1:
        worker_died(console, 0, 0)
        _workers_left(console, ranks - 1)
    write_error(f"Process EngineCore:\n{text}\n")


def _workers_left(console: Console, count: int) -> None:
    where = "multiproc_executor.py"
    console.say(f"{where}:479", f"[shutdown] Executor: waiting for worker exit count={count}")
    console.say(f"{where}:486", "[shutdown] Executor: all workers exited gracefully")


def worker_died(console: Console, rank: int, status: int) -> None:
    """A worker's process is gone. Negative status: by that signal."""
    console.error(
        "multiproc_executor.py:315",
        f"Worker proc VllmWorker-{rank} died unexpectedly (exit code: {status}), "
        "shutting down executor.",
    )


def by_server() -> None:
    """The last echo, from the API server."""
    write_error(
        traceback(
            _CLIENT,
            "RuntimeError: Engine core initialization failed. See root cause above. "
            "Failed core proc(s): {'EngineCore': 1}",
        )
        + "\n"
    )


def of_server(failure: Failure) -> None:
    """A failure of the API server itself."""
    write_error(traceback((*_SERVER, *failure.frames), failure.error) + "\n")


def interrupted() -> None:
    """SIGTERM while the configuration is read."""
    frames = (*_SERVER, ("vllm/entrypoints/launchers/api_server/entry.py", 172, "_interrupt_init"))
    write_error(traceback(frames, "KeyboardInterrupt: terminated") + "\n")


def fault_in_worker(console: Console) -> None:
    """A kernel fault while a request is computed, from each worker."""
    frames = (
        ("vllm/v1/executor/multiproc_executor.py", 998, "enqueue_output"),
        ("vllm/v1/worker/gpu/async_utils.py", 174, "get_output"),
    )
    error = f"torch.AcceleratorError: {ILLEGAL_ACCESS}\n{_ASYNCHRONOUS}"
    console.error(
        "multiproc_executor.py:1000",
        f"Error getting async model runner output\n{traceback(frames, error)}",
    )


def fatal_in_engine(console: Console, message: str) -> None:
    """The engine dies while serving."""
    frames = (
        ("vllm/v1/engine/core.py", 1496, "run_engine_core"),
        ("vllm/v1/engine/core.py", 1555, "run_busy_loop"),
    )
    text = traceback(frames, f"RuntimeError: {message}")
    console.error("core.py:1512", f"EngineCore encountered a fatal error.\n{text}")
    write_error(f"Process EngineCore:\n{text}\n")


def engine_dead(console: Console) -> None:
    """The API server learns that the engine is dead."""
    frames = (
        ("vllm/v1/engine/async_llm.py", 849, "output_handler"),
        ("vllm/v1/engine/core_client.py", 1235, "get_output_async"),
    )
    error = (
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack "
        "trace (above) for the root cause."
    )
    console.error(
        "async_llm.py:906", f"AsyncLLM output_handler failed.\n{traceback(frames, error)}"
    )
