"""The ways in which a start fails, with the texts that vLLM 0.32.0 and torch print for them.

Each entry names the knowledge behind it: the place in vLLM's source that raises it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from ..gpus.description import MIB
from .budget import GIB, Budget, gib
from .console import Frames
from .model import Model

Stage = Literal["server", "worker-start", "worker-call", "engine", "killed"]
"""Who fails: the API server before the engine is there, a worker while it starts, a worker in a
call of the engine, the engine itself, or a worker by a signal."""

CONSERVING = "See https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more"

_SAMPLER: Frames = (
    ("vllm/v1/worker/gpu_model_runner.py", 5968, "_dummy_sampler_run"),
    ("vllm/v1/sample/sampler.py", 289, "sample"),
    ("vllm/v1/sample/ops/topk_topp_sampler.py", 274, "forward_native"),
)
_WARM_UP: Frames = (
    ("vllm/v1/worker/gpu_worker.py", 955, "compile_or_warm_up_model"),
    ("vllm/v1/worker/gpu/warmup.py", 381, "_warmup_kernels"),
    ("vllm/v1/worker/gpu/sample/sampler.py", 242, "apply_sampling_params"),
)
_LOAD: Frames = (
    ("vllm/v1/worker/gpu_worker.py", 594, "load_model"),
    ("vllm/model_executor/model_loader/base_loader.py", 76, "load_model"),
)
_FILES: Frames = (
    *_LOAD,
    ("vllm/model_executor/model_loader/weight_utils.py", 607, "filter_files_not_needed"),
)
_DEVICE: Frames = (("vllm/v1/worker/gpu_worker.py", 402, "init_device"),)


@dataclass(frozen=True)
class Failure:
    """One way to fail.

    + phase: when
    + error: type and message of the exception
    + frames: of its traceback
    + cause: exception that it was raised from, with its frames
    + before: file:line and message of an ERROR line that comes first
    """

    stage: Stage
    phase: str
    error: str
    frames: Frames = ()
    cause: tuple[str, Frames] | None = None
    before: tuple[str, str] | None = None

    @property
    def message(self) -> str:
        """The exception's message, without its type."""
        return self.error.partition(": ")[2]


def out_of_memory(budget: Budget, rank: int, wanted: int, free: int) -> str:
    """torch's message."""
    used = budget.total - free
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {_size(wanted)}. GPU "
        f"{rank} has a total capacity of {gib(budget.total)} GiB of which {_size(free)} is free. "
        f"Including non-PyTorch memory, this process has {_size(used)} memory in use."
    )


def _size(size: int) -> str:
    return f"{gib(size)} GiB" if size >= GIB else f"{size / MIB:.2f} MiB"


def free_memory(budget: Budget, _: Model, rank: int) -> Failure:
    """v1/worker/utils.py:761."""
    return Failure(
        "worker-start",
        "init",
        f"ValueError: Free memory on device cuda:{rank} ({gib(budget.free)}/{gib(budget.total)} "
        "GiB) on startup is less than desired GPU memory utilization "
        f"({budget.utilization}, {gib(budget.requested)} GiB). Decrease GPU memory utilization "
        "or reduce GPU memory used by other processes.",
        (*_DEVICE, ("vllm/v1/worker/utils.py", 761, "request_memory")),
    )


def weights_oom(budget: Budget, _: Model, rank: int) -> Failure:
    """v1/worker/gpu_model_runner.py:5140."""
    error = out_of_memory(budget, rank, int(1.25 * GIB), min(max(0, budget.free), 700 * MIB))
    return Failure(
        "worker-start",
        "load",
        error,
        _LOAD,
        before=(
            "gpu_model_runner.py:5147",
            "Failed to load model - not enough GPU memory. Try lowering --gpu-memory-utilization "
            "to free memory for weights, increasing --tensor-parallel-size, or using "
            f"--quantization. {CONSERVING} tips. (original error: {error.partition(': ')[2]})",
        ),
    )


def no_cache_blocks(_: Budget, __: Model, ___: int) -> Failure:
    """v1/core/kv_cache_utils.py:1010."""
    return Failure(
        "engine",
        "profile",
        "ValueError: No available memory for the cache blocks. Try increasing "
        "`gpu_memory_utilization` when initializing the engine (this flag also controls CPU "
        f"memory reservation on the CPU backend, despite its name). {CONSERVING} details.",
        (("vllm/v1/core/kv_cache_utils.py", 1010, "_check_enough_kv_cache_memory"),),
    )


def kv_too_small(budget: Budget, _: Model, __: int) -> Failure:
    """v1/core/kv_cache_utils.py:1031."""
    return Failure(
        "engine",
        "profile",
        "ValueError: To serve at least one request with the model's max seq len "
        f"({budget.length}), ({gib(budget.needed)} GiB KV cache is needed, which is larger than "
        f"the available KV cache memory ({gib(budget.kv)} GiB). Based on the available memory, "
        f"the estimated maximum model length is {budget.tokens}. Try increasing "
        "`gpu_memory_utilization` (which also controls CPU memory on the CPU backend) or "
        f"decreasing `max_model_len` when initializing the engine. {CONSERVING} details.",
        (("vllm/v1/core/kv_cache_utils.py", 1031, "_check_enough_kv_cache_memory"),),
    )


