"""What is certain before anything is touched: the plan of a run, or the refusal. No host needed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deploys.preflight import DesiredState, plan_for
from facts.actual import Actual
from facts.query import Query
from inventory.catalogue import KIMI_K25, MINIMAX_M25
from inventory.errors import ConflictError, FitError, PlacementError, PreconditionError
from inventory.hardware import GpuProcess, Hardware
from inventory.service import Service
from inventory.snapshot import LocalSnapshot, Snapshot, SnapshotFile
from tests.inventory.boxes import GIB, RTX, gpu, node, uuid
from tests.inventory.boxes import box as hardware
from tests.operations.boxes import absent, box, unit

COMMIT = "a" * 40
FOLDER = f"/shared/models/MiniMaxAI/MiniMax-M2.5/{COMMIT}"

# MiniMaxAI/MiniMax-M2.5 config.json: the fields that the fit reads.
CONFIG: dict[str, Any] = {
    "architectures": ["MiniMaxM2ForCausalLM"],
    "model_type": "minimax_m2",
    "num_hidden_layers": 62,
    "hidden_size": 3072,
    "num_attention_heads": 48,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "num_local_experts": 256,
    "num_experts_per_tok": 8,
    "intermediate_size": 1536,
    "vocab_size": 200064,
    "max_position_embeddings": 196608,
    "torch_dtype": "bfloat16",
    "quantization_config": {
        "quant_method": "fp8",
        "fmt": "float8_e4m3fn",
        "activation_scheme": "dynamic",
        "weight_block_size": [128, 128],
    },
    "auto_map": {"AutoConfig": "configuration_minimax_m2.MiniMaxM2Config"},
}

SHARDS = tuple(
    SnapshotFile(
        path=f"model-{n:05d}-of-00126.safetensors", size=1_826_000_000, digest=f"sha256:{n:064x}"
    )
    for n in range(126)
)

SNAPSHOT = Snapshot(repo="MiniMaxAI/MiniMax-M2.5", revision="main", commit=COMMIT, files=SHARDS)


def wanted(service: Service = MINIMAX_M25, **fields: Any) -> DesiredState:
    told: dict[str, Any] = {
        "service": service,
        "replaces": (KIMI_K25,),
        "snapshot": LocalSnapshot.of(service.model, SNAPSHOT),
        "query": Query(),
        "config": CONFIG,
    }
    return DesiredState(**{**told, **fields})


def eight(*processes: GpuProcess, used: int = 0) -> Hardware:
    cards = [
        gpu(
            n,
            n // 4,
            name=RTX,
            memory_total=97887 << 20,
            compute_capability="12.0",
            memory_used=used,
            memory_free=(97887 << 20) - used,
        )
        for n in range(8)
    ]
    return hardware(cards, nodes=[node(0, 0), node(1, 1)], processes=processes)


def actual(machine: Hardware | None = None, **sections: Any) -> Actual:
    told: dict[str, Any] = {
        "who": "0\nroot",
        "manager": "systemd 252 (252.39)\nrunning",
        "units": "\n".join([absent(MINIMAX_M25.unit), unit(KIMI_K25.unit)]),
        "files": ("", 3),
        "disks": f"{FOLDER}|/shared|rw|{400 * GIB} {999 * GIB} 1 xfs /shared",
        "listeners": "",
    }
    read = box(**{**told, **sections})
    return read.model_copy(update={"hardware": machine or eight()})


def kimi(n: int) -> GpuProcess:
    return GpuProcess(
        gpu=uuid(n), pid=90 + n, memory=80 * GIB, name="VLLM::Worker_TP", unit=KIMI_K25.unit
    )


def test_the_story_is_planned_on_four_gpus_of_one_node() -> None:
    plan = plan_for(wanted(), actual(eight(*map(kimi, range(8)), used=80 * GIB)))
    assert len(plan.placement.gpus) == 4
    assert len(set(plan.placement.numa_nodes)) == 1
    assert f"CUDA_VISIBLE_DEVICES={','.join(plan.placement.gpus)}" in plan.unit_text
    assert "--max-num-seqs 256" in plan.unit_text
    assert plan.fitted.answer is not None
    assert plan.fitted.answer.outcome == "starts"


def test_kimi_in_the_way_is_named_where_it_is_not_replaced() -> None:
    busy = eight(*map(kimi, range(8)), used=80 * GIB)
    with pytest.raises(PlacementError, match=r"vllm-kimi-k25\.service"):
        plan_for(wanted(replaces=()), actual(busy))


def engine(**settings: Any) -> Service:
    changed = MINIMAX_M25.engine.model_copy(update=settings)
    return MINIMAX_M25.model_copy(update={"engine": changed})


def on(gpus: int, within: str = "host", **settings: Any) -> Service:
    changed = MINIMAX_M25.placement.model_copy(update={"gpus": gpus, "within": within})
    return engine(**settings).model_copy(update={"placement": changed})


@pytest.mark.parametrize(
    ("service", "words"),
    [
        (on(2, tensor_parallel_size=2), "weights of 107"),
        (on(3, tensor_parallel_size=3), "8 KV heads: neither 8 / "),
        (on(6, tensor_parallel_size=6), "8 KV heads: neither 8 / "),
        (on(8, version="0.20.2", tensor_parallel_size=8), "1536 / 8 = 192, not a multiple of 128"),
        (engine(max_model_len=999_999), "the model's context is 196,608 tokens"),
        (engine(tool_call_parser="minimax_m9"), "54 of them, not this one"),
    ],
)
def test_arithmetic_certainties_refuse_before_anything_is_touched(
    service: Service, words: str
) -> None:
    with pytest.raises(FitError) as caught:
        plan_for(wanted(service), actual())
    assert words in caught.value.found
    assert "--data accept=" in caught.value.next_step
    assert len(caught.value.message.splitlines()) == 4


def test_a_certainty_that_the_operator_accepts_is_said_and_recorded() -> None:
    service = engine(max_model_len=999_999)
    plan = plan_for(wanted(service, accept=frozenset({"context", "kv-context"})), actual())
    assert any(
        text.startswith("accepted by the operator: [context]") for text in plan.fitted.warnings
    )
    assert "# Accepted against the fit: context kv-context." in plan.unit_text.splitlines()


def test_what_is_left_open_is_derived_the_same_way_on_a_busy_box() -> None:
    service = engine(max_num_seqs=None).model_copy(update={"load_seconds": None})
    idle = plan_for(wanted(service), actual())
    busy = plan_for(wanted(service), actual(eight(*map(kimi, range(8)), used=80 * GIB)))
    assert idle.unit_text == busy.unit_text
    assert idle.service.engine.max_num_seqs == 256
    assert any("max_num_seqs 256" in note for note in idle.fitted.notes)
    assert idle.service.load_seconds != 900


def test_eight_gpus_without_another_word_split_experts_whole() -> None:
    plan = plan_for(wanted(on(8)), actual())
    assert "--enable-expert-parallel" in plan.unit_text
    assert any("whole experts on each rank" in note for note in plan.fitted.notes)


def test_a_model_whose_config_could_not_be_had_is_served_with_a_warning() -> None:
    plan = plan_for(wanted(config=None), actual())
    assert plan.fitted.warnings == ("the fit was not computed: there is no config.json",)


def test_a_placement_in_force_is_kept() -> None:
    first = plan_for(wanted(), actual())
    head = "regular file|644|root|root|1.0\n" + "0" * 64 + "  -\n"
    upper = first.unit_text.replace(
        ",".join(first.placement.gpus), ",".join(uuid(n) for n in (4, 5, 6, 7))
    )
    sections = {f"unit-file__{MINIMAX_M25.unit}": head + upper, "units": unit(MINIMAX_M25.unit)}
    again = plan_for(wanted(), actual(None, **sections))
    assert again.placement.gpus == tuple(uuid(n) for n in (4, 5, 6, 7))
    assert not again.moved


@pytest.mark.parametrize(
    ("sections", "error", "words"),
    [
        (
            {"who": "1000\nops", "root": ("sudo: a password is required", 1)},
            PreconditionError,
            "login as ops",
        ),
        ({"manager": ("no", 3)}, PreconditionError, "not booted with systemd"),
        (
            {"disks": f"{FOLDER}|/shared|rw|{100 * GIB} 1 1 xfs /shared"},
            PreconditionError,
            "100.0 GiB free",
        ),
        (
            {
                "files": "",
                "manifest": json.dumps(
                    {"repo": "x/y", "commit": "c" * 40, "problem": "", "files": []}
                ),
            },
            ConflictError,
            "the snapshot of x/y",
        ),
    ],
)
def test_a_box_that_cannot_take_it_is_refused(
    sections: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        plan_for(wanted(), actual(None, **sections))


def test_a_read_that_was_cut_off_is_no_reading() -> None:
    cut = actual().model_copy(update={"complete": False})
    with pytest.raises(PreconditionError, match="cut off"):
        plan_for(wanted(), cut)
