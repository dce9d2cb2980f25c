"""One small journal for each row of the failure catalogue that leaves a text."""

from __future__ import annotations

from typing import NamedTuple

from operations.diagnosis import Facts
from tests.operations.diagnosis.journals import (
    API,
    BEGAN,
    ENGINE,
    Made,
    echoes,
    server_fails,
    worker,
    worker_fails,
)


class Example(NamedTuple):
    """A journal and what has to be said about it.

    + line: a piece of the line that is the cause
    + remedy: pieces of the next step
    + numbers: that have to be among the diagnosis's
    """

    cause: str
    journal: str
    line: str
    remedy: tuple[str, ...]
    numbers: dict[str, object] = {}
    kernel: str = ""
    facts: Facts = Facts()


VALUE = "pydantic_core._pydantic_core.ValidationError: 1 validation error for {}\n  Value error, {}"
LOAD = (("vllm/v1/worker/gpu_worker.py", "self.model_runner.load_model()"),)


def oom(tried: str = "1.53 GiB", gpu: int = 2, free: str = "699.38 MiB") -> str:
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU {gpu} has a "
        f"total capacity of 94.97 GiB of which {free} is free. Including non-PyTorch memory, this "
        "process has 94.20 GiB memory in use. Of the allocated memory 90.88 GiB is allocated by "
        "PyTorch, and 1.14 GiB is reserved by PyTorch but unallocated."
    )


def invalid(config: str, message: str) -> str:
    return server_fails(VALUE.format(config, message))


def serving_fault(answered: bool) -> str:
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
    made = Made().banner(tensor_parallel_size=world).workers(world).ready()
    made.wait(30).said(
        ENGINE,
        "ERROR",
        "multiproc_executor.py:315",
        f"Worker proc VllmWorker-2 died unexpectedly (exit code: {code}), shutting down executor.",
    )
    return made.fails(ENGINE, "step", "RuntimeError: Executor failed.").exits(0)


def inspected(inner: str) -> str:
    made = Made().banner()
    where = "registry.py:1100"
    made.said(API, "ERROR", where, "Error in inspecting model architecture 'M2ForCausalLM'")
    made.said(API, "ERROR", where, "Traceback (most recent call last):")
    made.said(API, "ERROR", where, '  File "/opt/vllm/lib/vllm/platforms/cuda.py", line 9, in f')
    made.said(API, "ERROR", where, inner)
    message = "Model architectures ['M2ForCausalLM'] failed to be inspected. Please check the logs"
    return made.crashes(VALUE.format("ModelConfig", message)).exits().text


def libnuma() -> str:
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


def nccl_silence() -> str:
    made = Made().banner(tensor_parallel_size=4)
    made.info(worker(0), "world_size=4 rank=0 local_rank=0 backend=nccl")
    return made.info(worker(0), "vLLM is using nccl==2.28.9").text


def loading_silence() -> str:
    made = Made().banner(tensor_parallel_size=2).workers(2)
    return made.raw("vllm[300]", "[77B blob data]").text


def waits(count: int) -> str:
    made = Made().banner(tensor_parallel_size=4).workers(4).ready()
    for _ in range(count):
        made.wait(59).info(
            ENGINE, "No available shared memory broadcast block found in 60 seconds. This typically"
        )
    return made.text


def unit_fails(text: str, status: int) -> str:
    made = Made()
    made.raw("systemd[7]", f"vllm-x.service: {text}")
    made.systemd(f"vllm-x.service: Main process exited, code=exited, status={status}/EXEC")
    return made.systemd("vllm-x.service: Failed with result 'exit-code'.").text


def start_times_out(ready: bool) -> str:
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
    made = Made().banner().workers()
    made.systemd("Stopping vllm-x.service - vLLM...").wait(60)
    made.systemd("vllm-x.service: State 'stop-sigterm' timed out. Killing.")
    made.systemd("vllm-x.service: Main process exited, code=killed, status=9/KILL")
    return made.systemd("vllm-x.service: Failed with result 'timeout'.").text


