"""M: GPU memory."""

from __future__ import annotations

from facts.diagnosis import Hints
from tests.facts.diagnosis.examples.kind import Example
from tests.facts.diagnosis.examples.scenes import LOAD, oom, sampler_v2
from tests.facts.diagnosis.journals import Made, echoes, worker, worker_fails


def _too_large() -> str:
    """Weights that do not fit, with their size on disk."""
    made = Made().banner(tensor_parallel_size=4).workers(4)
    made.info(worker(2), "Checkpoint size: 664.00 GiB. Available RAM: 900.00 GiB.")
    made.fails(worker(2), "worker", oom(), LOAD)
    return echoes(made).text


GPU_MEMORY: tuple[Example, ...] = (
    Example(
        "M1",
        worker_fails(
            "ValueError: Free memory on device cuda:0 (21.5/94.97 GiB) on startup is less than "
            "desired GPU memory utilization (0.92, 87.37 GiB). Decrease GPU memory utilization or "
            "reduce GPU memory used by other processes."
        ),
        "is less than desired",
        ("73.47 GiB", "--gpu-memory-utilization 0.22", "nvidia-smi"),
        {"free_gib": 21.5, "total_gib": 94.97, "util": 0.92, "requested_gib": 87.37},
    ),
    Example(
        "M1",
        worker_fails(
            "ValueError: Available memory on node 0 (7.25/15.5 GiB) on startup is less than "
            "desired CPU memory utilization (0.92, 14.26 GiB). On the CPU backend, the"
        ),
        "Available memory on node 0",
        ("--gpu-memory-utilization 0.46",),
        {"free_gib": 7.25, "total_gib": 15.5, "requested_gib": 14.26},
    ),
    Example(
        "M10",
        worker_fails(
            "ValueError: Available memory on node 0 (7.25/15.5 GiB) on kv cache allocation is less "
            "than requested memory for kv (40 GiB). Decrease --kv-cache-memory-bytes"
        ),
        "on kv cache allocation",
        ("VLLM_CPU_KVCACHE_SPACE", "below 7.25 GiB"),
    ),
    Example(
        "M2",
        worker_fails("ValueError: No available memory for the cache blocks. Try increasing"),
        "No available memory",
        ("--tensor-parallel-size 8", "--max-num-seqs"),
    ),
    Example(
        "M3",
        worker_fails(
            "ValueError: To serve at least one request with the model's max seq len (196608), "
            "(11.63 GiB KV cache is needed, which is larger than the available KV cache memory "
            "(7.2 GiB). Based on the available memory, the estimated maximum model length is "
            "121712."
        ),
        "max seq len (196608)",
        ("--max-model-len 121712", "--kv-cache-dtype fp8", "4.43 GiB"),
        {"needed_gib": 11.63, "available_gib": 7.2, "estimated_max_model_len": 121712},
    ),
    Example(
        "M3",
        worker_fails(
            "ValueError: The model's max seq len (40960) is larger than the maximum number of "
            "tokens that can be stored in KV cache (34064). Try increasing"
        ),
        "stored in KV cache",
        ("--max-model-len 34064",),
    ),
    Example(
        "M3b",
        worker_fails(
            "ValueError: Cannot auto-fit max_model_len: not enough GPU memory available to serve "
            "even a single token"
        ),
        "Cannot auto-fit",
        ("--tensor-parallel-size",),
    ),
    Example(
        "M4",
        worker_fails(
            "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy "
            "requests. Please try lowering `max_num_seqs`",
            gpu_memory_utilization=0.95,
        ),
        "1024 dummy requests",
        ("--max-num-seqs 256",),
        {"max_num_seqs": 1024},
    ),
    Example(
        "M4",
        worker_fails(
            "RuntimeError: CUDA out of memory occurred when warming up sampler with 256 "
            "dummy requests."
        ),
        "256 dummy requests",
        ("--max-num-seqs 96",),
        {"max_num_seqs": 256},
        hints=Hints(fits_max_num_seqs=96),
    ),
    Example(
        "M4b",
        sampler_v2(),
        "594.00 MiB",
        ("--max-num-seqs 256", "--gpu-memory-utilization 0.93"),
        {"tried_mib": 594.0, "free_mib_gpu0": 431.44, "free_mib_gpu2": 477.44},
    ),
    Example(
        "M5",
        worker_fails(oom(), LOAD),
        "CUDA out of memory",
        ("--tensor-parallel-size 8",),
        {"tried_gib": 1.53, "gpu_total_gib": 94.97},
    ),
    Example(
        "M5",
        _too_large(),
        "CUDA out of memory",
        ("166 GiB a rank", "--tensor-parallel-size 16"),
    ),
    Example(
        "M6",
        worker_fails(
            "AssertionError: Error in memory profiling. Initial free memory 40.12 GiB, current "
            "free memory 84.31 GiB."
        ),
        "Error in memory profiling",
        ("44 GiB",),
        {"initial_free_gib": 40.12, "current_free_gib": 84.31},
    ),
    Example(
        "M7",
        worker_fails("RuntimeError: NCCL error: Failed to CUDA calloc 10485760 bytes"),
        "Failed to CUDA calloc",
        ("--gpu-memory-utilization", "0.93"),
        {"bytes": 10485760},
    ),
    Example(
        "M8",
        worker_fails(
            oom("1.10 GiB", 0, "402.38 MiB"),
            (("vllm/v1/worker/gpu/model_runner.py", "self.model_runner.capture_model()"),),
            gpu_memory_utilization=0.98,
            max_num_seqs=512,
        ),
        "Tried to allocate 1.10 GiB",
        ("--gpu-memory-utilization 0.93", "PIECEWISE", "--max-num-seqs 256"),
    ),
    Example(
        "M9",
        worker_fails(oom(gpu=0), LOAD, load_format="fastsafetensors"),
        "GPU 0",
        ("--load-format",),
    ),
    Example(
        "M10",
        worker_fails(oom(), kv_cache_memory_bytes=68719476736),
        "CUDA out of memory",
        ("--kv-cache-memory-bytes", "68719476736"),
    ),
    Example(
        "M11-kv-allocation",
        worker_fails(oom(), (("gpu_worker.py", "self.initialize_kv_cache(config)"),)),
        "CUDA out of memory",
        ("--gpu-memory-utilization", "nvidia-smi"),
    ),
    Example(
        "M11-profile",
        worker_fails(
            oom(),
            (("gpu_worker.py", "self.model_runner.profile_run()"),),
            max_num_batched_tokens=16384,
        ),
        "CUDA out of memory",
        ("--max-num-batched-tokens 8192",),
    ),
    Example("M11", worker_fails(oom()), "CUDA out of memory", ("--gpu-memory-utilization",)),
)
