"""Parts of a configuration: experts, latent attention, linear attention, image encoder."""

from collections.abc import Mapping
from typing import Any

from inventory.base import Unknown
from inventory.fit.model.architecture import (
    Dimension,
    Experts,
    Indexer,
    LinearState,
    Mla,
    Quantisation,
    Vision,
)
from inventory.fit.model.quantisation import quantisation as read_quantisation
from inventory.fit.model.reading import Fields, as_mapping

_EXPERTS_IN_INTERMEDIATE = ("minimaxm2", "mixtral", "gptoss", "phimoe", "llama4")

_FP4_EXPERT_BITS = 4 + 8 / 32
"""``expert_dtype: fp4``: one scale of 8 bits for 32 weights, as in MXFP4."""


def quantisation(shared: Fields, side: Mapping[str, Any] | None) -> Quantisation | None:
    beside = as_mapping(as_mapping(side).get("quantization"))
    if beside:
        # A checkpoint that was converted keeps the original's block in config.json: ModelOpt's
        # own file beside it is the one that is true (nvidia/Kimi-K2.5-NVFP4).
        merged = {"quant_method": "modelopt", **beside}
        if str(beside.get("kv_cache_quant_algo", "")).upper() == "FP8":
            merged["kv_cache_scheme"] = {"num_bits": 8, "type": "float"}
        return read_quantisation(merged)
    scheme = read_quantisation(shared.raw("quantization_config", "compression_config"))
    if scheme is not None and shared.text("expert_dtype") == "fp4":
        return scheme.model_copy(update={"expert_bits": _FP4_EXPERT_BITS})
    return scheme


def mla(own: Fields) -> Mla | None:
    rank = own.optional("kv_lora_rank")
    if rank is None:
        return None
    return Mla(
        kv_rank=rank,
        rope=own.optional("qk_rope_head_dim") or 0,
        q_rank=own.optional("q_lora_rank"),
        nope=own.count("qk_nope_head_dim"),
        value=own.count("v_head_dim"),
    )


def indexer(own: Fields) -> Indexer | None:
    dim = own.optional("index_head_dim")
    return None if dim is None else Indexer(head_dim=dim, heads=own.count("index_n_heads"))


def experts(own: Fields, family: str, layers: Dimension, notes: list[str]) -> Experts | None:
    count = own.optional("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
    if count is None or count == 1 or isinstance(layers, Unknown):
        return None
    width = own.count("moe_intermediate_size", "expert_hidden_size", "moe_ffn_hidden_size")
    if isinstance(width, Unknown) and any(part in family for part in _EXPERTS_IN_INTERMEDIATE):
        width = own.count("intermediate_size")
    shared = own.optional("shared_expert_intermediate_size", "shared_intermediate_size")
    number = own.optional("n_shared_experts", "num_shared_experts")
    if shared is None and number and not isinstance(width, Unknown):
        shared = number * width
    elif shared is None and "llama4" in family and not isinstance(width, Unknown):
        shared = width
    if isinstance(width, Unknown):
        notes.append("the width of an expert is not said")
    return Experts(
        count=count,
        per_token=own.count("num_experts_per_tok", "num_experts_per_token", "moe_topk"),
        intermediate=width,
        shared_intermediate=shared or 0,
        layers=_expert_layers(own, layers),
    )


def _expert_layers(own: Fields, layers: int) -> tuple[int, ...]:
    first = own.optional("first_k_dense_replace", "moe_layer_start_index") or 0
    every = own.raw("moe_layer_freq", "decoder_sparse_step", "interleave_moe_layer_step")
    dense = own.raw("mlp_only_layers")
    dense = dense if isinstance(dense, list) else []
    numbers = range(min(layers, 4096))
    if isinstance(every, list):
        return tuple(i for i in numbers if i < len(every) and every[i])
    if isinstance(every, int) and not isinstance(every, bool) and every > 1:
        return tuple(i for i in numbers if i >= first and (i + 1) % every == 0 and i not in dense)
    return tuple(i for i in numbers if i >= first and i not in dense)


def state(own: Fields) -> LinearState | Unknown:
    inner = Fields(own.mapping("linear_attn_config"))
    state_bytes = 4 if own.text("mamba_ssm_dtype", "ssm_dtype") == "float32" else 2
    key_dim: int | None
    value_dim: int | None
    if heads := own.optional("linear_num_value_heads"):
        keys = own.optional("linear_num_key_heads") or heads
        key_dim = own.optional("linear_key_head_dim") or 128
        value_dim = own.optional("linear_value_head_dim") or 128
        kernel = own.optional("linear_conv_kernel_dim")
        channels = 2 * keys * key_dim + heads * value_dim
    elif (heads := inner.optional("num_heads")) and (key_dim := inner.optional("head_dim")):
        keys, value_dim, state_bytes = heads, key_dim, 4
        kernel = inner.optional("short_conv_kernel_size")
        channels = 3 * heads * key_dim
    elif (
        (heads := own.optional("mamba_n_heads", "mamba_num_heads"))
        and (value_dim := own.optional("mamba_d_head", "mamba_head_dim"))
        and (key_dim := own.optional("mamba_d_state", "ssm_state_size"))
    ):
        keys = own.optional("mamba_n_groups", "n_groups") or 1
        kernel = own.optional("mamba_d_conv", "conv_kernel")
        channels = heads * value_dim + 2 * keys * key_dim
    else:
        return Unknown(unknown="the shape of the linear attention's state is not in config.json")
    return LinearState(
        key_heads=keys,
        value_heads=heads,
        key_dim=key_dim,
        value_dim=value_dim,
        conv_kernel=kernel or 4,
        conv_channels=channels,
        state_bytes=state_bytes,
        conv_bytes=2,
    )


def vision(top: Mapping[str, Any], family: str) -> Vision | None:
    inner = as_mapping(top.get("vision_config"))
    if not inner:
        return Vision() if "conditionalgeneration" in family else None
    fields = Fields(inner)
    return Vision(
        heads=fields.count("num_heads", "num_attention_heads", "vt_num_attention_heads"),
        layers=fields.count("depth", "num_hidden_layers", "vt_num_hidden_layers"),
        hidden=fields.count("hidden_size", "embed_dim", "vt_hidden_size"),
        intermediate=fields.count("intermediate_size", "vt_intermediate_size"),
    )
