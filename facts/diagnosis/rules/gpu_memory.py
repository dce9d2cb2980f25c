"""M1 to M7: what the engine itself says about missing GPU memory."""

import math

from facts.diagnosis.memory import memory_numbers, more_ranks, sampler_remedy, sequences
from facts.diagnosis.rule import Evidence, Number, Numbers, Rule, floating
from inventory.fit.settings.resolve import MOST_UTILISATION_SEVERAL

_G = r"(?P<{}>-?[0-9]{{1,9}}(?:\.[0-9]{{1,9}})?)"
_FREE, _TOTAL = _G.format("free_gib"), _G.format("total_gib")
_UTIL, _REQUESTED = _G.format("util"), _G.format("requested_gib")
_NEEDED, _AVAILABLE = _G.format("needed_gib"), _G.format("available_gib")
_INITIAL, _CURRENT = _G.format("initial_free_gib"), _G.format("current_free_gib")
_LENGTH = r"(?P<max_model_len>[0-9]{1,12})"

WEIGHTS_WHY = (
    "the weights of one rank are larger than what its GPU has free, so no setting of the engine "
    "makes them fit"
)


def weights_remedy(evidence: Evidence, n: Numbers) -> str:
    """How weights that are larger than a GPU come to fit."""
    scene = evidence.scene
    tp = max(1, scene.settings.tp)
    on_disk = scene.engine.checkpoint_gib
    lowering = "lowering --gpu-memory-utilization, which the message also proposes, does not help"
    if on_disk is None:
        return (
            f"--tensor-parallel-size {tp * 2} or larger, or a quantised checkpoint (FP8, NVFP4, "
            f"AWQ); stop whatever else holds these GPUs; {lowering}"
        )
    size = more_ranks(scene, on_disk / tp)
    n["weights_gib_per_rank"] = round(on_disk / tp, 2)
    n["tensor_parallel_size"] = size
    return (
        f"the checkpoint needs {on_disk / tp:.0f} GiB a rank at TP{tp}: --tensor-parallel-size "
        f"{size} ({on_disk / size:.0f} GiB a rank), or a quantised checkpoint; {lowering}"
    )


def _share(n: Numbers) -> float:
    """The utilisation that what is free allows, in hundredths."""
    return math.floor(floating(n["free_gib"]) / max(floating(n["total_gib"]), 0.01) * 100) / 100


def _free_memory(_: Evidence, n: Numbers) -> str:
    free, total = floating(n["free_gib"]), floating(n["total_gib"])
    most = _share(n)
    n["held_gib"] = round(total - free, 2)
    n["fits_gpu_memory_utilization"] = most
    return (
        f"nvidia-smi names who holds {total - free:.2f} GiB of this GPU: stop that (an old "
        f"service, or an engine that a killed server left behind) and wait until the memory is "
        f"seen to be free; or share the GPU with --gpu-memory-utilization {most:g}"
    )


def _no_blocks(evidence: Evidence, n: Numbers) -> str:
    scene = evidence.scene
    weights, util = scene.engine.model_gib_per_rank, scene.settings.gpu_memory_utilization
    size = more_ranks(scene, weights or 0.0)
    n["tensor_parallel_size"] = size
    rank = f" ({weights * max(1, scene.settings.tp) / size:.1f} GiB a rank)" if weights else ""
    now = f" (it is {util:g})" if util is not None else ""
    return (
        f"--tensor-parallel-size {size}{rank}, or a more strongly quantised checkpoint, or a "
        f"smaller --max-num-batched-tokens and --max-num-seqs; raising "
        f"--gpu-memory-utilization{now} can give a few GiB at most"
    )


def _no_blocks_numbers(evidence: Evidence) -> dict[str, Number | None]:
    engine = evidence.scene.engine
    return {
        "available_kv_gib": engine.kv_cache_gib,
        "weights_gib_per_rank": engine.model_gib_per_rank,
    }


