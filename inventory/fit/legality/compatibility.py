"""Model, engine and card: do they know each other? Everything decidable without starting."""

from __future__ import annotations

from collections.abc import Iterator

from inventory.base import Unknown
from inventory.fit.answer.verdict import Verdict
from inventory.fit.legality import engine_names
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
    "fbgemm_fp8": "fbgemm_fp8",
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
        yield Verdict(
            rule="world-size",
            certain=True,
            wanted=f"TP {settings.tp} x PP {settings.pp} x DP {settings.dp}",
            found=f"{settings.tp} x {settings.pp} x {settings.dp} = {settings.gpus} ranks, "
            f"and {len(cards)} GPUs",
            why="each rank takes a GPU of its own, and the engine refuses",
            next_step=f"use a product of at most {len(cards)}",
            choices=(f"TP={len(cards)}",),
        )


def _engine(a: Architecture, resolved: Resolved) -> Iterator[Verdict]:
    name, engine = a.name, resolved.engine
    if isinstance(name, Unknown) or isinstance(engine, Unknown):
        return
    removed = engine_names.last_supported().get(name)
    last = release(removed) if removed else None
    if last is not None and not isinstance(last, Unknown) and engine > last:
        yield Verdict(
            rule="engine-version",
            certain=True,
            wanted=f"{name} on vLLM {shown(engine)}",
            found=f"the last version that has it is {removed}",
            why="the engine refuses: 'was supported in vLLM until'",
            next_step=f"use vLLM {removed}, in an environment of its own",
            choices=(f"vllm=={removed}",),
        )
        return
    checked = engine_names.CHECKED_FROM.get(name)
    if checked is not None:
        oldest = release(checked)
        if not isinstance(oldest, Unknown) and engine < oldest:
            yield Verdict(
                rule="engine-version",
                certain=False,
                wanted=f"{name} on vLLM {shown(engine)}",
                found=f"the recipes serve it with {checked} or newer",
                why="an older engine may not have the class ('are not supported for now'), or its "
                "parsers",
                next_step=f"use vLLM {checked} or newer",
                choices=(f"vllm>={checked}",),
            )
    native = name in engine_names.models()
    if engine[:2] == engine_names.READ_FROM[:2] and not native:
        yield Verdict(
            rule="engine-version",
            certain=False,
            wanted=f"{name} on vLLM {shown(engine)}",
            found="this version has no implementation of that class",
            why="it is refused, or runs slowly through the Transformers backend",
            next_step="use the version that the model's card names",
        )
    if a.custom_code and not native and not resolved.settings.trust_remote_code:
        yield Verdict(
            rule="custom-code",
            certain=False,
            wanted=f"{name} without --trust-remote-code",
            found="config.json has auto_map: the repository brings Python code of its own",
            why="configuration or tokenizer do not load without it",
            next_step="read that code, then set trust_remote_code=True",
            choices=("--trust-remote-code",),
        )


def _parsers(settings: EngineSettings, engine: Release | Unknown) -> Iterator[Verdict]:
    known = not isinstance(engine, Unknown) and engine[:2] == engine_names.READ_FROM[:2]
    for flag, name, names in (
        ("--tool-call-parser", settings.tool_call_parser, engine_names.tool_call_parsers()),
        ("--reasoning-parser", settings.reasoning_parser, engine_names.reasoning_parsers()),
    ):
        if name is None or name in names:
            continue
        # Imported here: only a mistake needs it, and every start of the program would pay.
        from difflib import get_close_matches  # noqa: PLC0415

        near = tuple(get_close_matches(name, sorted(names), n=3, cutoff=0.5))
        yield Verdict(
            rule="parser",
            certain=known,
            wanted=f"{flag} {name}",
            found=f"vLLM {shown(engine_names.READ_FROM)} has {len(names)} of them, not this one",
            why="the engine refuses an unknown parser at the start, unless a plugin registers it",
            next_step=f"choose {', or '.join(near)}" if near else "leave the parser out",
            choices=near,
        )


