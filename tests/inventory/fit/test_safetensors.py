"""Headers of weight files: read from bytes, summed by how ranks share them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.base import Unknown
from inventory.common.units import GIB
from inventory.fit.memory.weights import Weights, weights
from inventory.fit.model.config import read_architecture
from inventory.fit.model.safetensors import Tensor, header_length, read_header, tensor_sums
from inventory.fit.settings.settings import EngineSettings
from tests.inventory.fit.data import KIMI_INT4

KIB, MIB = 1 << 10, 1 << 20
# A published listing of the tensors of moonshotai/Kimi-K2.5 (64 files, 554.27 GiB), summed over
# layers and experts: name of one of them, bytes of all.
KIMI_TENSORS: dict[str, float] = {
    "language_model.lm_head.weight": 163840 * 7168 * 2,
    "language_model.model.embed_tokens.weight": 163840 * 7168 * 2,
    "language_model.model.layers.1.input_layernorm.weight": 61 * 7168 * 2,
    "language_model.model.layers.1.self_attn.kv_a_proj_with_mqa.weight": 61 * 576 * 7168 * 2,
    "language_model.model.layers.1.self_attn.kv_b_proj.weight": 61 * 16384 * 512 * 2,
    "language_model.model.layers.1.self_attn.o_proj.weight": 61 * 7168 * 8192 * 2,
    "language_model.model.layers.1.self_attn.q_a_proj.weight": 61 * 1536 * 7168 * 2,
    "language_model.model.layers.1.self_attn.q_b_proj.weight": 61 * 12288 * 1536 * 2,
    "language_model.model.layers.0.mlp.down_proj.weight": 3 * 7168 * 18432 * 2,
    "language_model.model.layers.1.mlp.experts.0.down_proj.weight_packed": 157.5 * GIB,
    "language_model.model.layers.1.mlp.experts.0.down_proj.weight_scale": 19.6875 * GIB,
    "language_model.model.layers.1.mlp.experts.0.gate_proj.weight_packed": 157.5 * GIB,
    "language_model.model.layers.1.mlp.experts.0.gate_proj.weight_scale": 19.6875 * GIB,
    "language_model.model.layers.1.mlp.experts.0.up_proj.weight_packed": 157.5 * GIB,
    "language_model.model.layers.1.mlp.experts.0.up_proj.weight_scale": 19.6875 * GIB,
    "language_model.model.layers.1.mlp.gate.weight": 315 * MIB,
    "language_model.model.layers.1.mlp.gate.e_score_correction_bias": 90 * KIB,
    "language_model.model.layers.1.mlp.shared_experts.down_proj.weight": 3 * 60 * 7168 * 2048 * 2,
    "mm_projector.proj.0.weight": 40.5 * MIB,
    "mm_projector.proj.2.weight": 63 * MIB,
    "vision_tower.encoder.blocks.0.mlp.fc0.weight": 2 * 255.34 * MIB,
    "vision_tower.encoder.blocks.0.wqkv.weight": 273.37 * MIB,
}


def kimi_header() -> dict[str, Tensor]:
    return {name: Tensor("BF16", (), round(size)) for name, size in KIMI_TENSORS.items()}


def encoded(entries: object) -> bytes:
    body = json.dumps(entries).encode()
    return len(body).to_bytes(8, "little") + body


def test_a_header_is_read() -> None:
    entry = {"dtype": "BF16", "shape": [2, 3], "data_offsets": [4, 16]}
    header = read_header(encoded({"__metadata__": {"format": "pt"}, "a.weight": entry}) + b"data")
    assert header == {"a.weight": Tensor("BF16", (2, 3), 12)}


@pytest.mark.parametrize(
    ("prefix", "reason"),
    [
        (b"", "shorter than the length field"),
        (b"version https://git-lfs.github.com/spec/v1", "git-lfs pointer"),
        ((1 << 60).to_bytes(8, "little"), "beyond the format's limit"),
        ((99).to_bytes(8, "little") + b"{}", "99 bytes and 2 of them"),
        ((2).to_bytes(8, "little") + b"[]", "not a JSON object"),
        ((2).to_bytes(8, "little") + b"{{", "not JSON"),
        (encoded({"a": {"dtype": "BF16"}}), "'a' is damaged"),
        (encoded({"a": {"dtype": "F8", "shape": [], "data_offsets": [9, 1]}}), "damaged"),
    ],
)
def test_a_damaged_file_says_what_it_is(prefix: bytes, reason: str) -> None:
    header = read_header(prefix)
    assert isinstance(header, Unknown)
    assert reason in header.unknown


def test_tensors_are_told_apart_by_how_ranks_share_them() -> None:
    sums = tensor_sums({"model.safetensors": kimi_header()}, 61)
    assert sums.total == pytest.approx(554.27 * GIB, rel=0.001)
    assert sums.experts == 3 * (157.5 + 19.6875) * GIB
    assert sums.first_stage == sums.last_stage == 163840 * 7168 * 2
    replicated = 61 * (576 + 1536) * 7168 * 2 + 61 * 7168 * 2 + 315 * MIB + 90 * KIB
    assert sums.replicated == replicated
    assert sums.vision == pytest.approx(888 * MIB, rel=0.01)
    assert sums.draft == 0


def test_layers_beyond_the_last_are_drafts() -> None:
    header = {
        "model.layers.61.mlp.experts.0.up_proj.weight": Tensor("F8_E4M3", (), 7),
        "mtp.fc.weight": Tensor("BF16", (), 5),
    }
    assert tensor_sums({"f": header}, 61).draft == 12
    assert tensor_sums({"f": header}, Unknown(unknown="?")).draft == 5


def test_weights_from_headers_agree_with_a_published_start() -> None:
    # "Model loading took 72.02 GiB" on eight H100 with --mm-encoder-tp-mode data (kk-*).
    exact = KIMI_INT4.model_copy(update={"tensors": tensor_sums({"f": kimi_header()}, 61)})
    found = weights(exact, EngineSettings(tp=8, vision_data_parallel=True))
    assert isinstance(found, Weights)
    assert found.source == "headers"
    assert found.per_rank.likely / GIB == pytest.approx(72.02, abs=0.1)


def test_headers_win_over_configuration() -> None:
    tensors = {"f": {"model.layers.0.mlp.up_proj.weight": Tensor("BF16", (), 1000)}}
    a = read_architecture({"num_hidden_layers": 1}, headers=tensors)
    found = weights(a, EngineSettings())
    assert isinstance(found, Weights)
    assert found.per_rank.likely == 1000


@given(st.binary(max_size=200))
def test_any_bytes_give_a_header_or_a_reason(data: bytes) -> None:
    assert isinstance(read_header(data), (dict, Unknown))
    assert isinstance(header_length(data), (int, Unknown))


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.recursive(st.none() | st.integers() | st.text(max_size=4), st.lists, max_leaves=6)
        | st.dictionaries(
            st.sampled_from(["dtype", "shape", "data_offsets"]),
            st.text(max_size=4) | st.lists(st.integers(-3, 1 << 40), max_size=3),
        ),
        max_size=4,
    )
)
def test_any_json_gives_a_header_or_a_reason(entries: dict[str, object]) -> None:
    header = read_header(encoded(entries))
    if not isinstance(header, Unknown):
        assert all(tensor.size >= 0 for tensor in header.values())