def _context(evidence: Evidence, n: Numbers) -> str:
    needed, available = floating(n.get("needed_gib")), floating(n.get("available_gib"))
    cpu = evidence.scene.settings.device == "cpu"
    fits = n.get("estimated_max_model_len")
    if not fits and needed and n.get("max_model_len"):
        fits = int(floating(n["max_model_len"]) * available / needed) // 16 * 16
        n["estimated_max_model_len"] = fits
    parts = [f"--max-model-len {fits}" if fits else "a smaller --max-model-len"]
    if not cpu and 0 < needed / 2 <= available:
        parts.append("--kv-cache-dtype fp8, which halves the need")
    space = math.ceil(needed) if needed else "larger"
    parts.append(
        f"more KV memory: VLLM_CPU_KVCACHE_SPACE={space} (on a GPU --gpu-memory-utilization)"
        if cpu
        else f"{max(0.0, needed - available):.2f} GiB more KV memory a GPU: a higher "
        "--gpu-memory-utilization or a larger --tensor-parallel-size (on a CPU "
        "VLLM_CPU_KVCACHE_SPACE)"
    )
    return "; or ".join(parts)


def _context_numbers(evidence: Evidence) -> dict[str, Number | None]:
    _, _, rest = evidence.line.text.partition("estimated maximum model length is ")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    return {"estimated_max_model_len": int(digits) if 0 < len(digits) < 13 else None}  # noqa: PLR2004


def _sampler_numbers(evidence: Evidence) -> dict[str, Number | None]:
    said = evidence.groups().get("max_num_seqs")
    seqs = said if isinstance(said, int) else sequences(evidence.scene)
    return {**memory_numbers(evidence), "max_num_seqs": seqs}


def _moving(_: Evidence, n: Numbers) -> str:
    released = floating(n["current_free_gib"]) - floating(n["initial_free_gib"])
    n["released_gib"] = round(released, 2)
    return (
        f"another process gave back {released:.0f} GiB of this GPU meanwhile, an old service on "
        "its way out as a rule: start only when the free memory stays the same over two samples; "
        "an automatic restart will as a rule succeed"
    )