def main_killed() -> str:
    made = Made().banner().workers().ready()
    made.systemd("vllm-x.service: Main process exited, code=killed, status=9/KILL")
    return made.systemd("vllm-x.service: Failed with result 'signal'.").text


def oom_killed() -> str:
    made = killed(-9)
    made.systemd("vllm-x.service: A process of this unit has been killed by the OOM killer.")
    return made.text


def core_process(failed: str, seconds: float = 30) -> str:
    made = Made().banner(tensor_parallel_size=2).workers(2).wait(seconds)
    made.crashes(
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core "
        f"proc(s): {failed}"
    )
    return made.exits().text


def xid(number: int) -> str:
    return f"2026-11-30T10:00:20+0000 box kernel: NVRM: Xid (PCI:0000:c1:00): {number}, pid=1, x"


def sampler_v2() -> str:
    made = Made().banner(tensor_parallel_size=4, gpu_memory_utilization=0.985).workers(4)
    made.info(worker(0), "Using V2 Model Runner")
    for rank, free in ((2, "477.44 MiB"), (0, "431.44 MiB")):
        calls = (
            ("vllm/v1/worker/gpu/warmup.py", "worker_sample_tokens(grammar_output)"),
            ("vllm/v1/worker/gpu/sample/sampler.py", "logits = torch.empty_like(logits)"),
        )
        made.fails(worker(rank), "rpc", oom("594.00 MiB", rank, free), calls)
    return echoes(made).text


PERMISSION = "PermissionError: [Errno 13] Permission denied: '{}'"
SHM = "RuntimeError: Insufficient space in /dev/shm for message queue: {} MiB required, {} MiB free"
P2 = "assert tp_size % self.total_num_kv_heads == 0"
OPTION = "api_server.py: error: {}"

