"""Budget, KV cache and margins: the figures of the field log, and that more is never less."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inventory.base import Unknown
from inventory.common.units import GIB, from_gib
from inventory.fit.fit import Fit, fit
from inventory.fit.memory.memory import Memory, memory
from inventory.fit.memory.span import Span, around, exactly
from inventory.fit.memory.weights import Weights
from inventory.fit.model.config import read_architecture
from inventory.fit.settings.card import Card, card, card_of, parse_cards
from inventory.fit.settings.resolve import resolve
from inventory.fit.settings.settings import EngineSettings
from inventory.hardware import Gpu, GpuProcess
from tests.inventory.fit.data import (
    GPT_OSS_20B,
    KIMI_INT4,
    KIMI_NVFP4,
    LLAMA_8B,
    MINIMAX,
    QWEN35_MOE,
    asked,
    rules,
)

RTX = '4x"RTX PRO 6000"'
LLAMA = read_architecture(LLAMA_8B)


def memory_of(answer: Fit) -> Memory:
    assert isinstance(answer.memory, Memory)
    return answer.memory


def tokens(answer: Fit) -> Span:
    found = memory_of(answer).tokens
    assert isinstance(found, Span)
    return found


# --- MiniMax-M2.5 on four RTX PRO 6000 ---------------------------------------------------------

FIELD_START: dict[str, Any] = {"engine": "0.16.0", "gpu_memory_utilization": 0.9}
"""local-inference-lab/rtx6kpro, models/minimax-m25: utilisation 0.90, everything else default."""


def test_the_engine_sees_less_than_nvml() -> None:
    rtx = parse_cards(RTX)[0]
    assert rtx.total.likely / GIB == pytest.approx(94.97, abs=0.001)
    assert isinstance(rtx.nvml_total, int)
    assert rtx.nvml_total / GIB == pytest.approx(95.59, abs=0.005)
    found = memory_of(asked(MINIMAX, RTX, **FIELD_START))
    assert found.requested.likely / GIB == pytest.approx(0.9 * 94.97, abs=0.001)


def test_the_field_log_predicted_without_it() -> None:
    answer = asked(MINIMAX, RTX, **FIELD_START)
    found = memory_of(answer)
    assert found.available.likely / GIB == pytest.approx(23.62, abs=0.1)
    assert found.overhead.charged.likely / GIB == pytest.approx(8.10, abs=0.1)
    assert tokens(answer).low <= 399_424 <= tokens(answer).high
    assert tokens(answer).likely == pytest.approx(399_424, rel=0.005)


def test_two_ranks_are_refused_for_their_weights() -> None:
    answer = asked(MINIMAX, '2x"RTX PRO 6000"')
    assert answer.failure is not None
    assert (answer.failure.rule, answer.failure.certain) == ("weights", True)
    assert "107." in answer.failure.found
    assert "TP=4" in answer.failure.choices


@pytest.mark.parametrize(
    ("gpus", "settings", "flagged", "possible"),
    [
        # The V2 runner of 0.32 warms the sampler up after the KV cache has taken its share.
        ("4xH100", {}, True, True),
        (RTX, {}, True, True),
        ("4xH100", {"max_num_seqs": 256}, False, True),
        (RTX, {"max_num_seqs": 256}, False, True),
        # Up to 0.16 the sampler's peak comes out of the budget: SemiAnalysisAI/InferenceX#832.
        ("4xH100", {"engine": "0.16.0"}, True, False),
        (
            "4xH100",
            {"engine": "0.16.0", "max_model_len": 10240, "gpu_memory_utilization": 0.95},
            True,
            False,
        ),
        ("4xH100", {"engine": "0.16.0", "max_num_seqs": 256}, False, True),
        (RTX, {"engine": "0.16.0", "max_num_seqs": 256}, False, True),
    ],
)
def test_the_sampler_warm_up(
    gpus: str, settings: dict[str, Any], flagged: bool, possible: bool
) -> None:
    answer = asked(MINIMAX, gpus, **settings)
    assert ("sampler" in rules(answer)) == flagged
    assert (answer.outcome == "starts") == possible


def test_tight_but_possible_says_so_and_names_the_flag() -> None:
    on_96 = asked(MINIMAX, RTX)
    verdict = next(v for v in on_96.predictions if v.rule == "sampler")
    assert not verdict.fails
    assert "tight" in verdict.why
    assert any(choice.startswith("--max-num-seqs") for choice in verdict.choices)
    tight_80 = memory_of(asked(MINIMAX, "4xH100")).margin("warmup")
    tight_96 = memory_of(on_96).margin("warmup")
    assert tight_80 is not None
    assert tight_96 is not None
    assert tight_80.likely < tight_96.likely


def test_a_shorter_request_is_offered_only_where_it_is_shorter() -> None:
    refused = asked(MINIMAX, "4xH100", engine="0.16.0")
    assert refused.failure is not None
    lengths = [c for c in refused.failure.choices if c.startswith("--max-model-len")]
    assert len(lengths) == 1
    assert 100_000 < int(lengths[0].split()[1]) < 196_608
    shorter = asked(MINIMAX, "4xH100", engine="0.16.0", max_model_len=int(lengths[0].split()[1]))
    assert shorter.outcome == "starts"
    for verdict in asked(MINIMAX, "4xH100").verdicts:
        assert "--max-model-len 196608" not in verdict.choices


# --- Kimi-K2.5 ---------------------------------------------------------------------------------

KIMI: dict[str, Any] = {
    "max_num_seqs": 64,
    "kv_cache_dtype": "fp8",
    "gpu_memory_utilization": 0.93,
    "vision_data_parallel": True,
    "flags": ("--attention-backend", "TRITON_MLA"),
}


@pytest.mark.parametrize("architecture", [KIMI_NVFP4, KIMI_INT4])
def test_kimi_needs_all_eight(architecture: Any) -> None:
    eight = asked(architecture, '8x"RTX PRO 6000"', **KIMI)
    assert eight.outcome == "starts"
    assert eight.certainties == ()
    four = asked(architecture, RTX, **KIMI)
    assert {v.rule for v in four.certainties} == {"weights"}


def test_kimi_tokens_as_reported() -> None:
    # local-inference-lab/rtx6kpro: about 449,000 tokens in fp8 at 0.93 to 0.95.
    found = tokens(
        asked(KIMI_NVFP4, '8x"RTX PRO 6000"', **{**KIMI, "gpu_memory_utilization": 0.95})
    )
    assert found.low < 449_000 < found.high
    assert found.likely == pytest.approx(449_000, rel=0.05)


def test_kimi_on_eight_h100_as_published() -> None:
    # kk-*: 2.56 GiB besides 72.02 of weights, so -3.32 GiB are left at 0.90 (vLLM 0.15).
    load = Weights(per_rank=exactly(from_gib(72.02)), source="given")
    cards = parse_cards("8xH100")
    start = EngineSettings(engine="0.15.0", tp=8, max_num_seqs=64, vision_data_parallel=True)
    found = fit(KIMI_INT4, start, cards, load=load)
    assert memory_of(found).available.likely / GIB == pytest.approx(-3.32, abs=0.5)
    assert found.failure is not None
    assert (found.failure.rule, found.failure.certain) == ("no-kv", True)


def test_who_must_leave_first_is_named() -> None:
    holder = GpuProcess(
        gpu="GPU-1", pid=7, memory=88 * GIB, name="VLLM::Worker", unit="vllm-kimi-k25.service"
    )
    gpu = Gpu(
        uuid="GPU-1",
        index=0,
        bus_id="0000:01:00.0",
        name="NVIDIA RTX PRO 6000 Blackwell Server Edition",
        memory_total=97_887 << 20,
        memory_used=88 * GIB,
        memory_free=7 * GIB,
        numa_node=0,
    )
    one = card_of(gpu, "pcie", (holder,))
    answer = fit(MINIMAX, EngineSettings(engine="0.32.0", tp=4, max_num_seqs=256), (one,) * 4)
    assert answer.failure is not None
    assert answer.failure.rule == "free-memory"
    assert answer.failure.certain
    assert "vllm-kimi-k25.service holds 88.00 GiB" in answer.failure.found
    assert answer.failure.choices[0] == "stop vllm-kimi-k25.service first"


# --- cards -------------------------------------------------------------------------------------


def test_a_card_of_no_known_class_gets_a_range() -> None:
    gpu = Gpu(
        uuid="GPU-1",
        index=0,
        bus_id="0000:01:00.0",
        name="NVIDIA B200",
        memory_total=183_359 << 20,
        memory_used=0,
        memory_free=183_000 << 20,
        numa_node=0,
        compute_capability="10.0",
    )
    found = card_of(gpu)
    assert found.total.high < 183_359 << 20
    assert not found.total.is_exact
    assert found.capability == "10.0"


def test_a_known_card_whose_memory_nvml_does_not_tell() -> None:
    silent = Unknown(unknown="[N/A]")
    gpu = Gpu(
        uuid="GPU-1",
        index=0,
        bus_id="0000:01:00.0",
        name="NVIDIA GB10",
        memory_total=silent,
        memory_used=silent,
        memory_free=silent,
        numa_node=0,
        unified_memory=True,
    )
    assert card_of(gpu).total == exactly(from_gib(121.63))
    assert card_of(gpu).unified


@pytest.mark.parametrize(
    ("text", "count", "name"),
    [
        ('4x"RTX PRO 6000"', 4, "RTX PRO 6000"),
        ("8xH200", 8, "H200"),
        ("H100 NVL", 1, "H100 NVL"),
        ("2 x A100-SXM4-40GB", 2, "A100 40GB"),
        ("2x48GiB", 2, "48GiB"),
    ],
)
def test_cards_as_people_type_them(text: str, count: int, name: str) -> None:
    found = parse_cards(text)
    assert (len(found), found[0].name) == (count, name)


@given(st.text(max_size=30))
def test_any_name_is_a_card_or_a_reason(name: str) -> None:
    assert isinstance(card(name), (Card, Unknown))


# --- outside the measured regimes --------------------------------------------------------------


def width(answer: Fit) -> int:
    available = memory_of(answer).available
    return available.high - available.low


def test_outside_the_measured_regimes_the_range_widens() -> None:
    inside = asked(LLAMA, "1xH100", engine="0.19.0")
    assert memory_of(inside).overhead.within
    assert width(inside) < 1.5 * GIB
    newest = asked(LLAMA, "1xH100", engine="0.32.0")
    assert width(newest) > 3 * width(inside)
    unknown = asked(read_architecture({**LLAMA_8B, "vocab_size": None}), "1xH100", engine="0.19.0")
    assert isinstance(unknown.memory, Unknown)
    blind = fit(
        read_architecture({**LLAMA_8B, "vocab_size": None}),
        EngineSettings(engine="0.19.0"),
        parse_cards("1xH100"),
        load=Weights(per_rank=exactly(15 * GIB), source="given"),
    )
    assert not memory_of(blind).overhead.within
    assert width(blind) > 3 * width(inside)
    assert any("vocab_size" in remark for remark in memory_of(blind).overhead.remarks)


def test_an_unknown_version_is_remarked() -> None:
    answer = asked(LLAMA, "1xH100", engine=None)
    assert not memory_of(answer).overhead.within
    assert memory_of(answer).resolved.runner == "V2"


def test_a_newer_engine_than_was_read_is_remarked() -> None:
    answer = asked(LLAMA, "1xH100", engine="0.40.1")
    assert any("newer than 0.32.0" in remark for remark in memory_of(answer).overhead.remarks)
    assert width(answer) > width(asked(LLAMA, "1xH100"))


def test_unified_memory_is_remarked() -> None:
    answer = asked(LLAMA, "1xGB10", engine="0.19.0")
    assert any("unified" in remark for remark in memory_of(answer).overhead.remarks)
    assert memory_of(answer).available.high - memory_of(answer).available.low > 5 * GIB


def test_cache_memory_given_outright() -> None:
    answer = asked(LLAMA, "1xH100", kv_cache_memory=10 * GIB)
    assert memory_of(answer).available == exactly(10 * GIB)
    assert memory_of(answer).margin("free") is None
    too_much = asked(LLAMA, "1xH100", kv_cache_memory=70 * GIB)
    assert too_much.outcome == "fails"


def test_every_sequence_needs_a_state_of_its_own() -> None:
    # vllm-project/recipes#551: Qwen3.6-27B-FP8 on one H100 at 0.95 has 856 blocks for 1,024.
    text = {
        **QWEN35_MOE["text_config"],
        "num_hidden_layers": 64,
        "hidden_size": 5120,
        "intermediate_size": 17408,
        "num_attention_heads": 24,
        "num_key_value_heads": 4,
        "linear_num_value_heads": 48,
        "num_experts": None,
    }
    scheme = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    a = read_architecture({**QWEN35_MOE, "text_config": text, "quantization_config": scheme})
    settings = {"gpu_memory_utilization": 0.95, "engine": "0.22.0", "max_model_len": 8192}
    answer = asked(a, "1xH100", **settings)
    assert answer.failure is not None
    assert answer.failure.rule == "state-blocks"
    found = memory_of(answer)
    assert not isinstance(found.kv, Unknown)
    assert found.kv.blocks(found.available.low) <= 856 <= found.kv.blocks(found.available.high)
    assert "--max-num-seqs 512" in answer.failure.choices
    assert asked(a, "1xH100", **settings, max_num_seqs=512).outcome == "starts"
    assert "state-blocks" not in rules(asked(a, "1xH100", **settings, enforce_eager=True))
    assert "state-blocks" not in rules(asked(a, "1xH100", **{**settings, "engine": "0.18.0"}))


# --- defaults of the engine --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpus", "engine", "seqs", "batched", "utilisation"),
    [
        ("1xH100", "0.19.0", 1024, 8192, 0.9),
        (RTX, "0.32.0", 1024, 8192, 0.92),
        ("1xA100", "0.19.0", 256, 2048, 0.9),
        ('1x"RTX 5090"', "0.22.0", 256, 2048, 0.92),
        ("1xB300", "0.32.0", 1024, 16384, 0.92),
        ("1x3090", "0.8.1", 1024, 2048, 0.9),
        ("1x3090", "0.7.3", 256, 2048, 0.9),
    ],
)
def test_defaults(gpus: str, engine: str, seqs: int, batched: int, utilisation: float) -> None:
    found = resolve(
        read_architecture({**LLAMA_8B, "max_position_embeddings": 2048}),
        EngineSettings(engine=engine),
        parse_cards(gpus),
    )
    assert (found.max_num_seqs, found.max_num_batched_tokens) == (seqs, batched)
    assert found.utilisation == utilisation


@pytest.mark.parametrize(
    ("engine", "model", "runner"),
    [
        ("0.7.3", LLAMA, "V0"),
        ("0.19.0", LLAMA, "V1"),
        ("0.26.0", LLAMA, "V2"),
        ("0.26.0", MINIMAX, "V1"),
        ("0.32.0", MINIMAX, "V2"),
    ],
)
def test_model_runner(engine: str, model: Any, runner: str) -> None:
    assert resolve(model, EngineSettings(engine=engine), parse_cards("1xH100")).runner == runner


# --- more is never less ------------------------------------------------------------------------

MODELS = [MINIMAX, KIMI_INT4, LLAMA, read_architecture(GPT_OSS_20B), read_architecture(QWEN35_MOE)]
ENGINES = st.sampled_from(["0.9.2", "0.16.0", "0.19.0", "0.22.0", "0.27.0", "0.32.0"])
STARTS = st.builds(
    lambda engine, tp, seqs, batched, util, length: EngineSettings(
        engine=engine,
        tp=tp,
        max_num_seqs=seqs,
        max_num_batched_tokens=batched,
        gpu_memory_utilization=util,
        max_model_len=length,
    ),
    ENGINES,
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([8, 64, 256, 1024]),
    st.sampled_from([2048, 8192, 16384]),
    st.sampled_from([0.5, 0.8, 0.9, 0.95]),
    st.sampled_from([4096, 32768, 131072]),
)


def ends(span: Span | Unknown) -> tuple[int, int, int]:
    assert isinstance(span, Span)
    return (span.low, span.likely, span.high)


def computed(model: Any, start: EngineSettings, total: int) -> Memory:
    cards = (Card(name="any", total=exactly(total), link="pcie"),) * start.tp
    found = memory(model, resolve(model, start, cards), cards)
    assert isinstance(found, Memory)
    return found


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(MODELS), STARTS, st.integers(20, 140), st.integers(1, 60))
def test_more_memory_never_gives_fewer_tokens(
    model: Any, start: EngineSettings, size: int, more: int
) -> None:
    small, large = computed(model, start, size * GIB), computed(model, start, (size + more) * GIB)
    for one, other in zip(ends(small.tokens), ends(large.tokens), strict=True):
        assert one <= other
    for before, after in zip(small.margins, large.margins, strict=True):
        assert before.left.likely <= after.left.likely


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(MODELS), STARTS, st.sampled_from([2, 4]))
def test_more_sequences_never_leave_more_cache(
    model: Any, start: EngineSettings, factor: int
) -> None:
    few = computed(model, start, 80 * GIB)
    assert start.max_num_seqs is not None
    many = computed(
        model,
        start.model_copy(update={"max_num_seqs": start.max_num_seqs * factor}),
        80 * GIB,
    )
    for more, fewer in zip(ends(few.available), ends(many.available), strict=True):
        assert more >= fewer


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(MODELS), STARTS, st.floats(0.01, 0.05))
def test_higher_utilisation_gives_more_cache_and_less_room(
    model: Any, start: EngineSettings, more: float
) -> None:
    assert start.gpu_memory_utilization is not None
    low = computed(model, start, 80 * GIB)
    raised = start.gpu_memory_utilization + more
    high = computed(model, start.model_copy(update={"gpu_memory_utilization": raised}), 80 * GIB)
    assert high.available.likely >= low.available.likely
    before, after = low.margin("warmup"), high.margin("warmup")
    assert before is not None
    assert after is not None
    assert after.likely <= before.likely


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(MODELS), STARTS, st.sampled_from([24, 48, 80, 96, 141]))
def test_every_answer_is_consistent(model: Any, start: EngineSettings, size: int) -> None:
    cards = (Card(name="any", total=exactly(size * GIB), link="nvlink"),) * start.tp
    answer = fit(model, start, cards)
    found = memory_of(answer)
    assert found.available.low <= found.available.likely <= found.available.high
    assert (answer.outcome == "fails") == (answer.failure is not None)
    assert answer.explain()
    assert answer.to_json()["resolved"]["max_num_seqs"] >= 1
    if answer.outcome == "starts":
        assert all(margin.left.likely >= 0 for margin in found.margins)
    for verdict in answer.verdicts:
        assert verdict.found
        assert verdict.next_step


@given(st.integers(-(1 << 40), 1 << 40), st.integers(0, 1 << 30), st.integers(0, 1 << 30))
def test_spans_add_and_subtract(likely: int, less: int, more: int) -> None:
    span = around(likely, less, more)
    assert (span - span).low <= 0 <= (span - span).high
    assert (span + exactly(5)).likely == likely + 5


def test_a_span_out_of_order_is_refused() -> None:
    with pytest.raises(ValueError, match="not in order"):
        Span(low=2, likely=1, high=3)
