"""A model's architecture from its config.json, its file listing and its safetensors headers."""

import re
from collections.abc import Mapping
from typing import Any

from inventory.base import Unknown
from inventory.fit.model import config_parts as parts
from inventory.fit.model.architecture import Architecture, Checkpoint, Dimension, Experts
from inventory.fit.model.layers import layer_kinds
from inventory.fit.model.reading import Fields, as_mapping, as_texts
from inventory.fit.model.safetensors import Header, tensor_sums

_TEXT_PARTS = ("text_config", "llm_config", "language_config", "thinker_config")
_DRAFT_LAYERS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")
_WEIGHT_FILE = re.compile(r"\.(safetensors|bin|pt|gguf)$")
_UNGATED = ("phiforcausal", "gpt2", "gptneox", "opt", "bloom", "falcon", "starcoder2", "gptbigcode")
_TIED = ("gemma", "gpt2", "cohere", "opt", "bloom", "granite")
_FAMILY_DEFAULTS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    # What these families leave out of config.json (transformers' configuration of each).
    ("gemma3", {"vocab_size": 262_208, "head_dim": 256, "sliding_window": 4096}),
    # Their checkpoints hold one layer of multi-token prediction (tensors mtp.*), said or not.
    ("qwen3next", {"num_nextn_predict_layers": 1, "attn_output_gate": True}),
    ("qwen35", {"num_nextn_predict_layers": 1, "attn_output_gate": True}),
    # nvidia/DeepSeek-V4-Pro-NVFP4 config.json names the original's experts so.
    ("deepseekv4", {"expert_dtype": "fp4"}),
)


def read_architecture(
    config: Mapping[str, Any],
    files: Mapping[str, int] | None = None,
    headers: Mapping[str, Header] | None = None,
    hf_quant_config: Mapping[str, Any] | None = None,
) -> Architecture:
    """What a model is.

    + config: config.json as it is. A value of a wrong kind becomes an unknown with its reason;
      nothing raises
    + files: size in bytes by name, of the whole repository
    + headers: safetensors headers by file name, from
      :func:`inventory.fit.model.safetensors.read_header`: with all of them the weights are exact
    + hf_quant_config: hf_quant_config.json: ModelOpt writes there what config.json lacks

    >>> read_architecture({"num_attention_heads": 40}).layers.unknown
    'num_hidden_layers is not in config.json'
    """
    top = as_mapping(config)
    text = _text_part(top)
    name, model_type = _name(top), Fields(text, top).text("model_type")
    family = re.sub(r"[^a-z0-9]", "", f"{name or ''} {model_type or ''}".lower())
    defaults = next((d for part, d in _FAMILY_DEFAULTS if part in family), {})
    own = Fields(text, defaults)
    shared = Fields(text, top, defaults)
    notes: list[str] = []

    layers = own.count("num_hidden_layers", "n_layer", "num_layers", "n_layers")
    hidden = own.count("hidden_size", "n_embd", "d_model")
    heads = own.count("num_attention_heads", "n_head", "n_heads")
    kv_heads = own.count(
        "num_key_value_heads", "num_kv_heads", "multi_query_group_num", "n_head_kv"
    )
    if isinstance(kv_heads, Unknown) and not isinstance(heads, Unknown):
        # Absent means one pair of key and value for each query head.
        kv_heads = heads if own.raw("num_key_value_heads", "num_kv_heads") is None else kv_heads
    head_dim = _head_dim(own, hidden, heads)
    mla = parts.mla(own)
    kinds: tuple[Any, ...] = ()
    if not isinstance(layers, Unknown):
        kinds, remark = layer_kinds(own, family, layers)
        notes += [remark] if remark else []
    swa_heads, swa_dim = own.optional("swa_num_key_value_heads"), own.optional("swa_head_dim")
    global_heads = own.optional("num_global_key_value_heads")
    global_dim = own.optional("global_head_dim")
    if swa_heads and not isinstance(kv_heads, Unknown):
        kv_heads, global_heads = swa_heads, kv_heads
    if swa_dim and not isinstance(head_dim, Unknown):
        head_dim, global_dim = swa_dim, head_dim
    moe = parts.experts(own, family, layers, notes)
    checkpoint = _checkpoint(files)
    return Architecture(
        name=name or Unknown(unknown="architectures is not in config.json"),
        model_type=model_type or Unknown(unknown="model_type is not in config.json"),
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        value_dim=head_dim if own.optional("v_head_dim") is None else own.count("v_head_dim"),
        global_head_dim=global_dim,
        global_kv_heads=global_heads,
        intermediate=_intermediate(own, family, moe),
        gated=not any(part in family for part in _UNGATED),
        vocabulary=shared.count("vocab_size", "padded_vocab_size"),
        tied=_tied(shared, family),
        context=_context(own),
        kinds=kinds,
        kv_shared_layers=own.optional("num_kv_shared_layers") or 0,
        window=own.count("sliding_window") if "sliding" in kinds else None,
        chunk=own.count("attention_chunk_size") if "chunked" in kinds else None,
        state=parts.state(own) if "linear" in kinds else None,
        mla=mla,
        indexer=parts.indexer(own),
        experts=moe,
        draft_layers=own.optional(*_DRAFT_LAYERS) or 0,
        quantisation=parts.quantisation(shared, hf_quant_config),
        gated_attention=own.flag("attn_output_gate"),
        vision=parts.vision(top, family),
        custom_code=bool(as_mapping(top.get("auto_map"))),
        compressed_kv="deepseekv4" in family,
        checkpoint=checkpoint,
        tensors=tensor_sums(headers, layers) if headers else None,
        notes=tuple(notes),
    )


