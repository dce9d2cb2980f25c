"""Bytes of weights on each rank, against what engines printed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inventory.base import Unknown
from inventory.common.units import GIB, from_gib
from inventory.fit.memory.weights import Weights, layers_per_stage, weights
from inventory.fit.model.architecture import Architecture
from inventory.fit.model.config import read_architecture
from inventory.fit.model.known import KNOWN
from inventory.fit.settings.settings import EngineSettings
from tests.inventory.fit.data import (
    GPT_OSS_20B,
    KIMI_INT4,
    KIMI_NVFP4,
    LLAMA_8B,
    MINIMAX,
    QWEN35_MOE,
)


def held(architecture: Architecture, **settings: Any) -> Weights:
    found = weights(architecture, EngineSettings(**settings))
    assert isinstance(found, Weights)
    return found


def test_minimax_on_four_ranks() -> None:
    # The field log: "Model loading took 53.75 GiB" (local-inference-lab/rtx6kpro, minimax-m25).
    found = held(MINIMAX, tp=4)
    assert found.per_rank.is_exact
    assert found.per_rank.likely / GIB == pytest.approx(53.7, rel=0.005)
    total = sum(part.total for part in found.parts if part.name != "made by loading")
    assert total == pytest.approx(230.12e9, rel=0.001)


@pytest.mark.parametrize(("tp", "expected"), [(2, 107.2), (8, 26.9)])
def test_minimax_on_other_ranks(tp: int, expected: float) -> None:
    assert held(MINIMAX, tp=tp).per_rank.likely / GIB == pytest.approx(expected, rel=0.005)


def test_expert_parallelism_moves_whole_experts_and_no_bytes() -> None:
    assert held(MINIMAX, tp=8, ep=True).per_rank == held(MINIMAX, tp=8).per_rank
    # With data parallelism the experts are spread over all ranks, attention is not.
    spread = held(MINIMAX, tp=1, dp=8, ep=True).per_rank.likely
    assert spread < held(MINIMAX, tp=1).per_rank.likely / 5
    assert spread > held(MINIMAX, tp=8, ep=True).per_rank.likely


def test_kimi_int4_as_eight_h100_printed_it() -> None:
    found = held(KIMI_INT4, tp=8, vision_data_parallel=True)
    assert found.source == "files"
    assert found.per_rank.likely / GIB == pytest.approx(72.02, abs=0.15)


def test_kimi_nvfp4_says_what_it_does_not_know() -> None:
    found = held(KIMI_NVFP4, tp=8)
    assert not found.per_rank.is_exact
    assert "keep the model's own type" in found.remark
    assert 66 * GIB < found.per_rank.low < found.per_rank.high < 74 * GIB


@pytest.mark.parametrize(
    ("change", "settings", "printed"),
    [
        # All printed by H100 starts of vLLM 0.19 (llm-d-planner, cases pv-l8-*).
        ({}, {}, 14.99),
        ({}, {"tp": 2}, 7.51),
        ({}, {"tp": 4}, 3.77),
        ({}, {"pp": 2}, 7.51),
        ({}, {"pp": 4}, 4.26),
        ({}, {"dtype": "float32"}, 29.98),
        ({}, {"quantization": "fp8"}, 8.49),
        ({}, {"cpu_offload": from_gib(12)}, 2.91),
    ],
)
def test_llama_8b_as_printed(
    change: dict[str, Any], settings: dict[str, Any], printed: float
) -> None:
    found = held(read_architecture({**LLAMA_8B, **change}), **settings)
    assert found.per_rank.likely / GIB == pytest.approx(printed, abs=0.09)


def test_w4a16_keeps_embedding_and_output() -> None:
    scheme = {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "config_groups": {"g": {"weights": {"num_bits": 4, "group_size": 128}}},
        "ignore": ["lm_head"],
    }
    found = held(read_architecture({**LLAMA_8B, "quantization_config": scheme}))
    assert found.per_rank.likely / GIB == pytest.approx(5.38, abs=0.1)


def test_mxfp4_experts_are_padded() -> None:
    # 13.47 GiB printed (pl-gptoss20b), where the plain widths give 12.8.
    found = held(read_architecture(GPT_OSS_20B))
    assert found.per_rank.likely / GIB == pytest.approx(13.47, abs=0.1)


def test_exceptions_are_honoured_layer_by_layer() -> None:
    names = [f"model.layers.{i}.self_attn.q_proj" for i in range(32)]
    names += [f"model.layers.{i}.self_attn" for i in range(16)]
    scheme = {"quant_method": "fp8", "modules_to_not_convert": names}
    half = held(read_architecture({**LLAMA_8B, "quantization_config": scheme}))
    none = held(read_architecture({**LLAMA_8B, "quantization_config": {"quant_method": "fp8"}}))
    attention = 4096 * (2 * 4096 + 2 * 1024)
    assert half.per_rank.likely - none.per_rank.likely == 16 * attention


def test_draft_layers_count_only_when_used() -> None:
    a = read_architecture(QWEN35_MOE)
    assert held(a, draft=True).per_rank.likely > held(a).per_rank.likely + GIB
    files = {"model.safetensors": held(a, draft=True).per_rank.likely}
    without = held(read_architecture(QWEN35_MOE, files)).per_rank
    assert without.likely == pytest.approx(held(a).per_rank.likely, rel=0.01)


def test_draft_layers_that_the_files_do_not_hold() -> None:
    # MiniMax-M2's configuration names three; 230.12 GB are the model without them.
    config = {**KNOWN["MiniMaxAI/MiniMax-M2.5"].config, "num_mtp_modules": 3}
    found = held(read_architecture(config, {"model.safetensors": 230_120_000_000}), tp=4)
    assert found.per_rank.likely / GIB == pytest.approx(53.7, rel=0.005)


def test_the_image_encoder_can_be_left_out_or_repeated() -> None:
    text = held(KIMI_NVFP4, tp=8, language_model_only=True).per_rank.likely
    split = held(KIMI_NVFP4, tp=8).per_rank.likely
    whole = held(KIMI_NVFP4, tp=8, vision_data_parallel=True).per_rank.likely
    assert split - text == pytest.approx((whole - text) / 8, rel=0.01)


def test_files_without_an_architecture_are_split_evenly() -> None:
    found = held(read_architecture({}, {"model.safetensors": 80 * GIB}), tp=8)
    assert found.source == "files"
    assert found.per_rank.low == 10 * GIB < found.per_rank.high
    assert "num_hidden_layers" in found.remark


def test_nothing_known_stays_unknown() -> None:
    found = weights(read_architecture({}), EngineSettings())
    assert isinstance(found, Unknown)
    assert "num_hidden_layers" in found.unknown


def test_pipeline_stages() -> None:
    assert layers_per_stage(61, 4) == [15, 15, 16, 15]
    assert layers_per_stage(32, 4) == [8, 8, 8, 8]


@given(st.integers(1, 400), st.integers(1, 16))
def test_stages_hold_every_layer_once(layers: int, stages: int) -> None:
    counts = layers_per_stage(layers, stages)
    assert sum(counts) == layers
    assert max(counts) - min(counts) <= 1


MODELS = [MINIMAX, KIMI_NVFP4, read_architecture(LLAMA_8B), read_architecture(QWEN35_MOE)]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(MODELS), st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2]), st.booleans()
)
def test_more_ranks_never_hold_more(a: Architecture, tp: int, pp: int, ep: bool) -> None:
    one = held(a, tp=tp, pp=pp, ep=ep).per_rank
    more = held(a, tp=2 * tp, pp=pp, ep=ep).per_rank
    assert more.low <= one.low
    assert more.likely <= one.likely
    assert more.high <= one.high
    assert 2 * more.likely >= one.likely
