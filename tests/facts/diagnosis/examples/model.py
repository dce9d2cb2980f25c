"""A: model, tokenizer, quantisation, parsers; H5."""

from __future__ import annotations

from tests.facts.diagnosis.examples.kind import Example
from tests.facts.diagnosis.examples.scenes import inspected, invalid
from tests.facts.diagnosis.journals import server_fails, worker_fails

MODEL: tuple[Example, ...] = (
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
        "A3",
        invalid(
            "ModelConfig",
            "Model architecture OddForCausalLM is not supported in-tree anymore. Please install "
            "the plugin at https://example.org/odd if you want to use this model architecture.",
        ),
        "OddForCausalLM",
        ("https://example.org/odd",),
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
        "A6",
        invalid("VllmConfig", "modelopt quantization is currently not supported in cpu."),
        "modelopt quantization",
        ("BF16",),
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
        "A12",
        worker_fails(
            "RuntimeError: Assertion error (csrc/apis/layout.hpp:59): Unknown SF transformation",
            (("vllm/model_executor/warmup/deep_gemm_warmup.py", "fp8_gemm_nt("),),
        ),
        "layout.hpp:59",
        ("VLLM_USE_DEEP_GEMM=0",),
        {"what": "Unknown SF transformation"},
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
        "A16",
        server_fails(
            "openai_harmony.HarmonyError: error downloading or loading vocab file: failed"
        ),
        "HarmonyError",
        ("TIKTOKEN_ENCODINGS_BASE",),
    ),
)