def _text_part(top: Mapping[str, Any]) -> Mapping[str, Any]:
    for part in _TEXT_PARTS:
        inner = as_mapping(top.get(part))
        if inner:
            deeper = as_mapping(inner.get("text_config"))
            return deeper or inner
    return top


def _name(top: Mapping[str, Any]) -> str | None:
    names = as_texts(top.get("architectures"))
    return names[0] if names else None


_LENGTH_IS_SCALED = {"su", "longrope", "llama3", "mrope", "default"}
"""Kinds of rope scaling under which max_position_embeddings is the whole context already
(vLLM 0.32.0 config/model.py, _get_and_verify_max_len)."""


def _context(own: Fields) -> Dimension:
    said = own.count(
        "max_position_embeddings", "model_max_length", "max_sequence_length", "n_positions"
    )
    rope = Fields(own.mapping("rope_scaling", "rope_parameters"))
    kind = rope.text("rope_type", "type") or "default"
    factor = rope.raw("factor")
    if isinstance(said, Unknown) or kind in _LENGTH_IS_SCALED:
        return said
    if not isinstance(factor, (int, float)) or not 1 <= factor <= 1024:  # noqa: PLR2004
        return said
    base = rope.optional("original_max_position_embeddings") if kind == "yarn" else None
    return round((base or said) * factor)


def _head_dim(own: Fields, hidden: Dimension, heads: Dimension) -> Dimension:
    said = own.count("head_dim", "attention_head_dim")
    if not isinstance(said, Unknown):
        return said
    if isinstance(hidden, Unknown) or isinstance(heads, Unknown):
        return said
    return max(1, hidden // heads)


def _intermediate(own: Fields, family: str, moe: Experts | None) -> Dimension:
    dense = own.count("intermediate_size_mlp") if "llama4" in family else None
    if dense is not None and not isinstance(dense, Unknown):
        return dense
    said = own.count("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size")
    if isinstance(said, Unknown) and moe is not None and moe.shared_intermediate:
        return moe.shared_intermediate
    return said


def _tied(shared: Fields, family: str) -> bool:
    said = shared.raw("tie_word_embeddings")
    if isinstance(said, bool):
        return said
    return any(part in family for part in _TIED)


def _checkpoint(files: Mapping[str, int] | None) -> Checkpoint | None:
    if files is None:
        return None
    weights = {name: size for name, size in files.items() if _WEIGHT_FILE.search(name)}
    safetensors = {name: size for name, size in weights.items() if name.endswith(".safetensors")}
    # A repository that has both keeps the same weights twice; the engine loads safetensors.
    chosen = safetensors or weights
    if not chosen:
        return Checkpoint(size=Unknown(unknown="no weight files in the listing"))
    return Checkpoint(size=sum(chosen.values()), shards=len(chosen))
