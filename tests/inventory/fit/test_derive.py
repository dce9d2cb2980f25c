"""Settings that follow from the fit, and the explanation of all of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.base import Unknown
from inventory.common.units import GIB
from inventory.fit.answer.derive import LoadTime, Parallel, load_time, parallel_sizes
from inventory.fit.model.config import read_architecture
from inventory.fit.settings.settings import EngineSettings, Release
from tests.inventory.fit.data import GPT_OSS_20B, KIMI_INT4, KIMI_NVFP4, LLAMA_8B, MINIMAX, asked

NEW: Release = (0, 32, 0)


def sizes(architecture: Any, gpus: int, engine: Release = NEW) -> Parallel:
    found = parallel_sizes(architecture, EngineSettings(), engine, gpus)
    assert isinstance(found, Parallel)
    return found


@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_all_gpus_where_the_shape_allows(gpus: int) -> None:
    found = sizes(MINIMAX, gpus)
    assert (found.tp, found.pp, found.ep) == (gpus, 1, False)


@pytest.mark.parametrize("engine", [(0, 20, 2), NEW])
def test_minimax_on_eight_takes_whole_experts(engine: Release) -> None:
    found = sizes(MINIMAX, 8, engine)
    assert (found.tp, found.ep) == (8, True)
    assert "192" in found.reason


def test_kimi_on_eight() -> None:
    assert (sizes(KIMI_INT4, 8).tp, sizes(KIMI_INT4, 8).ep) == (8, False)


def test_what_does_not_divide_goes_into_stages() -> None:
    found = sizes(read_architecture(LLAMA_8B), 6)
    assert (found.tp, found.pp) == (2, 3)
    assert "not a whole number" in found.reason


def test_no_sizes_at_all_is_said() -> None:
    one_layer = read_architecture({**LLAMA_8B, "num_hidden_layers": 1})
    found = parallel_sizes(one_layer, EngineSettings(), NEW, 7)
    assert isinstance(found, Unknown)
    assert "7 GPUs" in found.unknown


def test_sequences_that_work_even_at_the_worst_end() -> None:
    derived = asked(MINIMAX, '4x"RTX PRO 6000"').derived
    assert derived.max_num_seqs == 256
    assert derived.most_seqs == 1024
    tight = asked(MINIMAX, '4x"RTX PRO 6000"', gpu_memory_utilization=0.97).derived
    assert isinstance(tight.max_num_seqs, int)
    assert tight.max_num_seqs < 256


def test_nothing_fits_derives_zero_sequences() -> None:
    assert asked(KIMI_NVFP4, '4x"RTX PRO 6000"').derived.most_seqs == 0


def test_utilisation_leaves_room_for_nccl() -> None:
    several = asked(MINIMAX, '4x"RTX PRO 6000"', gpu_memory_utilization=0.97).derived
    assert several.gpu_memory_utilization == 0.93
    one = asked(read_architecture(LLAMA_8B), "1xH100", gpu_memory_utilization=0.97).derived
    assert one.gpu_memory_utilization == 0.97


def test_unknown_weights_derive_nothing() -> None:
    derived = asked(read_architecture({}), "1xH100").derived
    assert isinstance(derived.max_num_seqs, Unknown)
    assert isinstance(derived.load, Unknown)


# --- time to load ------------------------------------------------------------------------------


def loads(architecture: Any, size: float, **how: Any) -> LoadTime:
    found = load_time(architecture, round(size), **how)
    assert isinstance(found, LoadTime)
    return found


def test_field_logs_lie_inside_the_range() -> None:
    minimax = loads(MINIMAX, 230e9)
    assert minimax.fastest <= 75 <= minimax.slowest
    assert minimax.fastest <= 250 <= minimax.slowest
    kimi = loads(MINIMAX, 540e9)
    assert kimi.fastest <= 13 * 60 <= kimi.slowest
    assert kimi.patience >= kimi.slowest


def test_the_files_decide_where_they_are_known() -> None:
    assert loads(KIMI_INT4, 1).likely > 300


def test_start_limits_hold_three_slow_failures() -> None:
    found = loads(MINIMAX, 540e9)
    assert found.start_limit_interval > found.start_limit_burst * (found.slowest + 15)
    assert found.stop >= 30


def test_the_load_time_of_the_service_wins() -> None:
    given = loads(MINIMAX, 540e9, given=300)
    assert (given.given, given.patience, given.start_limit_interval) == (300, 600, 1134)
    assert given.slowest == loads(MINIMAX, 540e9).slowest
    unknown = load_time(read_architecture({}), Unknown(unknown="no weights"), given=300)
    assert isinstance(unknown, LoadTime)
    assert unknown.patience == 600


def test_the_smallest_model_is_waited_for() -> None:
    assert loads(MINIMAX, 1, eager=True).patience == 300


def test_engine_patience_only_where_the_engine_counts_it() -> None:
    assert loads(MINIMAX, 540e9).engine_patience is None
    assert loads(MINIMAX, 540e9, engines=2).engine_patience == loads(MINIMAX, 540e9).patience


def test_eager_starts_are_faster() -> None:
    assert loads(MINIMAX, 1e9, eager=True).likely < loads(MINIMAX, 1e9).likely


@given(st.integers(0, 1 << 42), st.integers(0, 1 << 40))
def test_more_bytes_never_load_faster(size: int, more: int) -> None:
    one, other = loads(MINIMAX, size), loads(MINIMAX, size + more)
    assert one.fastest <= one.likely <= one.slowest
    assert one.likely <= other.likely
    assert one.patience <= other.patience


# --- explanation -------------------------------------------------------------------------------


def test_the_explanation_has_the_numbers_and_the_reasons() -> None:
    text = asked(MINIMAX, '4x"RTX PRO 6000"', max_num_seqs=256).explain()
    for part in (
        "MiniMaxM2ForCausalLM on 4 x RTX PRO 6000, TP4, vLLM 0.32.0",
        "94.97 GiB as the engine sees it",
        "53.76 GiB from architecture",
        "63,488 bytes a token and rank",
        "max_num_batched_tokens 8192",
        "nothing speaks against it",
        "StartLimitIntervalSec=",
    ):
        assert part in text


def test_the_explanation_shows_refusals_and_unknowns() -> None:
    refused = asked(MINIMAX, '2x"RTX PRO 6000"').explain()
    assert "REFUSED [weights]" in refused
    unknown = asked(read_architecture({"num_attention_heads": 40}), "6xH100").explain()
    assert "REFUSED [heads] 40 attention heads: 40 / 6" in unknown
    assert "memory: " in unknown
    assert "layers: not known" in unknown


def test_hybrid_pools_are_explained_by_group() -> None:
    text = asked(read_architecture(GPT_OSS_20B), "1xH100").explain()
    assert "2 groups (1 of full layers, 1 of sliding layers)" in text


def test_the_same_data_as_json() -> None:
    answer = asked(MINIMAX, '4x"RTX PRO 6000"')
    data = answer.to_json()
    assert data["memory"]["weights"]["per_rank"]["likely"] == pytest.approx(53.76 * GIB, rel=0.001)
    assert data["verdicts"][0]["rule"] == "sampler"
    assert data["derived"]["load"]["start_limit_burst"] == 3
