"""Published starts: figures that engines printed, as issues and logs report them.

A case and a model entry are plain JSON (tests/fixtures/fit/NOTES.md describes the fields); this
module turns them into the inputs of the fit. Only what was known before the start goes in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from inventory.base import Unknown
from inventory.common.units import from_gib
from inventory.fit.memory.span import exactly
from inventory.fit.model.architecture import Architecture
from inventory.fit.model.config import read_architecture
from inventory.fit.model.reading import as_mapping, as_texts
from inventory.fit.settings.card import Card, card
from inventory.fit.settings.settings import EngineSettings, Runner, Sampler

_RUNNERS: tuple[Runner, ...] = ("V0", "V1", "V2")
_LARGEST_CARD = 100_000
_FLATTENED = ("mla", "indexer")
_SHORT_NAMES = {"head_dim_derived": "head_dim", "experts_per_tok": "num_experts_per_tok"}
_RUNTIME_QUANTISATION = re.compile(r"(\w+) \(runtime\)")


class Case(NamedTuple):
    """One published start."""

    id: str
    architecture: Architecture
    settings: EngineSettings
    cards: tuple[Card, ...]
    raw: Mapping[str, Any]

    @property
    def outcome(self) -> Mapping[str, Any]:
        """What happened, in the case's own fields."""
        return as_mapping(self.raw.get("outcome"))


