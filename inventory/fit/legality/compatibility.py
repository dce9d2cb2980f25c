"""Model, engine and card: do they know each other? Everything decidable without starting."""

from collections.abc import Iterator

from inventory.base import Unknown
from inventory.fit.answer.verdict import Verdict, certainty, prediction
from inventory.fit.legality import engine_names
from inventory.fit.legality.flags import near
from inventory.fit.model.architecture import Architecture
from inventory.fit.settings.card import Card
from inventory.fit.settings.resolve import MOST_UTILISATION_SEVERAL, Resolved
from inventory.fit.settings.settings import EngineSettings, Release, release, shown

_LEAST_CAPABILITY: tuple[tuple[str, float], ...] = (
    # get_min_capability of each method, vLLM 0.32.0 model_executor/layers/quantization/.
    ("awq", 7.5),
    ("auto_awq", 7.5),
    ("gptq", 6.0),
    ("auto_gptq", 6.0),
    ("fp8", 7.5),
    ("fbgemm_fp8", 8.0),
    ("modelopt-nvfp4", 7.5),
    ("modelopt", 8.0),
    ("mxfp4", 8.0),
    ("experts_int8", 8.0),
    ("compressed-tensors", 7.0),
)
_NATIVE_FP8 = 8.9
_HALF_ONLY = 8.0
_SM120 = 12.0
NVFP4_SM120_SINCE: Release = (0, 16, 0)
"""Before, FlashInfer's NVFP4 experts did not know capability 12.0 (vllm-project/vllm#33417)."""
_FULL_UTILISATION = 0.95
_ALIASES = {
    "awq_marlin": "awq",
    "auto_awq": "awq",
    "gptq_marlin": "gptq",
    "auto_gptq": "gptq",
    "moe_wna16": "",
    "modelopt_fp4": "modelopt",
    "modelopt_mixed": "modelopt",
    "modelopt_mxfp8": "modelopt",
    "gpt_oss_mxfp4": "mxfp4",
    "deepseek_v4_fp8": "fp8",
}


def compatibility_verdicts(
    architecture: Architecture, resolved: Resolved, cards: tuple[Card, ...]
) -> tuple[Verdict, ...]:
    """What does not fit between the model, the engine's version and the cards.

    + cards: the GPUs; without any, only model and engine are compared
    """
    settings = resolved.settings
    return (
        *_world(settings, cards),
        *_engine(architecture, resolved),
        *_parsers(settings, resolved.engine),
        *_length(architecture, settings),
        *_method(architecture, settings),
        *_capability(architecture, resolved, cards),
        *_utilisation(resolved),
    )


def _world(settings: EngineSettings, cards: tuple[Card, ...]) -> Iterator[Verdict]:
    if cards and settings.gpus > len(cards):
        yield certainty(
            "world-size",
            f"TP {settings.tp} x PP {settings.pp} x DP {settings.dp}",
            f"{settings.tp} x {settings.pp} x {settings.dp} = {settings.gpus} ranks, "
            f"and {len(cards)} GPUs",
            "each rank takes a GPU of its own, and the engine refuses",
            f"use a product of at most {len(cards)}",
            f"TP={len(cards)}",
        )


def _engine(a: Architecture, resolved: Resolved) -> Iterator[Verdict]:
    name, engine = a.name, resolved.engine
    if isinstance(name, Unknown) or isinstance(engine, Unknown):
        return
    removed = engine_names.LAST_SUPPORTED.get(name)
    last = release(removed) if removed else None
    if last is not None and not isinstance(last, Unknown) and engine > last:
        yield certainty(
            "engine-version",
            f"{name} on vLLM {shown(engine)}",
            f"the last version that has it is {removed}",
            "the engine refuses: 'was supported in vLLM until'",
            f"use vLLM {removed}, in an environment of its own",
            f"vllm=={removed}",
        )
        return
    checked = engine_names.CHECKED_FROM.get(name)
    if checked is not None:
        oldest = release(checked)
        if not isinstance(oldest, Unknown) and engine < oldest:
            yield prediction(
                "engine-version",
                f"{name} on vLLM {shown(engine)}",
                f"the recipes serve it with {checked} or newer",
                "an older engine may not have the class ('are not supported for now'), or its "
                "parsers",
                f"use vLLM {checked} or newer",
                f"vllm>={checked}",
            )
    native = name in engine_names.MODELS
    if engine[:2] == engine_names.READ_FROM[:2] and not native:
        yield prediction(
            "engine-version",
            f"{name} on vLLM {shown(engine)}",
            "this version has no implementation of that class",
            "it is refused, or runs slowly through the Transformers backend",
            "use the version that the model's card names",
        )
    if a.custom_code and not native and not resolved.settings.trust_remote_code:
        yield prediction(
            "custom-code",
            f"{name} without --trust-remote-code",
            "config.json has auto_map: the repository brings Python code of its own",
            "configuration or tokenizer do not load without it",
            "read that code, then set trust_remote_code=True",
            "--trust-remote-code",
        )


