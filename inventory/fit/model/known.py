"""Models that can be asked about without a box: in a local folder, or known by their numbers.

The known numbers are those of config.json, each with its source.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from inventory.base import Unknown
from inventory.common.safetensors import LENGTH_BYTES
from inventory.errors import DesiredStateError
from inventory.fit.model.architecture import Architecture
from inventory.fit.model.config import read_architecture
from inventory.fit.model.safetensors import Header, header_length, read_header


class Known(NamedTuple):
    """One model."""

    config: Mapping[str, Any]
    source: str
    weight_bytes: int | None = None
    shards: int = 0


def _known(config: Mapping[str, Any], source: str, **quantisation: Any) -> Known:
    return Known({**config, "quantization_config": quantisation}, source)


_MINIMAX_M2: dict[str, Any] = {
    "architectures": ["MiniMaxM2ForCausalLM"],
    "model_type": "minimax_m2",
    "auto_map": {"AutoConfig": "configuration_minimax_m2.MiniMaxM2Config"},
    "num_hidden_layers": 62,
    "hidden_size": 3072,
    "num_attention_heads": 48,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "rotary_dim": 64,
    "num_local_experts": 256,
    "num_experts_per_tok": 8,
    "intermediate_size": 1536,
    "vocab_size": 200_064,
    "max_position_embeddings": 196_608,
    "tie_word_embeddings": False,
}
_KIMI_K25: dict[str, Any] = {
    "architectures": ["KimiK25ForConditionalGeneration"],
    "model_type": "kimi_k25",
    "auto_map": {"AutoConfig": "configuration_kimi_k25.KimiK25Config"},
    "tie_word_embeddings": False,
    "text_config": {
        "model_type": "kimi_k2",
        "num_hidden_layers": 61,
        "hidden_size": 7168,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "kv_lora_rank": 512,
        "q_lora_rank": 1536,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "n_routed_experts": 384,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2048,
        "intermediate_size": 18_432,
        "first_k_dense_replace": 1,
        "vocab_size": 163_840,
        "max_position_embeddings": 262_144,
    },
    "vision_config": {
        "vt_num_attention_heads": 16,
        "vt_num_hidden_layers": 27,
        "vt_hidden_size": 1152,
        "vt_intermediate_size": 4304,
    },
}
_KIMI_SOURCE = (
    "ai-dynamo/aiconfigurator@202f06a30 model_configs/nvidia--Kimi-K2.5-NVFP4_config.json"
)

KNOWN: dict[str, Known] = {
    "MiniMaxAI/MiniMax-M2.5": _known(
        _MINIMAX_M2,
        "ai-dynamo/aiconfigurator@095f58a51 model_configs/MiniMaxAI--MiniMax-M2.5_config.json",
        quant_method="fp8",
        weight_block_size=[128, 128],
        modules_to_not_convert=["gate", "e_score_correction_bias", "lm_head"],
    ),
    "nvidia/MiniMax-M2.5-NVFP4": _known(
        _MINIMAX_M2,
        "ai-dynamo/aiconfigurator@095f58a51 model_configs/nvidia--MiniMax-M2.5-NVFP4_config.json",
        quant_method="modelopt",
        quant_algo="NVFP4",
        kv_cache_scheme={"dynamic": False, "num_bits": 8, "type": "float"},
    ),
    "moonshotai/Kimi-K2.5": _known(
        _KIMI_K25,
        f"{_KIMI_SOURCE} (carries the original's block); 64 files of 554.27 GiB by a published "
        "listing of tensors",
        quant_method="compressed-tensors",
        format="pack-quantized",
        config_groups={
            "group_0": {"weights": {"num_bits": 4, "group_size": 32, "strategy": "group"}}
        },
        ignore=[
            "lm_head",
            "re:.*self_attn.*",
            "re:.*shared_experts.*",
            "re:.*mlp\\.(gate|up|gate_up|down)_proj.*",
        ],
    )._replace(weight_bytes=595_145_875_865, shards=64),
    "nvidia/Kimi-K2.5-NVFP4": _known(
        _KIMI_K25,
        f"{_KIMI_SOURCE}; its list of exceptions is in hf_quant_config.json and not known here: "
        "540 GB by the field log",
        quant_method="modelopt",
        quant_algo="NVFP4",
    ),
}
"""Repository -> what is known of it."""


def known_architecture(name: str) -> Architecture:
    """A known model.

    + name: its repository, or the end of it: "MiniMax-M2.5"
    + raises: DesiredStateError with the names that are known
    """
    exact = KNOWN.get(name)
    ends = [one for repo, one in KNOWN.items() if repo.split("/")[1].lower() == name.lower()]
    found = exact or (ends[0] if len(ends) == 1 else None)
    if found is None:
        raise DesiredStateError(
            wanted=f"the configuration of {name!r}",
            found=f"{len(KNOWN)} known models: {', '.join(KNOWN)}",
            why="without config.json nothing can be said about what fits",
            next_step="give a folder that holds the model's config.json, or one of these names",
        )
    files = {f"model-{i}.safetensors": 0 for i in range(1, found.shards)}
    listing = files | {"model.safetensors": found.weight_bytes} if found.weight_bytes else None
    return read_architecture(found.config, listing)


def architecture_in(folder: Path) -> Architecture:
    """The architecture of the model in a folder.

    + folder: holds config.json, and the weights or only the index of them
    + raises: DesiredStateError if config.json cannot be read
    """
    config = _json(folder / "config.json")
    if config is None:
        raise DesiredStateError(
            wanted=f"a model in {folder}",
            found="no config.json that can be read there",
            why="it holds the numbers that everything follows from",
            next_step="give the folder of the snapshot, the one with config.json in it",
        )
    files = {path.name: path.stat().st_size for path in folder.iterdir() if path.is_file()}
    headers = _headers(folder, files)
    indexed = _indexed(folder)
    if headers is None and indexed is not None:
        files = {name: size for name, size in files.items() if not name.endswith(".safetensors")}
        files["model.safetensors"] = indexed
    return read_architecture(config, files, headers, _json(folder / "hf_quant_config.json"))


def _headers(folder: Path, files: dict[str, int]) -> dict[str, Header] | None:
    """Headers of all weight files; None where one is missing or damaged."""
    index = _json(folder / "model.safetensors.index.json")
    named = index.get("weight_map") if index else None
    expected = set(named.values()) if isinstance(named, dict) else set()
    names = {name for name in files if name.endswith(".safetensors")}
    if not names or expected - names:
        return None
    headers: dict[str, Header] = {}
    for name in sorted(expected or names):
        with (folder / name).open("rb") as file:
            prefix = file.read(LENGTH_BYTES)
            length = header_length(prefix)
            if isinstance(length, Unknown):
                return None
            header = read_header(prefix + file.read(length))
        if isinstance(header, Unknown):
            return None
        headers[name] = header
    return headers


def _indexed(folder: Path) -> int | None:
    """Bytes of the weights by the index, which counts tensors and not the headers."""
    index = _json(folder / "model.safetensors.index.json")
    metadata = index.get("metadata") if index else None
    size = metadata.get("total_size") if isinstance(metadata, dict) else None
    return int(size) if isinstance(size, (int, float)) and size > 0 else None


def _json(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
