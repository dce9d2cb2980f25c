"""config.json in, numbers and typed unknowns out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inventory.base import Unknown
from inventory.fit.model.architecture import Architecture
from inventory.fit.model.config import read_architecture
from tests.inventory.fit.data import (
    GPT_OSS_20B,
    KIMI_INT4,
    LLAMA_8B,
    MINIMAX,
    QWEN35_MOE,
)


def test_minimax_is_read_from_its_own_field_names() -> None:
    assert (MINIMAX.layers, MINIMAX.heads, MINIMAX.kv_heads, MINIMAX.head_dim) == (62, 48, 8, 128)
    assert MINIMAX.experts is not None
    # Its experts' width is called intermediate_size, as Mixtral's is.
    assert (MINIMAX.experts.count, MINIMAX.experts.intermediate) == (256, 1536)
    assert len(MINIMAX.experts.layers) == 62
    assert MINIMAX.quantisation is not None
    assert MINIMAX.quantisation.block == (128, 128)
    assert MINIMAX.custom_code
    assert MINIMAX.unknown_fields == ()


def test_nested_text_config_with_latent_attention_and_vision() -> None:
    assert KIMI_INT4.mla is not None
    assert (KIMI_INT4.mla.kv_rank, KIMI_INT4.mla.rope, KIMI_INT4.mla.q_rank) == (512, 64, 1536)
    assert KIMI_INT4.experts is not None
    assert KIMI_INT4.experts.layers == tuple(range(1, 61))
    assert KIMI_INT4.experts.shared_intermediate == 2048
    assert KIMI_INT4.vision is not None
    assert (KIMI_INT4.vision.heads, KIMI_INT4.vision.layers) == (16, 27)
    assert KIMI_INT4.checkpoint is not None
    assert KIMI_INT4.checkpoint.shards == 64


def test_linear_attention_hybrid() -> None:
    a = read_architecture(QWEN35_MOE)
    assert a.kinds.count("full") == 10
    assert a.kinds[:4] == ("linear", "linear", "linear", "full")
    assert not isinstance(a.state, Unknown)
    assert a.state is not None
    assert (a.state.value_heads, a.state.conv_channels, a.state.state_bytes) == (32, 8192, 4)
    assert a.gated_attention
    assert a.draft_layers == 1
    assert a.vision is not None
    assert a.vision.heads == 16


@pytest.mark.parametrize(
    ("fields", "full", "other"),
    [
        ({"layer_types": ["sliding_attention", "full_attention"] * 16}, 16, "sliding"),
        ({"sliding_window_pattern": 8}, 4, "sliding"),
        ({"model_type": "gemma2"}, 16, "sliding"),
        ({"model_type": "gemma3_text"}, 5, "sliding"),
        ({"use_sliding_window": False}, 32, "sliding"),
        ({"use_sliding_window": True, "max_window_layers": 28}, 28, "sliding"),
        ({}, 0, "sliding"),
        ({"attn_type_list": [1, 0] * 16}, 16, "linear"),
        ({"hybrid_layer_pattern": [0, 1, 1, 1] * 8}, 8, "sliding"),
        ({"hybrid_override_pattern": "M*-M" * 8}, 8, "linear"),
        ({"full_attention_interval": 4}, 8, "linear"),
        ({"linear_attn_config": {"full_attn_layers": [4, 8, 32]}}, 3, "linear"),
    ],
)
def test_mixed_layers(fields: dict[str, Any], full: int, other: str) -> None:
    a = read_architecture({**LLAMA_8B, "model_type": "x", "sliding_window": 1024, **fields})
    assert a.kinds.count("full") == full
    assert other in a.kinds or full == 32
    assert len(a.kinds) == 32


def test_chunked_attention_of_llama_4() -> None:
    text = {**LLAMA_8B, "model_type": "llama4_text", "attention_chunk_size": 8192}
    a = read_architecture(
        {"architectures": ["Llama4ForConditionalGeneration"], "text_config": text}
    )
    assert a.kinds.count("full") == 8
    assert a.kinds.count("chunked") == 24
    assert a.chunk == 8192


def test_a_list_of_kinds_that_does_not_match_is_said() -> None:
    a = read_architecture({**LLAMA_8B, "layer_types": ["full_attention"] * 5})
    assert a.kinds == ("full",) * 32
    assert "5 entries for 32 layers" in a.notes[0]


def test_gemma_leaves_out_what_is_default() -> None:
    text = {
        "model_type": "gemma3_text",
        "num_hidden_layers": 62,
        "hidden_size": 5376,
        "num_attention_heads": 32,
        "num_key_value_heads": 16,
        "head_dim": 128,
        "intermediate_size": 21504,
        "sliding_window": 1024,
    }
    a = read_architecture(
        {"architectures": ["Gemma3ForConditionalGeneration"], "text_config": text}
    )
    assert a.vocabulary == 262208
    assert a.tied
    assert a.kinds.count("full") == 10


@pytest.mark.parametrize(
    ("rope", "context"),
    [
        ({"rope_type": "llama3", "factor": 8.0}, 131072),
        ({"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096}, 163840),
        ({"rope_type": "linear", "factor": 2}, 262144),
        ({"rope_type": "yarn", "factor": "many"}, 131072),
    ],
)
def test_rope_scaling_decides_the_context(rope: dict[str, Any], context: int) -> None:
    assert read_architecture({**LLAMA_8B, "rope_scaling": rope}).context == context


@pytest.mark.parametrize(
    ("raw", "method", "bits", "per_weight"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8", 8, 8),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "awq", 4, 4 + 20 / 128),
        ({"quant_method": "gptq", "bits": 4, "group_size": 32}, "gptq", 4, 4 + 20 / 32),
        ({"quant_method": "mxfp4"}, "mxfp4", 4, 4.25),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "modelopt-nvfp4", 4, 4.5),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "modelopt-fp8", 8, 8),
        (
            {
                "quant_method": "compressed-tensors",
                "format": "pack-quantized",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 32}}},
            },
            "compressed-tensors-pack-quantized",
            4,
            4.5,
        ),
        (
            {
                "quant_method": "modelopt",
                "quant_algo": "MIXED_PRECISION",
                "quantized_layers": {"model.layers.0.mlp.experts": {"quant_algo": "NVFP4"}},
            },
            "modelopt-nvfp4",
            4,
            4.5,
        ),
    ],
)
def test_quantisation(raw: dict[str, Any], method: str, bits: int, per_weight: float) -> None:
    scheme = read_architecture({**LLAMA_8B, "quantization_config": raw}).quantisation
    assert scheme is not None
    assert scheme.method == method
    assert scheme.weight_bits == bits
    assert bits + scheme.scale_bits == pytest.approx(per_weight)


def test_an_unknown_method_stays_unknown() -> None:
    scheme = read_architecture(
        {**LLAMA_8B, "quantization_config": {"quant_method": "brand-new"}}
    ).quantisation
    assert scheme is not None
    assert isinstance(scheme.weight_bits, Unknown)
    assert isinstance(scheme.ignored, Unknown)


def test_the_file_beside_config_json_is_the_true_one() -> None:
    # nvidia/Kimi-K2.5-NVFP4 carries the original's INT4 block in its config.json.
    side = {
        "quantization": {
            "quant_algo": "NVFP4",
            "kv_cache_quant_algo": "FP8",
            "group_size": 16,
            "exclude_modules": ["*self_attn*", "lm_head"],
        }
    }
    int4 = {"quant_method": "compressed-tensors", "format": "pack-quantized"}
    a = read_architecture({**LLAMA_8B, "quantization_config": int4}, hf_quant_config=side)
    assert a.quantisation is not None
    assert a.quantisation.method == "modelopt-nvfp4"
    assert a.quantisation.ignored == ("*self_attn*", "lm_head")
    assert a.quantisation.kv_cache_fp8


def test_what_is_missing_is_named() -> None:
    a = read_architecture({"num_attention_heads": 40})
    assert a.heads == 40
    assert {"layers", "hidden", "vocabulary", "context"} <= set(a.unknown_fields)
    assert a.layers == Unknown(unknown="num_hidden_layers is not in config.json")


def test_a_count_of_the_wrong_type_is_said_and_never_a_number() -> None:
    a = read_architecture({**LLAMA_8B, "num_hidden_layers": "32", "vocab_size": -1})
    assert a.layers == Unknown(unknown="num_hidden_layers is '32', not a count")
    assert a.vocabulary == Unknown(unknown="vocab_size is -1, not a count")


def test_safetensors_are_preferred_to_a_second_copy() -> None:
    a = read_architecture(
        LLAMA_8B, {"model.safetensors": 16, "pytorch_model.bin": 16, "config.json": 1}
    )
    assert a.checkpoint is not None
    assert a.checkpoint.size == 16


def test_a_repository_without_weights() -> None:
    a = read_architecture(LLAMA_8B, {"config.json": 1})
    assert a.checkpoint is not None
    assert isinstance(a.checkpoint.size, Unknown)


def test_experts_only_in_some_layers() -> None:
    moe = {"num_experts": 8, "moe_intermediate_size": 512}
    every_second = read_architecture({**LLAMA_8B, **moe, "decoder_sparse_step": 2})
    assert every_second.experts is not None
    assert every_second.experts.layers == tuple(range(1, 32, 2))
    listed = read_architecture({**LLAMA_8B, **moe, "moe_layer_freq": [0, 1] * 16})
    assert listed.experts is not None
    assert listed.experts.layers == tuple(range(1, 32, 2))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=12,
)
NAMES = sorted(
    {*LLAMA_8B, *GPT_OSS_20B, *QWEN35_MOE, *QWEN35_MOE["text_config"], "kv_lora_rank"}
    | {"sliding_window", "attention_chunk_size", "ignore", "config_groups", "quant_method"}
    | {"n_routed_experts", "moe_layer_freq", "hybrid_override_pattern", "linear_attn_config"}
)


@settings(max_examples=80, deadline=None)
@given(
    st.dictionaries(st.sampled_from(NAMES), JSON, max_size=12),
    st.none() | st.dictionaries(st.text(max_size=8), st.integers(0, 1 << 50), max_size=3),
    st.none() | st.dictionaries(st.text(max_size=8), JSON, max_size=3),
)
def test_any_junk_gives_an_architecture(
    config: dict[str, Any], files: dict[str, int] | None, side: dict[str, Any] | None
) -> None:
    a = read_architecture(config, files, hf_quant_config=side)
    assert isinstance(a, Architecture)
    for name in ("layers", "hidden", "heads", "vocabulary"):
        value = getattr(a, name)
        assert isinstance(value, Unknown) or value > 0


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(sorted(QWEN35_MOE["text_config"])), JSON)
def test_one_damaged_field_leaves_the_others(name: str, value: Any) -> None:
    text = {**QWEN35_MOE["text_config"], name: value}
    a = read_architecture({**QWEN35_MOE, "text_config": text})
    if name != "hidden_size":
        assert a.hidden == 2048
    if name != "vocab_size":
        assert a.vocabulary == 248320
