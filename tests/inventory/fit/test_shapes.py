"""Which parallel sizes a shape allows: the rule, the arithmetic, the nearest choice."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inventory.base import Unknown
from inventory.fit.answer.verdict import Verdict
from inventory.fit.legality.shapes import legal_sizes, shape_verdicts
from inventory.fit.model.config import read_architecture
from inventory.fit.settings.settings import EngineSettings, Release
from tests.inventory.fit.data import GPT_OSS_20B, KIMI_INT4, LLAMA_8B, MINIMAX, QWEN35_MOE

OLD: Release = (0, 20, 2)
NEW: Release = (0, 32, 0)
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128}


def judged(
    config: Any, engine: Release | Unknown = NEW, gpus: int = 8, **settings: Any
) -> dict[str, Verdict]:
    a = read_architecture(config) if isinstance(config, dict) else config
    return {v.rule: v for v in shape_verdicts(a, EngineSettings(**settings), engine, gpus)}


@pytest.mark.parametrize("tp", [1, 2, 4])
def test_minimax_splits_cleanly(tp: int) -> None:
    assert judged(MINIMAX, OLD, tp=tp) == {}


@pytest.mark.parametrize("tp", [3, 6])
def test_minimax_kv_heads_refuse(tp: int) -> None:
    verdict = judged(MINIMAX, tp=tp)["kv-heads"]
    assert verdict.certain
    assert f"8 / {tp}" in verdict.found
    assert "TP=4" in verdict.choices


def test_minimax_on_eight_ranks_of_an_old_engine() -> None:
    verdict = judged(MINIMAX, OLD, tp=8)["fp8-block"]
    assert verdict.certain
    assert verdict.found == "1536 / 8 = 192, not a multiple of 128"
    assert verdict.choices == ("TP=4", "TP=8 with --enable-expert-parallel")
    assert verdict.next_step == "choose TP=4, or TP=8 with --enable-expert-parallel"


def test_minimax_on_eight_ranks_of_0_32_is_refined() -> None:
    found = judged(MINIMAX, NEW, tp=8)
    assert set(found) == {"fp8-block-refined"}
    assert not found["fp8-block-refined"].certain
    assert "64 x 64" in found["fp8-block-refined"].why


def test_between_the_two_the_engine_may_do_either() -> None:
    assert not judged(MINIMAX, (0, 29, 0), tp=8)["fp8-block"].certain


@pytest.mark.parametrize("engine", [OLD, NEW])
def test_whole_experts_need_no_split(engine: Release) -> None:
    assert judged(MINIMAX, engine, tp=8, ep=True) == {}


def test_blocks_too_fine_to_refine_stay_refused() -> None:
    # 1408 / 8 = 176: the largest common divisor with 128 is 16.
    moe = {
        **LLAMA_8B,
        "num_experts": 64,
        "moe_intermediate_size": 1408,
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    }
    verdict = judged(moe, NEW, tp=8)["fp8-block"]
    assert verdict.certain
    assert "1408 / 8 = 176" in verdict.found


def test_dense_fp8_blocks() -> None:
    scheme = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    dense = {**LLAMA_8B, "intermediate_size": 14400, "quantization_config": scheme}
    verdict = judged(dense, tp=8)["fp8-block"]
    assert verdict.certain
    assert verdict.found == "MLP: 14400 / 8 = 1800, not a multiple of 128"
    left = {**scheme, "modules_to_not_convert": ["mlp"]}
    assert judged({**dense, "quantization_config": left}, tp=8) == {}


@pytest.mark.parametrize(
    ("change", "tp", "rule", "arithmetic"),
    [
        ({"num_attention_heads": 40}, 6, "heads", "40 attention heads: 40 / 6 = 6.66667"),
        ({"vocab_size": 151936}, 5, "vocabulary", "151936 (padded to 64): 151936 / 5"),
        ({"vocab_size": 32768}, 3, "vocabulary", "32768 / 3"),
        ({"num_experts": 4, "moe_intermediate_size": 64}, 8, "experts", "4 experts for 8 ranks"),
    ],
)
def test_plain_divisions(change: dict[str, Any], tp: int, rule: str, arithmetic: str) -> None:
    verdict = judged({**LLAMA_8B, **change}, tp=tp)[rule]
    assert verdict.certain
    assert arithmetic in verdict.found


def test_a_vocabulary_is_padded_before_it_is_split() -> None:
    assert "vocabulary" not in judged({**LLAMA_8B, "vocab_size": 32016}, tp=4)


def test_kv_heads_may_repeat() -> None:
    assert judged(LLAMA_8B, tp=16) == {}
    assert "kv-heads" in judged({**LLAMA_8B, "num_key_value_heads": 6}, tp=4)


def test_latent_attention_has_no_kv_heads_to_split() -> None:
    assert "kv-heads" not in judged(KIMI_INT4, tp=16)


def test_awq_groups() -> None:
    # Qwen2.5-VL-72B-AWQ: 29568 / 2 = 14784, not a multiple of 128.
    vl = {**LLAMA_8B, "intermediate_size": 29568, "quantization_config": AWQ}
    verdict = judged(vl, tp=2)["group-size"]
    assert verdict.certain
    assert "29568 / 2 = 14784, not a multiple of the group size 128" in verdict.found
    assert judged({**LLAMA_8B, "quantization_config": AWQ}, tp=2) == {}


def test_groups_of_experts_are_halved_instead() -> None:
    moe = {"num_experts": 128, "moe_intermediate_size": 768, "quantization_config": AWQ}
    verdict = judged({**LLAMA_8B, **moe}, tp=4)["group-size"]
    assert not verdict.certain


def test_vision_heads() -> None:
    verdict = judged({**QWEN35_MOE, "vision_config": {"num_heads": 12, "depth": 2}}, tp=8)
    assert verdict["vision-heads"].certain
    other = judged(
        {**QWEN35_MOE, "vision_config": {"num_heads": 12, "depth": 2}},
        tp=8,
        vision_data_parallel=True,
    )
    assert "vision-heads" not in other


def test_heads_of_linear_attention() -> None:
    text = {**QWEN35_MOE["text_config"], "linear_num_value_heads": 12, "vocab_size": 64}
    assert "linear-heads" in judged({"text_config": text}, tp=8)


def test_pipeline_and_context_parallelism() -> None:
    assert "pipeline" in judged(LLAMA_8B, pp=33)
    assert "context-parallel" in judged(KIMI_INT4, tp=8, dcp=3)
    assert judged(KIMI_INT4, tp=8, dcp=8) == {}
    assert "context-parallel" in judged(LLAMA_8B, tp=8, dcp=2)
    assert "context-parallel" not in judged(LLAMA_8B, tp=16, dcp=2)


def test_choices_stay_within_the_gpus() -> None:
    assert judged(MINIMAX, tp=3, gpus=3)["kv-heads"].choices == ("TP=2",)
    assert judged(MINIMAX, tp=3, gpus=8)["kv-heads"].choices == ("TP=2", "TP=4")


CONFIGS = st.fixed_dictionaries(
    {
        "num_hidden_layers": st.integers(1, 80),
        "hidden_size": st.sampled_from([1024, 3072, 5120]),
        "num_attention_heads": st.integers(1, 128),
        "num_key_value_heads": st.integers(1, 16),
        "head_dim": st.sampled_from([64, 128]),
        "vocab_size": st.integers(1000, 260_000),
        "intermediate_size": st.integers(100, 30_000),
    },
    optional={
        "num_experts": st.integers(2, 384),
        "moe_intermediate_size": st.integers(64, 4096),
        "quantization_config": st.sampled_from(
            [AWQ, {"quant_method": "fp8", "weight_block_size": [128, 128]}]
        ),
    },
)


@settings(max_examples=100, deadline=None)
@given(CONFIGS, st.integers(1, 16), st.booleans(), st.sampled_from([OLD, NEW]))
def test_legal_sizes_have_no_certain_problem_and_others_do(
    config: dict[str, Any], tp: int, ep: bool, engine: Release
) -> None:
    a = read_architecture(config)
    start = EngineSettings(tp=tp, ep=ep)
    certain = [v for v in shape_verdicts(a, start, engine, 16) if v.certain]
    assert (tp in legal_sizes(a, start, engine)) == (not certain)
    # One rank holds everything: nothing is divided.
    assert 1 in legal_sizes(a, start, engine)


def test_an_unknown_model_is_refused_nothing() -> None:
    assert judged({}, tp=7) == {}
    assert judged(GPT_OSS_20B, Unknown(unknown="?"), tp=2) == {}
