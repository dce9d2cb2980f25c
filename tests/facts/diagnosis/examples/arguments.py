"""A15: flags and values."""

from __future__ import annotations

from facts.diagnosis import Hints
from tests.facts.diagnosis.examples.kind import Example
from tests.facts.diagnosis.examples.scenes import invalid
from tests.facts.diagnosis.journals import Made, server_fails, worker_fails

OPTION = "api_server.py: error: {}"

ARGUMENTS: tuple[Example, ...] = (
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
        ("VLLM_CPU_KVCACHE_SPACE", "0.5 is not one"),
    ),
    Example(
        "A15-value",
        invalid("SchedulerConfig", "max_num_batched_tokens (64) must be greater than or equal to"),
        "max_num_batched_tokens (64)",
        ("change the flag",),
    ),
    Example(
        "A15-value",
        server_fails(
            "ValueError: Invalid value 'BLH' for VLLM_KV_CACHE_LAYOUT. Valid options: "
            "['NHD', 'HND']."
        ),
        "'BLH'",
        ("VLLM_KV_CACHE_LAYOUT=BLH", "NHD"),
    ),
    Example(
        "A15-value",
        server_fails("TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser"),
        "requires --tool-call-parser",
        ("add or remove the flag",),
    ),
    Example(
        "A15-value",
        Made()
        .raw(
            "vllm[100]",
            OPTION.format("argument --x-dtype: invalid choice: 'fp9' (choose from 'auto', 'fp8')"),
        )
        .exits(2)
        .text,
        "invalid choice",
        ("correct --x-dtype: fp8 is near",),
    ),
    Example(
        "A15-value",
        worker_fails("ValueError: Load format `bogus` is not supported"),
        "bogus",
        ("--load-format",),
    ),
    Example(
        "A15-value",
        server_fails("OverflowError: bind(): port must be 0-65535."),
        "0-65535",
        ("--port",),
    ),
    Example(
        "A15-value",
        server_fails(
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig\n"
            "  Value error, invalid literal for int() with base 10: '0.5' [type=value_error]",
            (("vllm/engine/arg_utils.py", "config = VllmConfig("),),
        ),
        "'0.5'",
        ("VLLM_CPU_KVCACHE_SPACE",),
        hints=Hints(environment={"VLLM_CPU_KVCACHE_SPACE": "0.5", "A": "b"}),
    ),
)