GPU_MEMORY: tuple[Rule, ...] = (
    Rule(
        cause="M1",
        title="another process holds the GPU's memory",
        patterns=(
            rf"Free memory on device (?:(?P<what>\S+) )?\({_FREE}/{_TOTAL} GiB\) on startup is "
            rf"less than (?:desired GPU memory utilization|the engine's budget after excluding "
            rf"external process's weights) \({_UTIL}, {_REQUESTED} GiB\)",
        ),
        why="the engine wants {requested_gib} GiB of {total_gib} GiB and {free_gib} GiB were free "
        "when it started",
        next_step=_free_memory,
        source="vLLM 0.32.0 v1/worker/utils.py:761; vllm-project/vllm#55510",
    ),
    Rule(
        cause="M1",
        title="the host has less free memory than the engine wants",
        patterns=(
            rf"Available memory on node [0-9]{{1,4}} \({_FREE}/{_TOTAL} GiB\) on startup is "
            rf"less than desired CPU memory utilization \({_UTIL}, {_REQUESTED} GiB\)",
        ),
        why="on a CPU the engine wants {requested_gib} GiB of the node's memory, and {free_gib} "
        "GiB were free",
        next_step=lambda _, n: (
            f"free memory of the host, or --gpu-memory-utilization {_share(n):g}, which is the "
            "share of the host's memory here"
        ),
        source="vLLM 0.32.0 v1/worker/cpu_worker.py:83",
    ),
    Rule(
        cause="M10",
        title="the KV cache was set larger than the host's memory allows",
        patterns=(
            rf"Available memory on node [0-9]{{1,4}} \({_FREE}/{_TOTAL} GiB\) on kv cache "
            rf"allocation is less than requested memory for kv \({_REQUESTED}",
        ),
        why="{requested_gib} GiB were asked for, and {free_gib} GiB are free",
        next_step="VLLM_CPU_KVCACHE_SPACE and --kv-cache-memory-bytes below {free_gib} GiB, or "
        "free memory of the host",
        source="vLLM 0.32.0 v1/worker/cpu_worker.py:219",
    ),
    Rule(
        cause="M3",
        title="the KV cache is smaller than one request of full length",
        patterns=(
            rf"max seq len \({_LENGTH}\), \(?{_NEEDED} GiB KV cache is needed, which is larger "
            rf"than the available KV cache memory \({_AVAILABLE} GiB\)",
            rf"max seq len \({_LENGTH}\) is larger than the maximum number of tokens that can be "
            r"stored in KV cache \((?P<estimated_max_model_len>[0-9]{1,12})\)",
        ),
        why="a request of max_model_len tokens has to fit into the KV cache of every rank",
        next_step=_context,
        source="vLLM 0.32.0 v1/core/kv_cache_utils.py:1031",
        numbers=_context_numbers,
    ),
    Rule(
        cause="M3b",
        title="not even one token's KV cache fits",
        patterns=(r"Cannot auto-fit max_model_len: not enough GPU memory",),
        why="weights and activations take the whole budget of the GPU",
        next_step=_no_blocks,
        source="vLLM 0.32.0 v1/core/kv_cache_utils.py:2455",
        numbers=_no_blocks_numbers,
    ),
    Rule(
        cause="M2",
        title="no memory is left for the KV cache",
        patterns=(r"No available memory for the cache blocks",),
        why="weights, activations and CUDA graphs take all of the memory that the engine may use",
        next_step=_no_blocks,
        source="vLLM 0.32.0 v1/core/kv_cache_utils.py:1011",
        numbers=_no_blocks_numbers,
    ),
    Rule(
        cause="M4",
        title="the sampler's warm-up does not fit",
        patterns=(
            r"out of memory occurred when warming up (?:the )?sampler with "
            r"(?P<max_num_seqs>[0-9]{1,9}) dummy requests",
        ),
        why="the warm-up sorts the logits of max_num_seqs requests at once, after the KV cache has "
        "taken its share of the GPU",
        next_step=sampler_remedy,
        source="vLLM 0.32.0 v1/worker/gpu_model_runner.py:5991; SemiAnalysisAI/InferenceX#832",
        numbers=_sampler_numbers,
    ),
    Rule(
        cause="M5",
        title="the weights do not fit",
        patterns=(r"Failed to load model - not enough GPU memory",),
        why=WEIGHTS_WHY,
        next_step=weights_remedy,
        source="vLLM 0.32.0 v1/worker/gpu_model_runner.py:5140",
        numbers=memory_numbers,
    ),
    Rule(
        cause="M6",
        title="free GPU memory grew while the engine measured it",
        patterns=(
            rf"Error in memory profiling\. Initial free memory {_INITIAL} GiB, "
            rf"current free memory {_CURRENT} GiB",
        ),
        why="the engine measures what it uses as a difference of free memory, so nobody else may "
        "allocate or release on its GPU meanwhile",
        next_step=_moving,
        source="vLLM 0.32.0 v1/worker/gpu_worker.py:720",
    ),
    Rule(
        cause="M7",
        title="NCCL finds no GPU memory for its buffers",
        patterns=(
            r"Failed to CUDA (?:calloc|malloc)\w* (?P<bytes>[0-9]{1,15}) bytes",
            r"NCCL WARN .*[Cc]uda failure .*out of memory",
        ),
        why="the engine's share of the GPU leaves nothing for NCCL, which allocates outside of it",
        next_step=f"lower --gpu-memory-utilization to {MOST_UTILISATION_SEVERAL:g}",
        source="local-inference-lab/rtx6kpro troubleshooting",
        numbers=lambda e: {"gpu_memory_utilization": e.scene.settings.gpu_memory_utilization},
    ),
)