EXAMPLES: tuple[Example, ...] = (
    # GPU memory
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
        facts=Facts(max_num_seqs=96),
    ),
    Example(
        "M4b",
        sampler_v2(),
        "594.00 MiB",
        ("--max-num-seqs 256", "--gpu-memory-utilization 0.95"),
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
        worker_fails(oom(), LOAD, facts_free=1),
        "CUDA out of memory",
        ("166 GiB a rank", "--tensor-parallel-size 16"),
        facts=Facts(weights_gib=664),
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
        ("--gpu-memory-utilization 0.95", "PIECEWISE", "--max-num-seqs 256"),
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
    # Shapes
    Example(
        "P1",
        invalid(
            "ModelConfig",
            "Total number of attention heads (48) must be divisible by tensor parallel size (5).",
        ),
        "attention heads (48)",
        ("--tensor-parallel-size 1, 2, 4 or 8",),
        {"heads": 48, "tp": 5},
    ),
    Example(
        "P2",
        worker_fails("AssertionError", (("models/minimax_m2.py", P2),), count=6),
        P2,
        ("num_key_value_heads", "it is 6"),
        {"tp": 6},
    ),
    Example(
        "P3",
        worker_fails(
            "ValueError: The output_size of gate's and up's weight = 192 is not divisible by "
            "weight quantization block_n = 128.",
            count=8,
        ),
        "= 192 is not divisible",
        ("--tensor-parallel-size 1, 2 or 4", "--enable-expert-parallel"),
        {"size": 192, "block": 128},
    ),
    Example(
        "P3",
        worker_fails(
            "ValueError: The input_size of down's weight = 176 is not divisible by weight "
            "quantization block_k = 128."
        ),
        "= 176 is not divisible",
        ("--enable-expert-parallel",),
    ),
    Example(
        "P4",
        worker_fails(
            "ValueError: Weight output_partition_size = 576 is not divisible by weight "
            "quantization block_n = 128."
        ),
        "output_partition_size = 576",
        ("--tensor-parallel-size 1 or 2",),
    ),
    Example(
        "P5",
        worker_fails(
            "ValueError: Weight input_size_per_partition = 688 is not divisible by min_thread_k = "
            "128 or group_size = 128. Consider reducing tensor_parallel_size or running with"
        ),
        "688 is not divisible",
        ("--tensor-parallel-size 1",),
    ),
    Example(
        "P6",
        worker_fails("AssertionError: 151 is not divisible by 4"),
        "151 is not divisible by 4",
        ("--tensor-parallel-size", "151"),
    ),
    Example(
        "P7",
        worker_fails(
            "ValueError: Tensor parallel size 16 is greater than the number of experts 8."
        ),
        "number of experts 8",
        ("--tensor-parallel-size 8",),
    ),
    Example(
        "P8",
        invalid(
            "ParallelConfig",
            "World size (8) is larger than the number of available GPUs (7) in this node.",
        ),
        "World size (8)",
        ("nvidia-smi -L", "CUDA_VISIBLE_DEVICES", "to 4"),
        {"world_size": 8, "gpus": 7},
    ),
    Example(
        "P8-device-ordinal",
        worker_fails("torch.AcceleratorError: CUDA error: invalid device ordinal"),
        "invalid device ordinal",
        ("CUDA_VISIBLE_DEVICES",),
    ),
    Example(
        "P9",
        invalid(
            "ModelConfig",
            "User-specified max_model_len (400000) is greater than the derived max_model_len "
            "(max_position_embeddings=196608 or model_max_length=None in model's config.json).",
        ),
        "max_model_len (400000)",
        ("--max-model-len 196608",),
    ),
    Example(
        "P10",
        invalid("EngineArgs", "--device-ids must not contain duplicates"),
        "--device-ids",
        ("UUID",),
    ),
    # Model and arguments
    Example(
        "A1",
        invalid(
            "ModelConfig",
            "Model architectures ['NewForCausalLM'] are not supported for now. Supported "
            "architectures: dict_keys(['AForCausalLM'])",
        ),
        "NewForCausalLM",
        ("newer vLLM", "NewForCausalLM"),
    ),
    Example(
        "A2",
        inspected("ImportError: cannot import name 'x' from 'y'"),
        "failed to be inspected",
        ("lines above",),
    ),
    Example(
        "H5",
        inspected("ValueError: invalid literal for int() with base 10: 'MIG-5c7a'"),
        "MIG-5c7a",
        ("CUDA_VISIBLE_DEVICES",),
    ),
    Example(
        "A3",
        invalid(
            "ModelConfig",
            "Model architecture OldForCausalLM was supported in vLLM until v0.12.0, and is not",
        ),
        "until v0.12.0",
        ("0.12.0",),
    ),
    Example(
        "A4",
        server_fails(
            "RuntimeError: Failed to load the model config. If the model is a custom model not yet "
            "available in the HuggingFace transformers library, consider setting"
        ),
        "Failed to load the model config",
        ("--trust-remote-code",),
    ),
    Example(
        "A5",
        server_fails(
            "ValueError: Couldn't instantiate the backend tokenizer from one of:\n"
            "(1) a `tokenizers` library serialization file,"
        ),
        "backend tokenizer",
        ("tokenizer.json",),
    ),
    Example(
        "A6",
        invalid(
            "VllmConfig",
            "The quantization method modelopt_fp4 is not supported for the current GPU. Minimum "
            "capability: 100. Current capability: 89.",
        ),
        "modelopt_fp4",
        ("another quantisation",),
        {"minimum": 100, "capability": 89},
    ),
    Example(
        "A7",
        worker_fails(
            "RuntimeError: Quantization scheme is not supported for the current GPU. Min "
            "capability: 90. Current capability: 80."
        ),
        "Quantization scheme",
        ("another quantisation",),
    ),
    Example(
        "A8",
        invalid(
            "ModelConfig",
            "Quantization method specified in the model config (fp8) does not match the "
            "quantization method specified in the `quantization` argument (gptq).",
        ),
        "does not match",
        ("drop --quantization gptq",),
        {"config": "fp8", "argument": "gptq"},
    ),
    Example(
        "A8",
        invalid("ModelConfig", "Unknown quantization method: fancy. Must be one of ['awq']."),
        "fancy",
        ("--quantization fancy",),
    ),
    Example(
        "A9",
        worker_fails("ValueError: type fp8e4nv not supported in this architecture."),
        "fp8e4nv",
        ("--kv-cache-dtype",),
    ),
    Example(
        "A10",
        worker_fails(
            "ValueError: No valid attention backend found for cuda with AttentionSelectorConfig("
            "head_size=576)"
        ),
        "attention backend",
        ("--attention-backend TRITON_MLA",),
    ),
    Example(
        "A11",
        worker_fails(
            "RuntimeError: FlashInfer-CUTLASS MoE kernel does not support current device sm_120"
        ),
        "sm_120",
        ("33417",),
    ),
    Example(
        "A12",
        worker_fails(
            "RuntimeError: CUDA error: no kernel image is available for execution on the device"
        ),
        "no kernel image",
        ("VLLM_USE_DEEP_GEMM=0",),
    ),
    Example(
        "A13",
        server_fails(
            "KeyError: 'invalid tool call parser: minimax_m3 (chose from { deepseek_v3,hermes,"
            "minimax,minimax_m2 })'"
        ),
        "minimax_m3",
        ("--tool-call-parser minimax_m2",),
        {"parser": "minimax_m3", "nearest": "minimax_m2"},
    ),
    Example(
        "A13",
        server_fails(
            "KeyError: \"Reasoning parser 'qwen4' not found. Available parsers: glm45, qwen3\""
        ),
        "qwen4",
        ("--reasoning-parser qwen3",),
    ),
    Example(
        "A14",
        worker_fails(
            "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0"
        ),
        "Bfloat16",
        ("--dtype half",),
    ),
    Example(
        "A15",
        Made()
        .raw("vllm[100]", "usage: api_server.py [-h] [--max-num-seqs MAX_NUM_SEQS]")
        .raw("vllm[100]", OPTION.format("unrecognized arguments: --max-num-seq 4"))
        .exits(2)
        .text,
        "--max-num-seq",
        ("it knows --max-num-seqs",),
        {"flag": "--max-num-seq", "exit_status": 2},
    ),
    Example(
        "A15-value",
        Made()
        .raw("vllm[100]", OPTION.format("argument --kv-cache-dtype: invalid choice: 'fp9' (choose"))
        .exits(2)
        .text,
        "invalid choice",
        ("--kv-cache-dtype",),
    ),
    Example(
        "A15-value",
        server_fails(
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for CacheConfig\n"
            "gpu_memory_utilization\n"
            "  Input should be less than or equal to 1 [type=less_than_equal, input_value=92.0, "
            "input_type=float]"
        ),
        "input_value=92.0",
        ("--gpu-memory-utilization is a fraction: 0.92, not 92",),
        {"value": 92.0, "argument": "gpu_memory_utilization"},
    ),
    Example(
        "A15-value",
        worker_fails(
            "ValueError: invalid literal for int() with base 10: '0.5'",
            (("vllm/envs.py", 'int(os.getenv("VLLM_CPU_KVCACHE_SPACE", "0"))'),),
        ),
        "'0.5'",
        ("VLLM_CPU_KVCACHE_SPACE", "'0.5'"),
    ),
    Example(
        "A15-value",
        invalid("SchedulerConfig", "max_num_batched_tokens (64) must be greater than or equal to"),
        "max_num_batched_tokens (64)",
        ("change the flag",),
    ),
    Example(
        "A16",
        server_fails(
            "openai_harmony.HarmonyError: error downloading or loading vocab file: failed"
        ),
        "HarmonyError",
        ("TIKTOKEN_ENCODINGS_BASE",),
    ),
    # Files, Hub, disk
    Example(
        "D1",
        worker_fails(
            "FileNotFoundError: Weight files referenced in index but missing: "
            "{'/srv/models/m/model-00007-of-00009.safetensors', "
            "'/srv/models/m/model-00003-of-00009.safetensors'}"
        ),
        "referenced in index",
        ("model-00003-of-00009.safetensors", "1 more"),
        {"file": "model-00003-of-00009.safetensors", "files": 2},
    ),
    Example(
        "D2",
        worker_fails(
            "safetensors._safetensors_rust.SafetensorError: Error while deserializing header: "
            "MetadataIncompleteBuffer"
        ),
        "MetadataIncompleteBuffer",
        ("fetch", "again"),
        {"path": "/srv/models/m"},
    ),
    Example(
        "D3",
        worker_fails("SafetensorError: Error while deserializing header: HeaderTooLarge"),
        "HeaderTooLarge",
        ("git lfs pull", "find /srv/models/m"),
    ),
    Example(
        "D4",
        worker_fails("RuntimeError: Cannot find any model weights with `/srv/models/m`"),
        "Cannot find any model weights",
        ("download",),
        {"path": "/srv/models/m"},
    ),
    Example(
        "D5",
        server_fails(
            "OSError: /srv/models/mm is not a local folder and is not a valid model identifier "
            "listed on 'https://huggingface.co/models'"
        ),
        "/srv/models/mm",
        ("correct the path",),
        {"path": "/srv/models/mm"},
    ),
    Example(
        "D6",
        server_fails(
            "OSError: You are trying to access a gated repo.\nMake sure to have access to it at "
            "https://huggingface.co/a/b."
        ),
        "gated repo",
        ("HF_TOKEN", "licence"),
    ),
    Example(
        "D6-not-found",
        server_fails(
            "huggingface_hub.errors.RepositoryNotFoundError: 404 Client Error. Repository Not "
            "Found for url: https://huggingface.co/api/models/a/b."
        ),
        "RepositoryNotFoundError",
        ("name", "HF_TOKEN"),
    ),
    Example(
        "D7",
        server_fails(
            "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and "
            "couldn't find them in the cached files."
        ),
        "couldn't connect",
        ("HF_HUB_OFFLINE", "pre-stage"),
    ),
    Example(
        "D8",
        worker_fails("OSError: [Errno 28] No space left on device: '/var/cache/vllm/x'"),
        "No space left",
        ("/var/cache/vllm/x", "free space"),
    ),
    Example(
        "D9",
        worker_fails(PERMISSION.format("/.cache"), (("decorators.py", "os.makedirs(x)"),)),
        "'/.cache'",
        ("HOME", "VLLM_CACHE_ROOT", "TRITON_CACHE_DIR"),
        {"path": "/.cache"},
    ),
    Example(
        "D9",
        worker_fails("OSError: [Errno 30] Read-only file system: '/home/vllm/.cache'"),
        "Read-only file system",
        ("ReadWritePaths=/home/vllm/.cache", "ProtectHome"),
    ),
    Example(
        "D10-config-json",
        server_fails(
            "OSError: It looks like the config file at '/srv/models/m/config.json' is not a valid "
            "JSON file."
        ),
        "not a valid JSON file",
        ("/srv/models/m/config.json",),
    ),
    Example(
        "D10-json",
        worker_fails(
            "json.decoder.JSONDecodeError: Expecting ',' delimiter: line 9 column 3 (char 200)",
            (("model_loader/weight_utils.py", "json.load(f)"),),
        ),
        "JSONDecodeError",
        ("line 9, column 3",),
        {"line": 9, "column": 3},
    ),
    Example(
        "D11-model-unreadable",
        server_fails(PERMISSION.format("/srv/models/m/config.json")),
        "/srv/models/m/config.json",
        ("chmod",),
    ),
    Example(
        "D11-device",
        worker_fails(PERMISSION.format("/dev/nvidia0")),
        "/dev/nvidia0",
        ("DeviceAllow=",),
    ),
    Example(
        "D12-io-error",
        worker_fails("OSError: [Errno 5] Input/output error"),
        "Input/output error",
        ("dmesg",),
    ),
    # Driver, host, NCCL
    Example(
        "H1",
        worker_fails(
            "RuntimeError: The NVIDIA driver on your system is too old (found version 12040)."
        ),
        "too old",
        ("580", "CUDA 12.4"),
        {"found_version": 12040},
    ),
    Example(
        "H2",
        worker_fails(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has "
            "unsupported display driver / cuda driver combination"
        ),
        "Error 803",
        ("cuda-compat",),
    ),
    Example(
        "H3",
        worker_fails(
            "RuntimeError: Triton Error [CUDA]: the provided PTX was compiled with an "
            "unsupported toolchain."
        ),
        "unsupported toolchain",
        ("driver",),
    ),
    Example(
        "H4",
        server_fails("RuntimeError: No CUDA GPUs are available"),
        "No CUDA GPUs",
        ("nvidia-smi", "DeviceAllow="),
    ),
    Example(
        "H7",
        server_fails(
            "OSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): "
            "address already in use"
        ),
        "Errno 98",
        ("8000", "ss -ltnp"),
        {"port": 8000},
    ),
    Example(
        "H7-privileged",
        server_fails(
            "PermissionError: [Errno 13] Permission denied",
            (("api_server.py", "sock.bind(addr)"),),
        ),
        "Errno 13",
        ("1024",),
    ),
    Example(
        "H7-rendezvous",
        worker_fails(
            "torch.distributed.DistNetworkError: The server socket has failed to listen on any "
            "local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, "
            "message: address already in use"
        ),
        "EADDRINUSE",
        ("--master-port",),
    ),
    Example(
        "H8",
        worker_fails(SHM.format("256.0", "61.5")),
        "Insufficient space in /dev/shm",
        ("256.0 MiB", "61.5 MiB", "remount"),
        {"required_mib": 256.0, "free_mib": 61.5},
    ),
    Example("H9", nccl_shm(), "NCCL WARN Error while creating", ("/dev/shm",), {"bytes": 9637888}),
    Example(
        "H10",
        worker_fails("RuntimeError: NCCL error: invalid usage (run with NCCL_DEBUG=WARN)"),
        "NCCL error",
        ("NCCL_DEBUG=INFO",),
    ),
    Example(
        "H10-peer",
        worker_fails("RuntimeError: [gloo/pair.cc:534] Connection closed by peer [10.0.0.1]:4"),
        "Connection closed by peer",
        ("another rank",),
    ),
    Example(
        "H11",
        nccl_silence(),
        "nccl==2.28.9",
        ("iommu=off", "NCCL_P2P_DISABLE=1", "--disable-custom-all-reduce"),
        {"nccl": "2.28.9", "silent_minutes": 5},
        facts=Facts(now=BEGAN + 304),
    ),
    Example(
        "H11",
        worker_fails(
            "torch.distributed.DistBackendError: [PG ID 2 Rank 1] Watchdog caught collective "
            "operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, Timeout(ms)=600000) ran for"
        ),
        "Watchdog caught",
        ("iommu=off",),
        {"timeout_ms": 600000},
    ),
    Example(
        "H13",
        worker_fails("OSError: [Errno 24] Too many open files: '/srv/models/m/a.safetensors'"),
        "Too many open files",
        ("LimitNOFILE=1048576",),
    ),
    Example(
        "H14",
        worker_fails(
            "RuntimeError: Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory"
        ),
        "ibv_reg_mr",
        ("LimitMEMLOCK=infinity",),
    ),
    Example(
        "H15",
        worker_fails(
            "RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't "
            "exist"
        ),
        "nvcc",
        ("flashinfer-jit-cache", "VLLM_USE_FLASHINFER_SAMPLER=0"),
    ),
    Example(
        "H15",
        worker_fails("FileNotFoundError: [Errno 2] No such file or directory: 'ninja'"),
        "'ninja'",
        ("install ninja",),
    ),
    Example(
        "H16",
        worker_fails("RuntimeError: FlashInfer requires sm75 or higher"),
        "sm75",
        ("12.9",),
    ),
    Example(
        "H17",
        server_fails(
            "RuntimeError: NUMA binding was requested, but vLLM could not detect the GPU-to-NUMA "
            "topology automatically. Pass --numa-bind-nodes explicitly or disable --numa-bind."
        ),
        "NUMA binding was requested",
        ("--numa-bind-nodes",),
    ),
    Example(
        "H17b",
        server_fails("RuntimeError: numactl is required for NUMA binding but is not installed"),
        "numactl",
        ("install numactl",),
    ),
    Example("H19", killed(-9).text, "exit code: -9", ("SIGKILL",), {"exit_code": -9, "rank": 2}),
    Example("H19", killed(-7).text, "exit code: -7", ("SIGBUS", "/dev/shm"), {"exit_code": -7}),
    Example(
        "H19",
        killed(-9).text,
        "Out of memory: Killed process 302",
        ("free memory",),
        {"pid": 302},
        kernel="2026-11-30T10:00:38+0000 box kernel: Out of memory: Killed process 302 "
        "(VLLM::Worker_TP) total-vm:9kB",
    ),
    Example("H19", oom_killed(), "OOM killer", ("OOMScoreAdjust=-500",)),
    Example(
        "H19",
        core_process("{'EngineCore': -11}"),
        "'EngineCore': -11",
        ("SIGSEGV",),
        {"exit_code": -11},
    ),
    Example("H20", core_process("{}", 590), "Failed core proc(s): {}", ("READY_TIMEOUT_S",)),
    Example(
        "H20",
        server_fails(
            "TimeoutError: Timed out waiting for engine core processes to start. This is often "
            "caused by slow weight loading for large models. Waited 600s (configured by"
        ),
        "Timed out waiting",
        ("VLLM_ENGINE_READY_TIMEOUT_S",),
        {"waited_s": 600},
    ),
    Example("H21", serving_fault(False), "illegal memory access", ("--attention-backend",)),
    Example("H22", waits(6), "No available shared memory", ("one token",)),
    Example(
        "H22",
        loading_silence(),
        "77B blob data",
        ("ps -o",),
        facts=Facts(now=BEGAN + 400),
    ),
    Example(
        "H23",
        serving_fault(True),
        "79,",
        ("pcie_aspm=off", "0000:c1:00"),
        {"xid": 79, "pci": "0000:c1:00"},
        kernel=xid(79),
    ),
    Example("H23-xid", serving_fault(True), "48,", ("replace",), {"xid": 48}, kernel=xid(48)),
    Example(
        "H23-ecc",
        worker_fails("RuntimeError: CUDA error: uncorrectable ECC error encountered"),
        "uncorrectable ECC",
        ("ROW_REMAPPER",),
    ),
    Example("H24", main_killed(), "status=9/KILL", ("KillMode=mixed",), {"signal": 9}),
    Example("H25", serving_fault(True), "illegal memory", ("Restart=always",), {"exit_status": 0}),
    Example(
        "H25",
        serving_fault(True),
        "illegal memory",
        ("expandable_segments",),
        facts=Facts(environment={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
    ),
    Example(
        "H29-device-busy",
        worker_fails(
            "torch.AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable"
        ),
        "busy or unavailable",
        ("nvidia-smi",),
    ),
    # CPU boxes, systemd
    Example("C2-library-missing", libnuma(), "libnuma.so.1", ("install libnuma1",)),
    Example(
        "S1-exec-missing",
        unit_fails("Failed at step EXEC spawning /opt/v/bin/vllm: No such file or directory", 203),
        "/opt/v/bin/vllm",
        ("/opt/v/bin/vllm", "ExecStart="),
        {"status": 203},
    ),
    Example(
        "S5-unit-step",
        unit_fails("Failed at step CHDIR spawning /opt/v/bin/vllm: No such file or directory", 200),
        "step CHDIR",
        ("WorkingDirectory=",),
        {"status": 200},
    ),
    Example("S2-notify-timeout", start_times_out(True), "timed out", ("Type=exec", "Type=notify")),
    Example("S6-start-timeout", start_times_out(False), "timed out", ("TimeoutStartSec=",)),
    Example(
        "S3-not-installed",
        Made().crashes("ModuleNotFoundError: No module named 'vllm'").exits().text,
        "'vllm'",
        ("reinstall vllm",),
    ),
    Example(
        "S3-module-missing",
        Made().crashes("ModuleNotFoundError: No module named 'uvloop'").exits().text,
        "'uvloop'",
        ("install uvloop",),
    ),
    Example(
        "S4-stop-while-loading",
        stopped_while_loading(),
        "stop-sigterm",
        ("TimeoutStopSec",),
    ),
)
"""Rows without an example here (C1, H18, H21 of the router, H25 of a killed engine, …) are among
the recorded journals."""
