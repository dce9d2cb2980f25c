"""A service of the inventory as a start; chosen GPUs as cards."""

from __future__ import annotations

from inventory.base import Unknown
from inventory.catalogue import CATALOGUE, KIMI_K25, MINIMAX_M25, MINIMAX_M25_THROUGHPUT
from inventory.engine import Vllm
from inventory.fit.fit import fit
from inventory.fit.model.known import known_architecture
from inventory.fit.settings.settings_of import cards_for, link_between, settings_of
from inventory.hardware import GpuProcess, Hardware, Link
from inventory.service import Model, Placement, Service
from tests.inventory.boxes import gpu, uuid


def served(engine: Vllm, gpus: int = 8, environment: dict[str, str] | None = None) -> Service:
    return Service(
        name="vllm-x",
        model=Model(repo="a/b"),
        engine=engine,
        placement=Placement(gpus=gpus),
        environment=environment or {},
    )


def test_fields_of_the_engine() -> None:
    found = settings_of(MINIMAX_M25)
    assert (found.engine, found.tp, found.ep, found.max_num_seqs) == ("0.32.0", 4, False, 256)
    assert found.tool_call_parser == "minimax_m2"
    assert found.trust_remote_code
    eight = settings_of(MINIMAX_M25_THROUGHPUT)
    assert (eight.tp, eight.ep) == (8, True)


def test_extra_arguments_count() -> None:
    found = settings_of(KIMI_K25)
    assert found.vision_data_parallel
    assert "TRITON_MLA" in found.flags
    engine = Vllm(
        version="0.32.0",
        extra_args=(
            "--decode_context_parallel_size=8",
            "--block-size",
            "64",
            "--kv-cache-memory-bytes=1000",
            "--language-model-only",
            "--no-enable-prefix-caching",
            "--dtype",
            "float32",
        ),
        speculative_config={"method": "mtp", "num_speculative_tokens": 3},
    )
    found = settings_of(served(engine))
    assert (found.dcp, found.block_size, found.kv_cache_memory) == (8, 64, 1000)
    assert found.language_model_only
    assert not found.prefix_caching
    assert found.element_bytes == 4
    assert (found.draft, found.draft_tokens) == (True, 3)


def test_the_environment_counts() -> None:
    switches = {
        "VLLM_USE_V2_MODEL_RUNNER": "0",
        "VLLM_USE_FLASHINFER_SAMPLER": "0",
        "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": "0",
    }
    found = settings_of(served(Vllm(version="0.32.0"), environment=switches))
    assert (found.runner, found.sampler, found.graph_estimate) == ("V1", "native", False)
    plain = settings_of(served(Vllm(version="0.32.0")))
    assert (plain.runner, plain.sampler, plain.graph_estimate) == (None, None, None)


def test_data_and_pipeline_parallelism() -> None:
    found = settings_of(
        served(Vllm(version="0.32.0", data_parallel_size=2, pipeline_parallel_size=2))
    )
    assert (found.tp, found.pp, found.dp, found.gpus) == (2, 2, 2, 8)


def test_links() -> None:
    gpus = (gpu(0), gpu(1), gpu(2))
    pairs = ((0, 1), (0, 2), (1, 2))
    nv = tuple(Link(a=uuid(a), b=uuid(b), kind="NV18", p2p=True) for a, b in pairs)
    assert link_between(gpus, nv) == "nvlink"
    assert link_between(gpus, (*nv[:2], nv[2].model_copy(update={"kind": "NODE"}))) == "pcie"
    assert isinstance(link_between(gpus, nv[:2]), Unknown)
    assert isinstance(link_between(gpus[:1], ()), Unknown)


def test_the_catalogue_on_the_box_it_was_made_for() -> None:
    gpus = tuple(
        gpu(n, memory_total=97_887 << 20, memory_free=97_250 << 20, compute_capability="12.0")
        for n in range(8)
    )
    box = Hardware(state="ok", gpus=gpus)
    for service in CATALOGUE:
        chosen = gpus[: service.placement.gpus]
        answer = fit(
            known_architecture(service.model.repo), settings_of(service), cards_for(chosen, box)
        )
        assert answer.certainties == (), service.name
        assert answer.outcome == "starts", service.name


def test_who_holds_the_memory() -> None:
    held = GpuProcess(gpu=uuid(1), pid=5, memory=1 << 30, name="python", unit=None)
    box = Hardware(state="ok", gpus=(gpu(0), gpu(1)), processes=(held,))
    cards = cards_for(box.gpus, box)
    assert cards[0].holders == ()
    assert cards[1].holders == ("python (no unit) holds 1.00 GiB",)
    silent = box.model_copy(update={"processes": Unknown(unknown="no permission")})
    assert cards_for(box.gpus, silent)[1].holders == ()


def test_what_leaving_units_hold_counts_as_free() -> None:
    held = 88 << 30
    kimi = GpuProcess(gpu=uuid(0), pid=5, memory=held, name="VLLM", unit="vllm-kimi-k25.service")
    box = Hardware(state="ok", gpus=(gpu(0, memory_free=7 << 30),), processes=(kimi,))
    staying = cards_for(box.gpus, box)[0]
    assert staying.free == 7 << 30
    assert staying.holders
    left = cards_for(box.gpus, box, frozenset({"vllm-kimi-k25.service"}))[0]
    assert left.free == (7 << 30) + held
    assert left.holders == ()
    silent = kimi.model_copy(update={"memory": Unknown(unknown="[N/A]")})
    untold = box.model_copy(update={"processes": (silent,)})
    card = cards_for(box.gpus, untold, frozenset({"vllm-kimi-k25.service"}))[0]
    assert isinstance(card.free, Unknown)
