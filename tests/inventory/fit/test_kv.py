"""The KV cache: bytes, blocks, tokens, concurrency; figures that engines printed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inventory.base import Unknown
from inventory.common.units import from_gib
from inventory.fit.memory.kv import KvLayout, kv_layout
from inventory.fit.model.architecture import Architecture
from inventory.fit.model.config import read_architecture
from inventory.fit.settings.settings import EngineSettings, Release
from tests.inventory.fit.data import (
    GPT_OSS_20B,
    KIMI_INT4,
    LLAMA_8B,
    MINIMAX,
    QWEN35_MOE,
)

V032: Release = (0, 32, 0)
V019: Release = (0, 19, 0)


def laid_out(
    architecture: Architecture, engine: Release = V032, batched: int = 8192, **settings: Any
) -> KvLayout:
    found = kv_layout(architecture, EngineSettings(**settings), engine, batched)
    assert isinstance(found, KvLayout)
    return found


@pytest.mark.parametrize(
    ("tp", "dtype", "expected"),
    [
        (2, "auto", 126_976),
        (4, "auto", 63_488),
        (8, "auto", 31_744),
        (16, "auto", 31_744),
        (4, "fp8", 31_744),
        (4, "fp8_e4m3", 31_744),
    ],
)
def test_minimax_bytes_per_token_and_rank(tp: int, dtype: str, expected: int) -> None:
    assert laid_out(MINIMAX, tp=tp, kv_cache_dtype=dtype).bytes_per_token == expected


@pytest.mark.parametrize(("dtype", "expected"), [("auto", 70_272), ("fp8", 35_136)])
def test_latent_attention_is_whole_on_every_rank(dtype: str, expected: int) -> None:
    for tp in (1, 8):
        assert laid_out(KIMI_INT4, tp=tp, kv_cache_dtype=dtype).bytes_per_token == expected


def test_context_parallelism_shares_a_request() -> None:
    alone, shared = laid_out(KIMI_INT4, tp=8), laid_out(KIMI_INT4, tp=8, dcp=8)
    memory = from_gib(10)
    assert shared.tokens(memory, 1) == 8 * alone.tokens(memory, 1)
    assert shared.needed(262144) * 8 == pytest.approx(alone.needed(262144), rel=0.001)


def test_the_field_log_of_minimax() -> None:
    # 23.62 GiB printed with 399,424 tokens: 24,964 blocks of 16.
    layout = laid_out(MINIMAX, (0, 16, 0), tp=4)
    memory = 24_964 * 16 * 63_488
    assert memory / 2**30 == pytest.approx(23.62, abs=0.005)
    assert layout.tokens(memory, 196_608) == 399_424
    assert round(layout.concurrency(memory, 196_608), 2) == 2.03


def test_gemma_3_groups_of_layers() -> None:
    # pv-gemma3-27b: 19.53 GiB, 36,560 tokens, 4.46x at 8,192 (vLLM 0.19).
    text = {
        "model_type": "gemma3_text",
        "num_hidden_layers": 62,
        "num_attention_heads": 32,
        "num_key_value_heads": 16,
        "head_dim": 128,
        "sliding_window": 1024,
    }
    a = read_architecture(
        {"architectures": ["Gemma3ForConditionalGeneration"], "text_config": text}
    )
    layout = laid_out(a, V019)
    assert [group.kind for group in layout.groups] == ["full", *["sliding"] * 6]
    assert {group.layers for group in layout.groups} == {10}
    memory = from_gib(19.53)
    assert layout.tokens(memory, 8192) == 36_560
    assert round(layout.concurrency(memory, 8192), 2) == 4.46


def test_gpt_oss_halves() -> None:
    # pv-oss20-tp1-fail: 58.47 GiB, 1,277,184 tokens, 155.75x (vLLM 0.19).
    layout = laid_out(read_architecture(GPT_OSS_20B), V019)
    assert len(layout.groups) == 2
    assert layout.tokens(from_gib(58.47), 8192) == pytest.approx(1_277_184, rel=0.005)
    assert layout.concurrency(from_gib(58.47), 8192) == pytest.approx(155.75, rel=0.001)


def test_linear_attention_raises_the_block_to_one_state() -> None:
    # 5090wsl-q36-fail printed a block size of 2,096 with an fp8 cache.
    a = read_architecture(QWEN35_MOE)
    layout = laid_out(a, V019, kv_cache_dtype="fp8")
    assert {group.block_tokens for group in layout.groups if group.kind == "full"} == {2096}
    assert [group.kind for group in layout.groups] == ["full", "linear", "linear", "linear"]


def test_qwen_3_5_27b_as_printed() -> None:
    # q27-5090 (0.26): 7.33 GiB, 227,886 tokens, 1.16x; q27-5090-fail: 8.18 GiB needed.
    text = {
        **QWEN35_MOE["text_config"],
        "num_hidden_layers": 64,
        "num_attention_heads": 24,
        "num_key_value_heads": 4,
        "linear_num_value_heads": 48,
    }
    a = read_architecture({**QWEN35_MOE, "text_config": text})
    layout = laid_out(a, (0, 26, 0), kv_cache_dtype="fp8")
    memory = from_gib(7.33)
    assert layout.tokens(memory, 196_608) == 227_886
    assert round(layout.concurrency(memory, 196_608), 2) == 1.16
    without = laid_out(a, (0, 26, 0), kv_cache_dtype="fp8", prefix_caching=False)
    assert without.needed(262_144) / 2**30 == pytest.approx(8.18, abs=0.01)


def test_sparse_attention_with_an_indexer() -> None:
    # r6-glm51-cc32: 19.12 GiB, 329,792 tokens with the draft layer's cache.
    a = read_architecture(
        {
            "num_hidden_layers": 78,
            "kv_lora_rank": 512,
            "qk_rope_head_dim": 64,
            "index_head_dim": 128,
            "num_nextn_predict_layers": 1,
        }
    )
    layout = laid_out(a, V019, kv_cache_dtype="fp8_ds_mla", block_size=64, draft=True)
    assert layout.tokens(from_gib(19.12), 65536) == pytest.approx(329_792, rel=0.001)


def test_old_engines_keep_everything_in_window_layers() -> None:
    a = read_architecture(GPT_OSS_20B)
    assert laid_out(a, (0, 9, 0)).is_uniform
    assert laid_out(a, V032, hybrid_kv=False).is_uniform


def test_chunked_attention_was_off_for_a_while() -> None:
    # scout-tp8 (June 2025): 240 GiB needed for 10,485,760 tokens, so all 48 layers keep them.
    text = {
        "model_type": "llama4_text",
        "num_hidden_layers": 48,
        "num_attention_heads": 40,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "attention_chunk_size": 8192,
    }
    a = read_architecture(
        {"architectures": ["Llama4ForConditionalGeneration"], "text_config": text}
    )
    assert laid_out(a, (0, 11, 0), tp=8).needed(10_485_760) / 2**30 == 240
    assert laid_out(a, V019, tp=8).needed(10_485_760) / 2**30 < 70


def test_layers_that_share_a_cache_have_none() -> None:
    a = read_architecture({**LLAMA_8B, "num_kv_shared_layers": 20})
    assert laid_out(a).bytes_per_token == 12 * 4096


def test_pipeline_stages_share_the_layers() -> None:
    a = read_architecture(LLAMA_8B)
    assert laid_out(a, pp=2).bytes_per_token == laid_out(a).bytes_per_token // 2
    assert (
        laid_out(read_architecture(GPT_OSS_20B), pp=2).block_bytes * 2
        == laid_out(read_architecture(GPT_OSS_20B)).block_bytes
    )


def test_what_is_not_described_is_not_guessed() -> None:
    for change, reason in (
        ({"architectures": ["DeepseekV4ForCausalLM"]}, "compressed cache"),
        ({"num_key_value_heads": "x"}, "num_key_value_heads"),
        ({"layer_types": ["mamba", "full_attention"] * 16}, "state"),
    ):
        a = read_architecture({**LLAMA_8B, **change})
        found = kv_layout(a, EngineSettings(), V032, 8192)
        assert isinstance(found, Unknown)
        assert reason in found.unknown
    odd = kv_layout(MINIMAX, EngineSettings(kv_cache_dtype="turboquant_3bit_nc"), V032, 8192)
    assert isinstance(odd, Unknown)


LAYOUTS = [
    laid_out(MINIMAX, tp=4),
    laid_out(KIMI_INT4, tp=8, dcp=8),
    laid_out(read_architecture(GPT_OSS_20B)),
    laid_out(read_architecture(QWEN35_MOE)),
]


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(LAYOUTS),
    st.integers(0, 1 << 37),
    st.integers(0, 1 << 33),
    st.integers(1, 200_000),
)
def test_more_memory_never_gives_fewer_tokens(
    layout: KvLayout, memory: int, more: int, length: int
) -> None:
    assert layout.tokens(memory + more, length) >= layout.tokens(memory, length)
    assert layout.longest(memory + more, 262_144) >= layout.longest(memory, 262_144)
    assert layout.concurrency(memory + more, length) >= layout.concurrency(memory, length)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(LAYOUTS), st.integers(0, 1 << 37), st.integers(1, 262_144))
def test_the_longest_request_fits_and_the_next_does_not(
    layout: KvLayout, memory: int, most: int
) -> None:
    longest = layout.longest(memory, most)
    usable = memory - (layout.block_bytes if layout.null_block else 0)
    assert longest <= most
    if longest:
        assert layout.needed(longest) <= usable
    if longest < most:
        assert layout.needed(longest + 1) > usable
