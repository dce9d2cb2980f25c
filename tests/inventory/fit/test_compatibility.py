"""Model, engine and card, before anything starts; flags against the engine's own help text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.base import Unknown
from inventory.catalogue import CATALOGUE
from inventory.fit.answer.verdict import Verdict
from inventory.fit.fit import fit
from inventory.fit.legality.flags import Help, flag_verdicts, read_help, words_of
from inventory.fit.model.config import read_architecture
from inventory.fit.settings.card import parse_cards
from inventory.fit.settings.settings import EngineSettings, release, shown
from inventory.fit.settings.settings_of import settings_of
from inventory.service import Service
from tests.inventory.fit.data import (
    FIXTURES,
    KIMI_INT4,
    LLAMA_8B,
    MINIMAX,
    asked,
    fixture,
    rules,
)

LLAMA = read_architecture(LLAMA_8B)


def test_more_ranks_than_gpus() -> None:
    answer = asked(MINIMAX, '4x"RTX PRO 6000"', tp=4, pp=2)
    verdict = next(v for v in answer.certainties if v.rule == "world-size")
    assert "4 x 2 x 1 = 8 ranks, and 4 GPUs" in verdict.found


def test_a_removed_class_is_refused() -> None:
    xverse = read_architecture({**LLAMA_8B, "architectures": ["XverseForCausalLM"]})
    answer = asked(xverse, "1xH100")
    verdict = next(v for v in answer.certainties if v.rule == "engine-version")
    assert verdict.choices == ("vllm==0.23.0",)
    assert "engine-version" not in rules(asked(xverse, "1xH100", engine="0.23.0"))


def test_an_old_engine_is_a_prediction() -> None:
    answer = asked(KIMI_INT4, "8xH200", engine="0.15.0")
    verdict = next(v for v in answer.predictions if v.rule == "engine-version")
    assert "0.19.1" in verdict.next_step


def test_a_class_that_nobody_knows() -> None:
    new = read_architecture(
        {**LLAMA_8B, "architectures": ["NextBigThing"], "auto_map": {"AutoConfig": "x.Y"}}
    )
    assert {"engine-version", "custom-code"} <= rules(asked(new, "1xH100"))
    assert "custom-code" not in rules(asked(new, "1xH100", trust_remote_code=True))
    # A class that the engine implements itself needs none of the repository's code.
    assert "custom-code" not in rules(asked(MINIMAX, '4x"RTX PRO 6000"'))


def test_parser_names() -> None:
    answer = asked(MINIMAX, '4x"RTX PRO 6000"', tool_call_parser="minimax", engine="0.32.0")
    verdict = next(v for v in answer.certainties if v.rule == "parser")
    assert "minimax_m2" in verdict.choices
    good = asked(
        MINIMAX,
        '4x"RTX PRO 6000"',
        tool_call_parser="minimax_m2",
        reasoning_parser="minimax_m2_append_think",
    )
    assert "parser" not in rules(good)
    other = asked(MINIMAX, '4x"RTX PRO 6000"', reasoning_parser="x", engine="0.21.0")
    assert all(not v.certain for v in other.verdicts if v.rule == "parser")


def test_a_longer_context_than_the_model_has() -> None:
    answer = asked(LLAMA, "1xH200", max_model_len=200_000)
    verdict = next(v for v in answer.certainties if v.rule == "context")
    assert verdict.choices == ("--max-model-len 131072",)
    allowed = asked(
        LLAMA, "1xH200", max_model_len=200_000, flags=("VLLM_ALLOW_LONG_MAX_MODEL_LEN=1",)
    )
    assert all(not v.certain for v in allowed.verdicts if v.rule == "context")


@pytest.mark.parametrize(
    ("have", "asked_for", "refused"),
    [
        ({"quant_method": "awq"}, "awq_marlin", False),
        ({"quant_method": "awq"}, "gptq", True),
        ({"quant_method": "fp8"}, "awq", True),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "modelopt_fp4", False),
        ({"quant_method": "compressed-tensors", "format": "x"}, "compressed-tensors", False),
    ],
)
def test_the_quantisation_that_the_checkpoint_has(
    have: dict[str, str], asked_for: str, refused: bool
) -> None:
    a = read_architecture({**LLAMA_8B, "quantization_config": have})
    answer = asked(a, "1xH100", quantization=asked_for)
    assert ("quantization" in rules(answer)) == refused


@pytest.mark.parametrize(
    ("method", "card", "refused"),
    [
        ("fp8", "V100", True),
        ("fp8", "T4", False),
        ("mxfp4", "T4", True),
        ("awq", "V100", True),
        ("gptq", "V100", False),
    ],
)
def test_compute_capability(method: str, card: str, refused: bool) -> None:
    a = read_architecture({**LLAMA_8B, "quantization_config": {"quant_method": method}})
    answer = asked(a, f"1x{card}")
    assert ("capability" in {v.rule for v in answer.certainties}) == refused


def test_bfloat16_needs_ampere() -> None:
    assert "capability" in rules(asked(LLAMA, "1xV100", dtype="bfloat16"))
    assert "capability" not in rules(asked(LLAMA, "1xA100", dtype="bfloat16"))


def test_fp8_cache_on_an_old_card_is_a_prediction() -> None:
    assert "fp8-kv" in {v.rule for v in asked(LLAMA, "1xA100", kv_cache_dtype="fp8").predictions}
    assert "fp8-kv" not in rules(asked(LLAMA, "1xH100", kv_cache_dtype="fp8"))


def test_latent_attention_on_desktop_blackwell_needs_a_back_end() -> None:
    assert "attention-backend" in rules(asked(KIMI_INT4, '8x"RTX PRO 6000"'))
    named = asked(KIMI_INT4, '8x"RTX PRO 6000"', flags=("--attention-backend", "TRITON_MLA"))
    assert "attention-backend" not in rules(named)
    assert "attention-backend" not in rules(asked(KIMI_INT4, "8xH200"))


def test_nccl_needs_room() -> None:
    assert "nccl-room" in rules(asked(MINIMAX, '4x"RTX PRO 6000"', gpu_memory_utilization=0.95))
    assert "nccl-room" not in rules(asked(MINIMAX, '4x"RTX PRO 6000"', gpu_memory_utilization=0.93))


# --- flags ----------------------------------------------------------------------------------


def engine_help() -> Help:
    """Usage text of a real vLLM 0.32.0."""
    found = read_help((FIXTURES / "usage-0.32.0.txt").read_text(encoding="utf-8"))
    assert isinstance(found, Help)
    return found


def judged(*arguments: str) -> dict[str, Verdict]:
    return {v.rule: v for v in flag_verdicts(arguments, engine_help(), "0.32.0")}


def test_help_text_is_read() -> None:
    found = engine_help()
    assert len(found.flags) > 350
    assert "minimax_m2" in found.choices["--tool-call-parser"]
    assert "fp8" in found.choices["--kv-cache-dtype"]


@pytest.mark.parametrize("service", CATALOGUE, ids=lambda service: service.name)
def test_the_catalogue_uses_only_flags_that_exist(service: Service) -> None:
    assert flag_verdicts(settings_of(service).flags, engine_help(), "0.32.0") == ()


def test_an_unknown_flag_is_certain_and_has_a_neighbour() -> None:
    verdict = judged("--max-num-seqss", "3")["flag"]
    assert verdict.certain
    assert "--max-num-seqs" in verdict.choices


def test_spellings_that_the_engine_takes() -> None:
    assert judged("--max_num_seqs=3") == {}
    assert judged("--compilation-config.cudagraph_mode=NONE") == {}
    assert judged("-tp", "4") == {}
    assert judged("--max-num-b", "4096") == {}


def test_a_value_that_is_not_allowed() -> None:
    assert judged("--kv-cache-dtype", "fp9")["flag-value"].certain
    assert judged("--tool-call-parser", "minimax")["parser"].certain
    plugged = judged("--tool-parser-plugin", "/opt/p.py", "--tool-call-parser", "mine")
    assert not plugged["parser"].certain


def test_help_reaches_the_fit() -> None:
    start = EngineSettings(engine="0.32.0", tp=4, flags=("--no-such-flag",))
    answer = fit(MINIMAX, start, parse_cards('4x"RTX PRO 6000"'), engine_help=engine_help())
    assert [v.rule for v in answer.certainties] == ["flag"]
    assert answer.outcome == "fails"


@given(st.text(max_size=300))
def test_any_text_gives_help_or_a_reason(text: str) -> None:
    assert isinstance(read_help(text), (Help, Unknown))


@given(st.lists(st.text(max_size=12), max_size=8))
def test_any_words_can_be_judged(words: list[str]) -> None:
    for name, _value in words_of(tuple(words)):
        assert name.startswith("-")
    assert all(v.found for v in flag_verdicts(tuple(words), HELP, "0.32.0"))


HELP = engine_help()


@given(st.text(max_size=40))
def test_any_version_gives_a_release_or_a_reason(text: str) -> None:
    found = release(text)
    assert isinstance(found, Unknown) or len(found) == 3
    assert shown(found)


def test_versions_of_the_published_starts() -> None:
    texts = {case["vllm_version"] for case in fixture("cases.json") if case["vllm_version"]}
    unread = {text for text in texts if isinstance(release(text), Unknown)}
    assert unread == {"main d56e95223"}
    assert release("0.8.0/0.8.1") == (0, 8, 0)
    assert release("0.29-0.30") == (0, 29, 0)
