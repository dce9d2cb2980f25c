"""What the engine fills in where the settings say nothing, and the most that is proposed to it.

Rules of vLLM 0.32.0 engine/arg_utils.py:2894-2985 and config/; when each came is said beside it.
"""

from pydantic import Field

from inventory.base import Frozen, Unknown, known
from inventory.common.units import GIB
from inventory.fit.model.architecture import Architecture
from inventory.fit.settings.card import Card, LinkKind
from inventory.fit.settings.settings import (
    NEWEST_READ,
    EngineSettings,
    Release,
    Runner,
    Sampler,
    release,
)

UTILISATION_092_SINCE: Release = (0, 20, 0)
"""vllm-project/vllm#38284: together with the charge for estimated graphs."""
V2_DENSE_SINCE: Release = (0, 26, 0)
"""vllm-project/vllm#44443, merged 2026-07-02."""
V2_ALL_SINCE: Release = (0, 29, 0)
"""vllm-project/vllm#53183, merged at the end of 2026-08; h200-glm53f-tp8 (0.29) runs it."""
V2_ESTIMATE_SINCE: Release = (0, 28, 0)
"""The V2 starts of 0.26 and 0.27 were not charged (NOTES.md section 4, rule 7)."""
V1_SINCE: Release = (0, 8, 0)
V0_WHOLE_PROMPTS = 32_768
LARGE_CARD, HUGE_CARD = 70 * GIB, 160 * GIB
SMALL_CARD_SEQS_SINCE: Release = (0, 8, 5)
"""Before, every card got 1024 (n-q32int8-3090, d32-4090-083)."""

MOST_UTILISATION_SEVERAL = 0.93
"""On several GPUs: 0.95 left NCCL without buffers (rtx6kpro troubleshooting)."""


class Resolved(Frozen):
    """The settings with everything that memory depends on filled in."""

    settings: EngineSettings = Field(serialization_alias="start", description="as given")
    engine: Release | Unknown
    utilisation: float
    max_model_len: int | Unknown
    max_num_seqs: int
    max_num_batched_tokens: int
    runner: Runner
    sampler: Sampler | None
    charges_graphs: bool = Field(description="estimated CUDA graphs are taken from the budget")
    link: LinkKind | Unknown
    filled: tuple[str, ...] = Field(description="settings that were not given, and their values")

    @property
    def version(self) -> Release:
        """The version whose rules apply: the newest that was read, if it is unknown."""
        return known(self.engine, NEWEST_READ)


def resolve(
    architecture: Architecture, settings: EngineSettings, cards: tuple[Card, ...]
) -> Resolved:
    """The settings as the engine would run with them.

    + cards: the GPUs, the first decides the defaults as device 0 does in the engine
    """
    engine = release(settings.engine)
    version = known(engine, NEWEST_READ)
    filled: list[str] = []

    def fill(name: str, value: object) -> None:
        filled.append(f"{name} {value}")

    utilisation = settings.gpu_memory_utilization
    if utilisation is None:
        utilisation = 0.92 if version >= UTILISATION_092_SINCE else 0.9
        fill("gpu_memory_utilization", utilisation)
    runner = settings.runner or _runner(architecture, version)
    total, name = (_memory(cards[0]), cards[0].name) if cards else (0, "")
    seqs = settings.max_num_seqs
    if seqs is None:
        seqs = default_max_num_seqs(total, name, runner, version)
        fill("max_num_seqs", seqs)
    batched = settings.max_num_batched_tokens
    length: int | Unknown = settings.max_model_len or architecture.context
    if batched is None:
        batched = _batched(total, name, server=settings.server)
        if runner == "V0":
            # Without chunked prefill a step takes a whole prompt; beyond 32,768 it was on.
            whole = 0 if isinstance(length, Unknown) or length > V0_WHOLE_PROMPTS else length
            batched = max(2048, whole)
        fill("max_num_batched_tokens", batched)
    if settings.max_model_len is None and not isinstance(length, Unknown):
        fill("max_model_len", length)
    link: LinkKind | Unknown = settings.link or (
        cards[0].link if cards else Unknown(unknown="no card was given")
    )
    charges = settings.graph_estimate
    if charges is None:
        since = V2_ESTIMATE_SINCE if runner == "V2" else UTILISATION_092_SINCE
        charges = version >= since and runner != "V0"
    return Resolved(
        settings=settings,
        engine=engine,
        utilisation=utilisation,
        max_model_len=length,
        max_num_seqs=min(seqs, batched) if runner != "V0" else seqs,
        max_num_batched_tokens=batched,
        runner=runner,
        sampler=settings.sampler,
        charges_graphs=charges and not settings.enforce_eager,
        link=link,
        filled=tuple(filled),
    )


def is_large(total: int, name: str) -> bool:
    """Whether the engine takes the larger defaults: from 70 GiB, but never on an A100.

    + total: bytes of the card. The engine asks NVML, which says a little more than the engine
      sees; no card is near enough to 70 GiB for that to matter
    """
    return total >= LARGE_CARD and "a100" not in name.lower()


def default_max_num_seqs(
    total: int, name: str, runner: Runner = "V1", version: Release = NEWEST_READ
) -> int:
    """``max_num_seqs`` of a server that was given none.

    + total: bytes of the card, as NVML or the engine says

    >>> default_max_num_seqs(80 * GIB, "NVIDIA H100 80GB HBM3")
    1024
    >>> default_max_num_seqs(80 * GIB, "NVIDIA A100-SXM4-80GB")
    256
    """
    if runner == "V0":
        return 256
    everywhere = runner == "V1" and version < SMALL_CARD_SEQS_SINCE
    return 1024 if everywhere or is_large(total, name) else 256


def most_utilisation(gpus: int) -> float:
    """The largest ``gpu_memory_utilization`` that works on so many GPUs, memory permitting."""
    return MOST_UTILISATION_SEVERAL if gpus > 1 else 1.0


def _runner(architecture: Architecture, version: Release) -> Runner:
    if version < V1_SINCE:
        return "V0"
    dense = architecture.experts is None and "linear" not in architecture.kinds
    return "V2" if version >= (V2_DENSE_SINCE if dense else V2_ALL_SINCE) else "V1"


def _memory(card: Card) -> int:
    # The engine's rule asks NVML, which says a little more than the engine sees.
    return card.nvml_total if isinstance(card.nvml_total, int) else card.total.likely


def _batched(total: int, name: str, *, server: bool) -> int:
    if total >= HUGE_CARD:
        return 16_384
    if is_large(total, name):
        return 8192 if server else 16_384
    return 2048 if server else 8192