def _parsers(settings: EngineSettings, engine: Release | Unknown) -> Iterator[Verdict]:
    known = not isinstance(engine, Unknown) and engine[:2] == engine_names.READ_FROM[:2]
    for flag, name, names in (
        ("--tool-call-parser", settings.tool_call_parser, engine_names.TOOL_CALL_PARSERS),
        ("--reasoning-parser", settings.reasoning_parser, engine_names.REASONING_PARSERS),
    ):
        if name is None or name in names:
            continue
        close = near(name, names, cutoff=0.5)
        yield certainty(
            "parser",
            f"{flag} {name}",
            f"vLLM {shown(engine_names.READ_FROM)} has {len(names)} of them, not this one",
            "the engine refuses an unknown parser at the start, unless a plugin registers it",
            f"choose {', or '.join(close)}" if close else "leave the parser out",
            *close,
            certain=known,
        )


def _length(a: Architecture, settings: EngineSettings) -> Iterator[Verdict]:
    if settings.max_model_len is None or isinstance(a.context, Unknown):
        return
    if settings.max_model_len > a.context:
        yield certainty(
            "context",
            f"max_model_len {settings.max_model_len:,}",
            f"the model's context is {a.context:,} tokens",
            "the engine refuses a longer one",
            f"set max_model_len to {a.context} or less, or rope scaling in the model's "
            "configuration",
            f"--max-model-len {a.context}",
            certain="VLLM_ALLOW_LONG_MAX_MODEL_LEN=1" not in settings.flags,
        )


def _method(a: Architecture, settings: EngineSettings) -> Iterator[Verdict]:
    scheme, asked = a.quantisation, settings.quantization
    if scheme is None or asked is None:
        return
    asked = _ALIASES.get(asked, asked)
    have = scheme.method.split("-", 1)[0] if scheme.method.startswith("modelopt") else scheme.method
    if have.startswith("compressed-tensors"):
        have = "compressed-tensors"
    have = _ALIASES.get(have, have)
    if asked and asked != have:
        yield certainty(
            "quantization",
            f"--quantization {settings.quantization}",
            f"the checkpoint is {scheme.method}",
            "the engine refuses a method that the checkpoint does not have",
            "leave --quantization out: the checkpoint says it itself",
        )


def _capability(a: Architecture, resolved: Resolved, cards: tuple[Card, ...]) -> Iterator[Verdict]:
    capability = min((one.compute for one in cards if one.compute is not None), default=None)
    if capability is None:
        return
    scheme, settings = a.quantisation, resolved.settings
    if scheme is not None:
        least = next((cc for name, cc in _LEAST_CAPABILITY if scheme.method.startswith(name)), None)
        if least is not None and capability < least:
            yield certainty(
                "capability",
                f"{scheme.method} on {cards[0].name}",
                f"compute capability {capability}, and {scheme.method} needs {least}",
                "the engine refuses: 'not supported for the current GPU'",
                "take a checkpoint in another quantisation, or a newer card",
            )
    if settings.dtype == "bfloat16" and capability < _HALF_ONLY:
        yield certainty(
            "capability",
            "--dtype bfloat16",
            f"compute capability {capability}, and bfloat16 needs {_HALF_ONLY}",
            "the engine refuses",
            "use --dtype half, or leave it out",
            "--dtype half",
        )
    if settings.kv_cache_dtype.startswith("fp8") and capability < _NATIVE_FP8:
        yield prediction(
            "fp8-kv",
            f"--kv-cache-dtype {settings.kv_cache_dtype}",
            f"compute capability {capability}, and fp8 arithmetic starts at {_NATIVE_FP8}",
            "kernels fail with 'type fp8e4nv not supported' (vllm-project/vllm#26431)",
            "leave kv_cache_dtype out",
            "--kv-cache-dtype auto",
        )
    if a.mla is not None and capability >= _SM120:
        flags = " ".join(settings.flags)
        if "TRITON_MLA" not in flags and "FLASHINFER_MLA" not in flags:
            yield prediction(
                "attention-backend",
                f"multi-head latent attention on {cards[0].name}",
                f"compute capability {capability} has few back ends for it: TRITON_MLA, and "
                "FLASHINFER_MLA_SPARSE_SM120 for sparse models",
                "the engine may find none: 'No valid attention backend found'",
                "set --attention-backend TRITON_MLA",
                "--attention-backend TRITON_MLA",
            )
    is_nvfp4 = scheme is not None and "nvfp4" in scheme.method
    engine = resolved.engine
    if (
        is_nvfp4
        and a.experts is not None
        and capability >= _SM120
        and not isinstance(engine, Unknown)
        and engine < NVFP4_SM120_SINCE
    ):
        yield prediction(
            "capability",
            f"NVFP4 experts on {cards[0].name}",
            f"vLLM {shown(engine)} at compute capability {capability}",
            "FlashInfer's kernels of that version do not support it (vllm-project/vllm#33417)",
            f"use vLLM {shown(NVFP4_SM120_SINCE)} or newer",
            f"vllm>={shown(NVFP4_SM120_SINCE)}",
        )


def _utilisation(resolved: Resolved) -> Iterator[Verdict]:
    if resolved.utilisation >= _FULL_UTILISATION and resolved.settings.gpus > 1:
        yield prediction(
            "nccl-room",
            f"gpu_memory_utilization {resolved.utilisation} on {resolved.settings.gpus} GPUs",
            f"{1 - resolved.utilisation:.0%} of each card is left outside the budget",
            "NCCL allocates buffers after the budget is spent and failed there at 0.95 "
            "('Failed to CUDA calloc', local-inference-lab/rtx6kpro troubleshooting)",
            f"use {MOST_UTILISATION_SEVERAL} or less",
            f"--gpu-memory-utilization {MOST_UTILISATION_SEVERAL}",
        )
