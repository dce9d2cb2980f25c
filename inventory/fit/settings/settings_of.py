"""From a service and the GPUs of a box to the inputs of the fit."""

from inventory.base import Unknown
from inventory.fit.legality.flags import words_of
from inventory.fit.settings.card import Card, LinkKind, card_of
from inventory.fit.settings.settings import EngineSettings, Runner, Sampler
from inventory.hardware import Gpu, Hardware, Link
from inventory.service import Service, tensor_parallel_size

_SHORT = {"-dcp": "--decode-context-parallel-size", "-q": "--quantization"}


def settings_of(service: Service, link: LinkKind | None = None) -> EngineSettings:
    """How a service starts its engine.

    + service: its engine's fields, its extra arguments and its environment all count
    + link: how the chosen GPUs reach each other; None: what such cards usually have
    + raises: DesiredStateError where the parallel sizes do not use the GPUs of the placement

    >>> from inventory.catalogue import MINIMAX_M25
    >>> settings_of(MINIMAX_M25).tp
    4
    """
    engine = service.engine
    arguments = tuple(engine.flags(tensor_parallel_size(service)))
    extra = {_SHORT.get(name, name): value for name, value in words_of(engine.extra_args)}
    speculative = engine.speculative_config or {}
    environment = service.environment
    tokens = speculative.get("num_speculative_tokens", 0)
    return EngineSettings(
        engine=engine.version,
        tp=tensor_parallel_size(service) or 1,
        pp=engine.pipeline_parallel_size,
        dp=engine.data_parallel_size,
        ep=engine.enable_expert_parallel,
        dcp=_count(extra.get("--decode-context-parallel-size")) or 1,
        gpu_memory_utilization=engine.gpu_memory_utilization,
        kv_cache_memory=_count(
            extra.get("--kv-cache-memory-bytes") or extra.get("--kv-cache-memory")
        ),
        max_model_len=engine.max_model_len,
        max_num_seqs=engine.max_num_seqs,
        max_num_batched_tokens=engine.max_num_batched_tokens,
        kv_cache_dtype=engine.kv_cache_dtype or "auto",
        block_size=_count(extra.get("--block-size")),
        dtype=extra.get("--dtype") or "auto",
        quantization=extra.get("--quantization"),
        runner=_runner(environment.get("VLLM_USE_V2_MODEL_RUNNER")),
        sampler=_sampler(environment.get("VLLM_USE_FLASHINFER_SAMPLER")),
        enforce_eager=engine.enforce_eager,
        graph_estimate=_switch(environment.get("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS")),
        draft=str(speculative.get("method", "")).endswith("mtp"),
        draft_tokens=tokens if isinstance(tokens, int) and tokens >= 0 else 0,
        hybrid_kv="--disable-hybrid-kv-cache-manager" not in extra,
        prefix_caching="--no-enable-prefix-caching" not in extra,
        language_model_only="--language-model-only" in extra,
        vision_data_parallel=extra.get("--mm-encoder-tp-mode") == "data",
        link=link,
        trust_remote_code=engine.trust_remote_code,
        tool_call_parser=engine.tool_call_parser,
        reasoning_parser=engine.reasoning_parser,
        load_seconds=service.load_seconds,
        flags=arguments,
    )


def cards_for(
    gpus: tuple[Gpu, ...], hardware: Hardware, own_units: frozenset[str] = frozenset()
) -> tuple[Card, ...]:
    """The chosen GPUs as cards, with who holds memory on them.

    + own_units: full names of units that stop before the start (the service's own, and those that
      it replaces): what they hold counts as free
    + raises: DesiredStateError if neither the box nor the card's name tells a GPU's memory
    """
    link = link_between(gpus, hardware.links)
    processes = () if isinstance(hardware.processes, Unknown) else hardware.processes
    return tuple(card_of(gpu, link, processes, own_units) for gpu in gpus)


def link_between(gpus: tuple[Gpu, ...], links: tuple[Link, ...]) -> LinkKind | Unknown:
    """NVLink where every pair has it, else PCIe; unknown where a pair is not told.

    + links: of the box; a pair may stand either way round
    """
    uuids = {gpu.uuid for gpu in gpus}
    kinds = [link.kind for link in links if link.a in uuids and link.b in uuids]
    pairs = len(uuids) * (len(uuids) - 1) // 2
    if len(uuids) < 2:  # noqa: PLR2004
        return Unknown(unknown="one GPU needs no link")
    if len(kinds) < pairs or any(isinstance(kind, Unknown) for kind in kinds):
        return Unknown(unknown="not every pair's link is known")
    return "nvlink" if all(str(kind).startswith("NV") for kind in kinds) else "pcie"


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() and int(text) > 0 else None


def _runner(switch: str | None) -> Runner | None:
    on = _switch(switch)
    return None if on is None else "V2" if on else "V1"


def _sampler(switch: str | None) -> Sampler | None:
    on = _switch(switch)
    return None if on is None else "flashinfer" if on else "native"


def _switch(text: str | None) -> bool | None:
    return {"1": True, "0": False}.get(text) if text is not None else None