def _length(a: Architecture, settings: EngineSettings) -> Iterator[Verdict]:
    if settings.max_model_len is None or isinstance(a.context, Unknown):
        return
    if settings.max_model_len > a.context:
        yield Verdict(
            rule="context",
            certain="VLLM_ALLOW_LONG_MAX_MODEL_LEN=1" not in settings.flags,
            wanted=f"max_model_len {settings.max_model_len:,}",
            found=f"the model's context is {a.context:,} tokens",
            why="the engine refuses a longer one",
            next_step=f"set max_model_len to {a.context} or less, or rope scaling in the model's "
            "configuration",
            choices=(f"--max-model-len {a.context}",),
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
        yield Verdict(
            rule="quantization",
            certain=True,
            wanted=f"--quantization {settings.quantization}",
            found=f"the checkpoint is {scheme.method}",
            why="the engine refuses a method that the checkpoint does not have",
            next_step="leave --quantization out: the checkpoint says it itself",
        )


def _capability(a: Architecture, resolved: Resolved, cards: tuple[Card, ...]) -> Iterator[Verdict]:
    capability = _lowest(cards)
    if capability is None:
        return
    scheme, settings = a.quantisation, resolved.settings
    if scheme is not None:
        least = next((cc for name, cc in _LEAST_CAPABILITY if scheme.method.startswith(name)), None)
        if least is not None and capability < least:
            yield Verdict(
                rule="capability",
                certain=True,
                wanted=f"{scheme.method} on {cards[0].name}",
                found=f"compute capability {capability}, and {scheme.method} needs {least}",
                why="the engine refuses: 'not supported for the current GPU'",
                next_step="take a checkpoint in another quantisation, or a newer card",
            )
    if settings.dtype == "bfloat16" and capability < _HALF_ONLY:
        yield Verdict(
            rule="capability",
            certain=True,
            wanted="--dtype bfloat16",
            found=f"compute capability {capability}, and bfloat16 needs {_HALF_ONLY}",
            why="the engine refuses",
            next_step="use --dtype half, or leave it out",
            choices=("--dtype half",),
        )
    if settings.kv_cache_dtype.startswith("fp8") and capability < _NATIVE_FP8:
        yield Verdict(
            rule="fp8-kv",
            certain=False,
            wanted=f"--kv-cache-dtype {settings.kv_cache_dtype}",
            found=f"compute capability {capability}, and fp8 arithmetic starts at {_NATIVE_FP8}",
            why="kernels fail with 'type fp8e4nv not supported' (vllm-project/vllm#26431)",
            next_step="leave kv_cache_dtype out",
            choices=("--kv-cache-dtype auto",),
        )
    if a.mla is not None and capability >= _SM120:
        flags = " ".join(settings.flags)
        if "TRITON_MLA" not in flags and "FLASHINFER_MLA" not in flags:
            yield Verdict(
                rule="attention-backend",
                certain=False,
                wanted=f"multi-head latent attention on {cards[0].name}",
                found=f"compute capability {capability} has few back ends for it: TRITON_MLA, and "
                "FLASHINFER_MLA_SPARSE_SM120 for sparse models",
                why="the engine may find none: 'No valid attention backend found'",
                next_step="set --attention-backend TRITON_MLA",
                choices=("--attention-backend TRITON_MLA",),
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
        yield Verdict(
            rule="capability",
            certain=False,
            wanted=f"NVFP4 experts on {cards[0].name}",
            found=f"vLLM {shown(engine)} at compute capability {capability}",
            why="FlashInfer's kernels of that version do not support it (vllm-project/vllm#33417)",
            next_step=f"use vLLM {shown(NVFP4_SM120_SINCE)} or newer",
            choices=(f"vllm>={shown(NVFP4_SM120_SINCE)}",),
        )


def _utilisation(resolved: Resolved) -> Iterator[Verdict]:
    if resolved.utilisation >= _FULL_UTILISATION and resolved.settings.gpus > 1:
        yield Verdict(
            rule="nccl-room",
            certain=False,
            wanted=f"gpu_memory_utilization {resolved.utilisation} on "
            f"{resolved.settings.gpus} GPUs",
            found=f"{1 - resolved.utilisation:.0%} of each card is left outside the budget",
            why="NCCL allocates buffers after the budget is spent and failed there at 0.95 "
            "('Failed to CUDA calloc', local-inference-lab/rtx6kpro troubleshooting)",
            next_step=f"use {MOST_UTILISATION_SEVERAL} or less",
            choices=(f"--gpu-memory-utilization {MOST_UTILISATION_SEVERAL}",),
        )


def _lowest(cards: tuple[Card, ...]) -> float | None:
    found: list[float] = []
    for one in cards:
        if isinstance(one.capability, str):
            try:
                found.append(float(one.capability))
            except ValueError:
                continue
    return min(found, default=None)
