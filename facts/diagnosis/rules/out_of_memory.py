"""M4b, M5, M8 to M11: PyTorch ran out of GPU memory, told apart by what it was doing."""

from facts.diagnosis.memory import (
    memory_numbers,
    missing,
    out_of_memory,
    sampler_remedy,
    sequences,
    utilisation_that_fits,
)
from facts.diagnosis.rule import Evidence, Number, Numbers, Rank, Rule
from facts.diagnosis.rules.gpu_memory import WEIGHTS_WHY, weights_remedy

_TEXT = (
    r"OutOfMemoryError: (?:CUDA|HIP) out of memory",
    r"CUDA out of memory\. Tried to allocate",
    r"CUDA error: out of memory",
)
_LOADING = (
    r"load_model|load_weights|model_loader|create_weights|initialize_model|process_weights_after"
)


def _with_sequences(evidence: Evidence) -> dict[str, Number | None]:
    return {**memory_numbers(evidence), "max_num_seqs": sequences(evidence.scene)}


def _lower(evidence: Evidence, what: str) -> str:
    """Which utilisation leaves room for what did not fit."""
    util = evidence.scene.settings.gpu_memory_utilization
    lower = utilisation_that_fits(evidence.scene, missing(evidence.scene))
    if lower is None:
        return "lower --gpu-memory-utilization"
    return f"--gpu-memory-utilization {lower:g} ({util:g} leaves nothing for {what})"


def _graphs(evidence: Evidence, _: Numbers) -> str:
    seqs = sequences(evidence.scene)
    smaller = f" {max(1, seqs // 2)}" if seqs else ""
    return (
        f"{_lower(evidence, 'the graphs')}; or fewer graphs with --compilation-config "
        f'\'{{"cudagraph_mode":"PIECEWISE"}}\' or --max-num-seqs{smaller}; --enforce-eager '
        "starts without them, to see whether they are all that is in the way"
    )


def _override(evidence: Evidence, _: Numbers) -> str:
    return (
        f"drop --kv-cache-memory-bytes (it is {evidence.scene.settings.kv_cache_memory}) so that "
        "the engine measures, or take the value that a start without it prints as "
        "'--kv-cache-memory=…'"
    )


def _activations(evidence: Evidence, _: Numbers) -> str:
    tokens = evidence.scene.settings.max_num_batched_tokens
    half = f" {max(1, tokens // 2)}" if tokens else ""
    return (
        f"a smaller --max-num-batched-tokens{half} or --max-num-seqs, or a larger "
        "--tensor-parallel-size; the KV cache is not allocated yet, so --gpu-memory-utilization "
        "does not matter here"
    )


def _only_first_gpu(evidence: Evidence) -> bool:
    read = out_of_memory(evidence.line.text)
    staged = evidence.scene.settings.load_format == "fastsafetensors"
    return staged and read is not None and read.gpu == 0


OUT_OF_MEMORY: tuple[Rule, ...] = (
    Rule(
        cause="M4b",
        title="the sampler's warm-up does not fit (V2 runner)",
        patterns=_TEXT,
        calls=r"/gpu/warmup\.py|/gpu/sample/",
        why="the V2 runner warms its sampler up after the KV cache is allocated, and copies the "
        "logits of max_num_seqs requests to 32-bit floats; the profile run does not count that",
        next_step=sampler_remedy,
        source="vLLM 0.32.0 v1/worker/gpu/warmup.py:290, gpu/sample/penalties.py:46",
        numbers=_with_sequences,
    ),
    Rule(
        cause="M8",
        title="CUDA graphs do not fit",
        patterns=_TEXT,
        calls=r"capture_model|cudagraph_utils|_capture_cudagraphs",
        why="graphs are captured after the KV cache is allocated, one for each batch size",
        next_step=_graphs,
        source="vLLM 0.32.0 v1/worker/gpu/model_runner.py:1083; vllm-project/recipes MiniMax-M2.5",
        numbers=_with_sequences,
    ),
    Rule(
        cause="M10",
        title="the KV cache was set larger than the GPU allows",
        patterns=_TEXT,
        when=lambda evidence: evidence.scene.settings.kv_cache_memory is not None,
        why="a KV cache size that is given skips the engine's measurement, and its check against "
        "free memory",
        next_step=_override,
        source="vLLM 0.32.0 v1/worker/gpu_worker.py:658; vllm-project/vllm#50509",
        numbers=memory_numbers,
    ),
    Rule(
        cause="M9",
        title="the loader's staging does not fit on the first GPU",
        patterns=_TEXT,
        calls=_LOADING,
        when=_only_first_gpu,
        why="fastsafetensors stages on the first GPU what belongs to all of them",
        next_step="drop --load-format fastsafetensors (safetensors with several threads is: "
        '--model-loader-extra-config \'{"enable_multithread_load":true,"num_threads":16}\')',
        source="local-inference-lab/rtx6kpro inference-engines/vllm.md",
        numbers=memory_numbers,
    ),
    Rule(
        cause="M5",
        title="the weights do not fit",
        patterns=_TEXT,
        calls=_LOADING,
        why=WEIGHTS_WHY,
        next_step=weights_remedy,
        source="vLLM 0.32.0 v1/worker/gpu_model_runner.py:5140",
        numbers=memory_numbers,
    ),
    Rule(
        cause="M11-kv-allocation",
        title="the KV cache does not fit, though it was measured to",
        patterns=_TEXT,
        calls=r"initialize_kv_cache|_allocate_kv_cache|initialize_from_config",
        why="less memory was free at the allocation than at the measurement before it",
        next_step=lambda evidence, _: (
            f"{_lower(evidence, 'anything else')}; and look with nvidia-smi for another process "
            "on these GPUs"
        ),
        source="vLLM 0.32.0 v1/worker/gpu_worker.py",
        numbers=memory_numbers,
    ),
    Rule(
        cause="M11-profile",
        title="one forward pass does not fit beside the weights",
        patterns=_TEXT,
        calls=r"profile_run|determine_available_memory",
        why="the profile run takes max_num_batched_tokens tokens through the model at once",
        next_step=_activations,
        source="vLLM 0.32.0 v1/worker/gpu_worker.py",
        numbers=_with_sequences,
    ),
    Rule(
        cause="M11",
        title="a GPU ran out of memory",
        patterns=_TEXT,
        rank=Rank.SYMPTOM,
        why="more was allocated beside the KV cache than the engine had kept free",
        next_step=lambda evidence, _: (
            f"{_lower(evidence, 'this')}, and a smaller --max-num-seqs or --max-num-batched-tokens"
        ),
        source="PyTorch 2.13 CUDACachingAllocator",
        numbers=_with_sequences,
    ),
)
