"""Journals to order that more than one example needs, or that take some lines to make."""

from __future__ import annotations

from tests.facts.diagnosis.journals import (
    API,
    ENGINE,
    Made,
    echoes,
    server_fails,
    worker,
)

VALUE = "pydantic_core._pydantic_core.ValidationError: 1 validation error for {}\n  Value error, {}"
"""A refusal by pydantic."""
LOAD = (("vllm/v1/worker/gpu_worker.py", "self.model_runner.load_model()"),)
"""The call under which weights are loaded."""


def oom(tried: str = "1.53 GiB", gpu: int = 2, free: str = "699.38 MiB") -> str:
    """PyTorch's message that a GPU is full."""
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU {gpu} has a "
        f"total capacity of 94.97 GiB of which {free} is free. Including non-PyTorch memory, this "
        "process has 94.20 GiB memory in use. Of the allocated memory 90.88 GiB is allocated by "
        "PyTorch, and 1.14 GiB is reserved by PyTorch but unallocated."
    )


def invalid(config: str, message: str) -> str:
    """A start that ends because the configuration was refused."""
    return server_fails(VALUE.format(config, message))


def serving_fault(answered: bool) -> str:
    """A CUDA fault while serving; ``answered``: after a first good answer."""
    made = Made().banner(tensor_parallel_size=2).workers(2)
    made.raw("vllm[100]", "INFO:     Application startup complete.")
    if answered:
        made.raw("vllm[100]", 'INFO:     10.0.0.1:9 - "POST /v1/completions HTTP/1.1" 200 OK')
    fault = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
    made.fails(worker(1), "rpc", fault)
    made.fails(ENGINE, "step", "RuntimeError: Executor failed.")
    made.said(
        ENGINE,
        "ERROR",
        "multiproc_executor.py:315",
        "Worker proc VllmWorker-1 died unexpectedly (exit code: -6), shutting down executor.",
    )
    return made.exits(0).text


def killed(code: int, world: int = 4) -> Made:
    """A worker that a signal ends while serving."""
    made = Made().banner(tensor_parallel_size=world).workers(world).ready()
    made.wait(30).said(
        ENGINE,
        "ERROR",
        "multiproc_executor.py:315",
        f"Worker proc VllmWorker-2 died unexpectedly (exit code: {code}), shutting down executor.",
    )
    return made.fails(ENGINE, "step", "RuntimeError: Executor failed.").exits(0)


def inspected(inner: str) -> str:
    """A model whose code cannot be imported, with the inner error."""
    made = Made().banner()
    where = "registry.py:1100"
    made.said(API, "ERROR", where, "Error in inspecting model architecture 'M2ForCausalLM'")
    made.said(API, "ERROR", where, "Traceback (most recent call last):")
    made.said(API, "ERROR", where, '  File "/opt/vllm/lib/vllm/platforms/cuda.py", line 9, in f')
    made.said(API, "ERROR", where, inner)
    message = "Model architectures ['M2ForCausalLM'] failed to be inspected. Please check the logs"
    return made.crashes(VALUE.format("ModelConfig", message)).exits().text


def libnuma() -> str:
    """A CPU box without libnuma."""
    made = Made().banner()
    made.said(
        ENGINE,
        "WARNING",
        "interface.py:9",
        "Failed to import from vllm._C_AVX2: ImportError('libnuma.so.1: cannot open shared object "
        "file: No such file or directory')",
    )
    made.fails(
        ENGINE,
        "engine",
        "AttributeError: '_OpNamespace' '_C' object has no attribute 'init_cpu_memory_env'",
    )
    return made.exits().text


def nccl_shm() -> str:
    """NCCL without room in shared memory."""
    made = Made().banner(tensor_parallel_size=4).workers(4)
    made.raw(
        "vllm[301]",
        "box:301:301 [1] misc/shmutils.cc:87 NCCL WARN Error while creating shared memory segment "
        "/dev/shm/nccl-Xa1b2 (size 9637888)",
    )
    error = (
        "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)"
    )
    return echoes(made.fails(worker(1), "worker", error)).text