def sampler_oom(budget: Budget, _: Model, rank: int) -> Failure:
    """v1/worker/gpu_model_runner.py:5991, the V1 runner."""
    wanted = budget.sequences * budget.vocabulary * 8
    return Failure(
        "worker-call",
        "warmup",
        "RuntimeError: CUDA out of memory occurred when warming up sampler with "
        f"{budget.sequences} dummy requests. Please try lowering `max_num_seqs` or "
        "`gpu_memory_utilization` when initializing the engine.",
        (
            ("vllm/v1/worker/gpu_worker.py", 1058, "compile_or_warm_up_model"),
            ("vllm/v1/worker/gpu_model_runner.py", 5990, "_dummy_sampler_run"),
        ),
        cause=(out_of_memory(budget, rank, wanted, 611 * MIB), _SAMPLER),
    )


def warm_up_oom(budget: Budget, _: Model, rank: int) -> Failure:
    """v1/worker/gpu/warmup.py, the V2 runner: no word of the sampler in the message."""
    wanted = budget.sequences * budget.vocabulary * 4
    error = out_of_memory(budget, rank, wanted, min(max(0, budget.left), wanted - MIB))
    return Failure("worker-call", "warmup", error, _WARM_UP)


def graph_oom(budget: Budget, _: Model, rank: int) -> Failure:
    """v1/worker/gpu/model_runner.py, while graphs are captured."""
    error = out_of_memory(budget, rank, int(1.1 * GIB), 402 * MIB)
    frames = (("vllm/v1/worker/gpu/model_runner.py", 1116, "capture_model"),)
    return Failure("worker-call", "capture", error, frames)


def moving_baseline(budget: Budget, _: Model, __: int) -> Failure:
    """v1/worker/gpu_worker.py:719."""
    return Failure(
        "worker-call",
        "profile",
        f"AssertionError: Error in memory profiling. Initial free memory {gib(budget.free)} GiB, "
        f"current free memory {gib(budget.free + 44 * GIB)} GiB. This happens when other "
        "processes sharing the same container release GPU memory while vLLM is profiling during "
        "initialization. To fix this, ensure consistent GPU memory allocation or isolate vLLM in "
        "its own container.",
        (("vllm/v1/worker/gpu_worker.py", 719, "determine_available_memory"),),
    )


def driver_too_old(_: Budget, __: Model, ___: int) -> Failure:
    """torch, for a wheel of CUDA 13 on a driver of CUDA 12.8."""
    return Failure(
        "worker-start",
        "init",
        "RuntimeError: The NVIDIA driver on your system is too old (found version 12080). Please "
        "update your GPU driver by downloading and installing a new version.",
        _DEVICE,
    )


def nccl_error(_: Budget, __: Model, ___: int) -> Failure:
    """distributed/device_communicators/pynccl_wrapper.py:448."""
    return Failure(
        "worker-start",
        "init",
        "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)",
        (("vllm/distributed/device_communicators/pynccl_wrapper.py", 448, "NCCL_CHECK"),),
    )


def missing_shard(_: Budget, model: Model, __: int) -> Failure:
    """model_executor/model_loader/weight_utils.py:607."""
    names = model.missing or ("model-00001-of-00002.safetensors",)
    listed = ", ".join(f"'{model.path}/{name}'" for name in names)
    error = f"FileNotFoundError: Weight files referenced in index but missing: {{{listed}}}"
    return Failure("worker-start", "load", error, _FILES)


def broken_shard(_: Budget, model: Model, __: int) -> Failure:
    """The safetensors library; it does not name the file."""
    words = model.broken or "incomplete metadata, file not fully covered"
    return Failure(
        "worker-start",
        "load",
        f"safetensors._safetensors_rust.SafetensorError: Error while deserializing header: {words}",
        _FILES,
    )


def killed(_: Budget, __: Model, ___: int) -> Failure:
    """The host's out-of-memory killer takes a worker: no message of its own."""
    return Failure("killed", "load", "")


NO_DEVICE = Failure(
    "server",
    "config",
    "RuntimeError: Failed to infer device type, please set the environment variable "
    "`VLLM_LOGGING_LEVEL=DEBUG` to turn on verbose logging to help debug the issue.",
    (("vllm/config/device.py", 55, "__post_init__"),),
)
"""No card is visible (config/device.py:56)."""

Build = Callable[[Budget, Model, int], Failure]

CATALOGUE: Mapping[str, Build] = {
    "free-memory": free_memory,
    "weights-oom": weights_oom,
    "no-cache-blocks": no_cache_blocks,
    "kv-too-small": kv_too_small,
    "sampler-oom": sampler_oom,
    "warm-up-oom": warm_up_oom,
    "graph-oom": graph_oom,
    "moving-baseline": moving_baseline,
    "driver-too-old": driver_too_old,
    "nccl-error": nccl_error,
    "missing-shard": missing_shard,
    "broken-shard": broken_shard,
    "no-device": lambda _, __, ___: NO_DEVICE,
    "killed": killed,
}
"""Failures that a plan may name."""


def natural(budget: Budget, model: Model, phase: str, booked: bool) -> str:
    """The failure that the box itself brings about in a phase; empty for none.

    + booked: whether there are GPUs whose memory can run out
    """
    files = (("missing-shard", bool(model.missing)), ("broken-shard", bool(model.broken)))
    if not booked:
        return next((name for name, fails in files if fails and phase == "load"), "")
    checks = {
        "init": (("free-memory", budget.free < budget.requested),),
        "load": (*files, ("weights-oom", budget.weights > budget.free)),
        "profile": (
            ("no-cache-blocks", budget.kv <= 0),
            ("kv-too-small", budget.needed > budget.kv),
        ),
        "warmup": (("warm-up-oom", budget.warm_up > budget.left),),
    }
    return next((name for name, fails in checks.get(phase, ()) if fails), "")