def config_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of models.json in the form of a config.json.

    + entry: its numbers; null is absent. Counts of layer kinds become a list of kinds
    """
    config: dict[str, Any] = {key: value for key, value in entry.items() if value is not None}
    if isinstance(config.get("architecture"), str):
        config["architectures"] = [config.pop("architecture")]
    for short, own in _SHORT_NAMES.items():
        if short in config:
            config.setdefault(own, config[short])
    for part in _FLATTENED:
        config.update(as_mapping(config.pop(part, None)))
    kinds = as_mapping(config.get("layer_types"))
    if kinds:
        config["layer_types"] = [
            kind
            for kind, count in kinds.items()
            if isinstance(count, int)
            for _ in range(min(count, 4096))
        ]
    return config


_LABELS: Mapping[str, Mapping[str, Any]] = {
    # What the configuration of a checkpoint that people call so says, where the entry has only
    # the method: "w4a16" are four bits in groups of 128.
    "w8a8": {"num_bits": 8},
    "fp8": {"num_bits": 8},
    "int8": {"num_bits": 8},
    "w4a16": {"num_bits": 4, "group_size": 128},
    "int4": {"num_bits": 4, "group_size": 32},
}
_UNQUANTISED = frozenset({"", "bf16", "fp16", "fp32"})
_METHODS: Mapping[str, Mapping[str, Any]] = {
    # The same, where the entry has no quantisation at all.
    "nvfp4": {"quant_method": "modelopt", "quant_algo": "NVFP4"},
    "int4": {"quant_method": "gptq", "bits": 4},
    "4-bit": {"quant_method": "gptq", "bits": 4},
    "w4a16": {"quant_method": "gptq", "bits": 4},
    "w8a8": {"quant_method": "gptq", "bits": 8},
    "int8": {"quant_method": "gptq", "bits": 8},
}


def _completed(config: dict[str, Any], label: str) -> dict[str, Any]:
    """The quantisation with what its name says, where the entry leaves it out."""
    given = dict(as_mapping(config.get("quantization_config")))
    if not given:
        # Quantised when loaded: the files are not ("fp8 (runtime)").
        if label not in _UNQUANTISED and not _RUNTIME_QUANTISATION.match(label):
            config["quantization_config"] = _METHODS.get(label, {"quant_method": label})
        return config
    weights = dict(_LABELS.get(label, {}))
    if weights and given.get("quant_method") == "compressed-tensors":
        if isinstance(given.get("group_size"), int):
            weights["group_size"] = given["group_size"]
        given.setdefault("config_groups", {"group_0": {"weights": weights}})
        config["quantization_config"] = given
    return config


def architecture_of(entry: Mapping[str, Any], label: str = "") -> Architecture:
    """The architecture of an entry of models.json.

    + label: what people call its quantisation: w4a16, fp8
    """
    size = entry.get("bytes_on_disk")
    files = {"model.safetensors": round(size)} if isinstance(size, (int, float)) else None
    return read_architecture(_completed(config_of(entry), label), files)


def case_of(raw: Mapping[str, Any], models: Mapping[str, Mapping[str, Any]]) -> Case:
    """A case with what it needs.

    + raw: an entry of cases.json
    + models: models.json
    """
    name = raw.get("model")
    entry = models.get(name, {}) if isinstance(name, str) else {}
    gpu = as_mapping(raw.get("gpu"))
    return Case(
        id=str(raw.get("id")),
        architecture=architecture_of(entry, str(raw.get("quantisation") or "")),
        settings=_settings(raw),
        cards=_cards(gpu),
        raw=raw,
    )


def _card_with_memory(name: str, engine_total: int) -> Card:
    """A card whose memory the engine printed itself: b of "Free memory on device (a/b GiB)"."""
    known = card(name)
    if isinstance(known, Unknown):
        return Card(name=name, total=exactly(engine_total))
    return known.model_copy(update={"total": exactly(engine_total)})


def _cards(gpu: Mapping[str, Any]) -> tuple[Card, ...]:
    name, total, count = gpu.get("name"), gpu.get("mem_gib"), gpu.get("count")
    number = min(count, 1024) if isinstance(count, int) and count > 0 else 1
    label = name if isinstance(name, str) else "unnamed"
    if isinstance(total, (int, float)) and 0 < total < _LARGEST_CARD:
        return (_card_with_memory(label, from_gib(total)),) * number
    known = card(label)
    return () if isinstance(known, Unknown) else (known,) * number


def _settings(raw: Mapping[str, Any]) -> EngineSettings:
    flags = as_texts(raw.get("other_flags"))
    joined = " ".join(flags)
    quantised = raw.get("quantisation") if isinstance(raw.get("quantisation"), str) else ""
    runtime = _RUNTIME_QUANTISATION.match(quantised or "")
    speculative = str(raw.get("speculative") or "")
    memory = re.search(r"--kv-cache-memory (\d+)", f"{joined} {raw.get('notes') or ''}")
    return EngineSettings(
        engine=_text(raw, "vllm_version"),
        tp=_number(raw, "tp") or 1,
        pp=_number(raw, "pp") or 1,
        dp=_number(raw, "dp") or 1,
        ep=raw.get("ep") is True,
        dcp=_number(raw, "dcp") or 1,
        gpu_memory_utilization=_share(raw.get("gpu_memory_utilization")),
        kv_cache_memory=int(memory.group(1)) if memory else None,
        max_model_len=_number(raw, "max_model_len"),
        max_num_seqs=_number(raw, "max_num_seqs_effective") or _number(raw, "max_num_seqs"),
        max_num_batched_tokens=_number(raw, "max_num_batched_tokens"),
        kv_cache_dtype=_text(raw, "kv_cache_dtype") or "auto",
        block_size=_number(raw, "block_size"),
        dtype="float32" if quantised == "fp32" else "auto",
        quantization=runtime.group(1) if runtime else None,
        runner=_runner(raw.get("runner")),
        sampler=_sampler(raw.get("sampler")),
        enforce_eager=raw.get("enforce_eager") is True,
        graph_estimate=_estimate(raw.get("graph_profiling")),
        draft=speculative.startswith("mtp"),
        cpu_offload=from_gib(_number(raw, "cpu_offload_gb") or 0),
        prefix_caching="--no-enable-prefix-caching" not in flags,
        vision_data_parallel="--mm-encoder-tp-mode data" in joined,
        server="LLM() API" not in flags,
        flags=flags,
    )


def _text(raw: Mapping[str, Any], name: str) -> str | None:
    value = raw.get(name)
    return value if isinstance(value, str) else None


def _number(raw: Mapping[str, Any], name: str) -> int | None:
    value = raw.get(name)
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if is_count else None


def _share(value: object) -> float | None:
    is_share = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 1
    return float(value) if is_share else None  # type: ignore[arg-type]


def _runner(value: object) -> Runner | None:
    return next((runner for runner in _RUNNERS if runner == value), None)


def _sampler(value: object) -> Sampler | None:
    if not isinstance(value, str):
        return None
    return "flashinfer" if value.startswith("flashinfer") else "native"


def _estimate(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    return value == "applied" if isinstance(value, str) else None


def printed_gib(outcome: Mapping[str, Any], name: str) -> float | None:
    """A figure of the engine's lines in GiB; None where they do not print it."""
    value = outcome.get(name)
    return float(value) if isinstance(value, (int, float)) else None


def printed_bytes(outcome: Mapping[str, Any], name: str) -> int | None:
    """The same in bytes."""
    value = printed_gib(outcome, name)
    return None if value is None else from_gib(value)