def custom_all_reduce() -> str:
    """A worker that the all-reduce library ends without a traceback."""
    made = Made().banner(tensor_parallel_size=2).workers(2)
    made.info(worker(0), "Graph capturing finished in 12 secs, took 1.22 GiB")
    made.raw("vllm[300]", "Failed: Cuda error csrc/custom_all_reduce.cuh:455 'invalid argument'")
    died = "Worker proc VllmWorker-0 died unexpectedly (exit code: None), shutting down executor."
    return echoes(made.said(ENGINE, "ERROR", "multiproc_executor.py:315", died)).text


def nccl_silence() -> str:
    """Nothing more after NCCL's first line."""
    made = Made().banner(tensor_parallel_size=4)
    made.info(worker(0), "world_size=4 rank=0 local_rank=0 backend=nccl")
    return made.info(worker(0), "vLLM is using nccl==2.28.9").text


def loading_silence() -> str:
    """Nothing more after the first shard."""
    made = Made().banner(tensor_parallel_size=2).workers(2)
    return made.raw("vllm[300]", "[77B blob data]").text


def waits(count: int) -> str:
    """A serving engine that does not answer for some minutes."""
    made = Made().banner(tensor_parallel_size=4).workers(4).ready()
    for _ in range(count):
        made.wait(59).info(
            ENGINE, "No available shared memory broadcast block found in 60 seconds. This typically"
        )
    return made.text


def unit_fails(text: str, status: int) -> str:
    """systemd cannot run the program."""
    made = Made()
    made.raw("systemd[7]", f"vllm-x.service: {text}")
    made.systemd(f"vllm-x.service: Main process exited, code=exited, status={status}/EXEC")
    return made.systemd("vllm-x.service: Failed with result 'exit-code'.").text


def start_times_out(ready: bool) -> str:
    """TimeoutStartSec is over, before or after the server is up."""
    made = Made()
    made.lines[0] = made.lines[0].replace("Started", "Starting")
    made.banner().workers()
    if ready:
        made.ready()
    made.wait(100).info(ENGINE, "Loading safetensors checkpoint shards: 5%")
    made.systemd("vllm-x.service: start operation timed out. Terminating.")
    made.systemd("vllm-x.service: Failed with result 'timeout'.")
    return made.text


def stopped_while_loading() -> str:
    """SIGTERM is ignored while the engine is built."""
    made = Made().banner().workers()
    made.systemd("Stopping vllm-x.service - vLLM...").wait(60)
    made.systemd("vllm-x.service: State 'stop-sigterm' timed out. Killing.")
    made.systemd("vllm-x.service: Main process exited, code=killed, status=9/KILL")
    return made.systemd("vllm-x.service: Failed with result 'timeout'.").text


def main_killed() -> str:
    """SIGKILL for the server."""
    made = Made().banner().workers().ready()
    made.systemd("vllm-x.service: Main process exited, code=killed, status=9/KILL")
    return made.systemd("vllm-x.service: Failed with result 'signal'.").text


def oom_killed() -> str:
    """The OOM killer, as systemd tells it."""
    made = killed(-9)
    made.systemd("vllm-x.service: A process of this unit has been killed by the OOM killer.")
    return made.text


def core_process(failed: str, seconds: float = 30) -> str:
    """An engine process that is gone, or late."""
    made = Made().banner(tensor_parallel_size=2).workers(2).wait(seconds)
    made.crashes(
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core "
        f"proc(s): {failed}"
    )
    return made.exits().text


def xid(number: int) -> str:
    """A line of the NVIDIA driver in the kernel's log."""
    return f"2026-11-30T10:00:20+0000 box kernel: NVRM: Xid (PCI:0000:c1:00): {number}, pid=1, x"


def sampler_v2() -> str:
    """The V2 runner's warm-up on a full GPU, in two ranks."""
    made = Made().banner(tensor_parallel_size=4, gpu_memory_utilization=0.985).workers(4)
    made.info(worker(0), "Using V2 Model Runner")
    for rank, free in ((2, "477.44 MiB"), (0, "431.44 MiB")):
        calls = (
            ("vllm/v1/worker/gpu/warmup.py", "worker_sample_tokens(grammar_output)"),
            ("vllm/v1/worker/gpu/sample/sampler.py", "logits = torch.empty_like(logits)"),
        )
        made.fails(worker(rank), "rpc", oom("594.00 MiB", rank, free), calls)
    return echoes(made).text
