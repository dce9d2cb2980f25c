"""What a rank needs besides weights and KV cache: the activation peak of the profile run, what
CUDA and NCCL hold, CUDA graphs, and the sampler's warm-up. Constants: constants.py."""

from pydantic import Field

from inventory.base import Frozen, Unknown
from inventory.common.units import GIB, from_gib
from inventory.fit.memory import constants as c
from inventory.fit.memory.outside_torch import not_torch, used_before
from inventory.fit.memory.span import NOTHING, Span, around, exactly, most
from inventory.fit.model.architecture import Architecture
from inventory.fit.settings.card import Card
from inventory.fit.settings.resolve import Resolved
from inventory.fit.settings.settings import NEWEST_READ, Release, shown

_SPARSE_TOKENS = 8192
_CAPTURE_LIMIT = 512


class Overhead(Frozen):
    """Bytes of one rank."""

    regime: str = Field(description="runner, sampler and versions whose constants were used")
    measured_on: str = Field(description="starts that the constants come from")
    within: bool = Field(description="whether this start lies in a measured regime")
    remarks: tuple[str, ...] = Field(default=(), description="why the range is wide")
    sampler: Span = Field(description="the sampler's part of the profile run")
    forward: Span = Field(description="the forward pass of the profile run")
    activation: Span = Field(description="the peak of the profile run, as the budget sees it")
    not_torch: Span
    estimate: Span = Field(description="CUDA graphs as the budget is charged")
    graphs: Span = Field(description="CUDA graphs as captured")
    used_before: Span = Field(description="outside the budget: context and NCCL")
    warmup: Span = Field(description="the sampler's warm-up after the KV cache is allocated")
    reserve: Span = Field(description="what must stay free besides")

    @property
    def charged(self) -> Span:
        """What the budget loses besides weights."""
        return self.activation + self.not_torch + self.estimate


def overhead(architecture: Architecture, resolved: Resolved, cards: tuple[Card, ...]) -> Overhead:
    """The overhead of the fullest rank."""
    version = resolved.version
    regime = _regime(resolved, version)
    remarks = _remarks(resolved, cards)
    sampler = _sampler(architecture, resolved, regime, remarks)
    workspace = _workspace(architecture, resolved)
    forward = _forward(architecture, resolved, workspace, remarks)
    vision = _vision(architecture, resolved)
    peak = most(sampler + workspace if regime.keeps_workspace else sampler, forward)
    activation = (c.UNMEASURED_SPREAD if remarks else c.ACTIVATION_SPREAD).times(peak + vision)
    graphs = _graphs(architecture, resolved, version)
    estimate = NOTHING
    if resolved.charges_graphs:
        estimate = c.ESTIMATE_TO_ACTUAL.times(graphs.likely)
    warmup, reserve = _warmup(architecture, resolved, sampler)
    return Overhead(
        regime=regime.name,
        measured_on=regime.measured_on,
        within=not remarks,
        remarks=tuple(remarks),
        sampler=sampler,
        forward=forward,
        activation=activation,
        not_torch=not_torch(resolved, cards, version),
        estimate=estimate,
        graphs=graphs,
        used_before=used_before(architecture, resolved, cards),
        warmup=warmup,
        reserve=reserve,
    )


def _remarks(resolved: Resolved, cards: tuple[Card, ...]) -> list[str]:
    """Why the constants may not hold, before anything is known of the model."""
    remarks: list[str] = []
    if isinstance(resolved.engine, Unknown):
        remarks.append(f"{resolved.engine.unknown}: {shown(NEWEST_READ)} is assumed")
    elif resolved.engine > NEWEST_READ:
        remarks.append(
            f"vLLM {shown(resolved.engine)} is newer than {shown(NEWEST_READ)}, whose rules are "
            "applied"
        )
    if cards and cards[0].unified:
        remarks.append("unified memory: what the host's page cache holds counts as used")
    return remarks


def _regime(resolved: Resolved, version: Release) -> c.SamplerRegime:
    return next(
        regime
        for regime in c.SAMPLERS
        if regime.runner == resolved.runner
        and regime.sampler in {"", resolved.sampler or ""}
        and version >= regime.since
    )


def _logits(architecture: Architecture, resolved: Resolved) -> int | Unknown:
    """S * V."""
    if isinstance(architecture.padded_vocabulary, Unknown):
        return architecture.padded_vocabulary
    return resolved.max_num_seqs * architecture.padded_vocabulary


def _sampler(
    architecture: Architecture, resolved: Resolved, regime: c.SamplerRegime, remarks: list[str]
) -> Span:
    logits = _logits(architecture, resolved)
    if isinstance(logits, Unknown):
        remarks.append(f"the sampler's share is a guess: {logits.unknown}")
        low, likely, high = (resolved.max_num_seqs * size for size in c.VOCABULARIES)
        return regime.per_logit.times(Span(low=low, likely=likely, high=high))
    hidden = architecture.hidden
    element = resolved.settings.element_bytes
    output = (
        0 if isinstance(hidden, Unknown) else resolved.max_num_batched_tokens * hidden * element
    )
    # The logits themselves come in the model's type: pv-l8-f32 takes 2 bytes more for each.
    wider = logits * (element - c.HALF_PRECISION)
    return exactly(from_gib(regime.base) + output + wider) + regime.per_logit.times(logits)


def _forward(
    architecture: Architecture, resolved: Resolved, workspace: Span, remarks: list[str]
) -> Span:
    tokens = resolved.max_num_batched_tokens
    a, tp = architecture, resolved.settings.tp
    if a.indexer is not None:
        share = c.SPARSE_LINEAR_FORWARD if "linear" in a.kinds else c.SPARSE_FORWARD
        return share.times(from_gib(tokens / _SPARSE_TOKENS))
    hidden = a.hidden
    if isinstance(hidden, Unknown):
        remarks.append(f"the forward pass is a guess: {hidden.unknown}")
        return around(from_gib(0.8), from_gib(0.5), from_gib(1.2)) + workspace
    widths = [] if isinstance(a.intermediate, Unknown) else [a.intermediate]
    if a.experts is not None and a.layers == len(a.experts.layers):
        widths = [a.experts.shared_intermediate]
    per_token = c.FORWARD_HIDDENS * hidden + c.FORWARD_WIDTHS * max(widths, default=0) / tp
    held = from_gib(c.FORWARD_BASE) + round(tokens * per_token * c.HALF_PRECISION)
    return exactly(held) + workspace


def _workspace(architecture: Architecture, resolved: Resolved) -> Span:
    """Buffers of fused experts: inputs and outputs of the two products for every token and each of
    its experts (vLLM 0.32.0 fused_moe/modular_kernel.py, workspace shapes)."""
    moe, hidden = architecture.experts, architecture.hidden
    scheme = architecture.quantisation
    if moe is None or isinstance(hidden, Unknown) or (scheme and scheme.method == "mxfp4"):
        return NOTHING
    if isinstance(moe.intermediate, Unknown) or isinstance(moe.per_token, Unknown):
        return NOTHING
    width = moe.intermediate if resolved.settings.ep else moe.intermediate // resolved.settings.tp
    tokens = min(resolved.max_num_batched_tokens, c.WORKSPACE_TOKENS)
    rows = tokens * moe.per_token * c.HALF_PRECISION
    return exactly(rows * (max(2 * width, hidden) + max(width, hidden)))


def _vision(architecture: Architecture, resolved: Resolved) -> Span:
    if architecture.vision is None or resolved.settings.language_model_only:
        return NOTHING
    if "linear" in architecture.kinds:
        tokens = min(resolved.max_num_batched_tokens, c.HYBRID_VISION_MOST_TOKENS)
        amount = from_gib(tokens / 1024 * c.HYBRID_VISION_PER_1024) // resolved.settings.tp
        # q36-h100-v2 shows nothing of it under the V2 runner.
        likely = 0 if resolved.runner == "V2" else amount
        return Span(low=0, likely=likely, high=amount + amount // 2)
    return c.VISION_PROFILE.times(GIB)


def _graphs(architecture: Architecture, resolved: Resolved, version: Release) -> Span:
    if resolved.settings.enforce_eager or resolved.runner == "V0":
        return NOTHING
    layers = 40 if isinstance(architecture.layers, Unknown) else architecture.layers
    layers = -(-layers // resolved.settings.pp)
    amount = c.GRAPHS_BASE + c.GRAPHS_PER_LAYER * layers
    amount += c.GRAPHS_EXPERTS if architecture.experts is not None else 0.0
    share = _capture_sizes(resolved.max_num_seqs) / c.GRAPHS_FULL_SIZES
    amount *= c.GRAPHS_LATER if version >= c.LATER else 1.0
    amount += c.GRAPHS_LINEAR if "linear" in architecture.kinds else 0.0
    return c.GRAPHS_SPREAD.times(from_gib(amount * share))


def _capture_sizes(seqs: int) -> int:
    """How many batch sizes are captured: 1, 2, 4, then steps of 8 to 256 and of 16 beyond
    (vLLM 0.32.0 config/vllm.py:2354)."""
    most_tokens = min(2 * seqs, _CAPTURE_LIMIT)
    small = sum(size <= most_tokens for size in (1, 2, 4))
    return small + min(most_tokens, 256) // 8 + max(0, most_tokens - 256) // 16


def _warmup(architecture: Architecture, resolved: Resolved, sampler: Span) -> tuple[Span, Span]:
    logits = _logits(architecture, resolved)
    amount = resolved.max_num_seqs * 131_072 if isinstance(logits, Unknown) else logits
    # V1 runs the same sampler again after capture: what the profile run saw.
    need = c.WARMUP_V2.times(amount) if resolved.runner == "V2" else sampler
    reserve = from_gib(c.RESERVE_BASE) + round(amount * c.RESERVE_PER_LOGIT)
    scheme = architecture.quantisation
    if architecture.experts is not None and scheme is not None and scheme.method == "mxfp4":
        reserve += round(sampler.likely * c.RESERVE_MXFP4)
    return need, around(reserve, reserve // 2, reserve // 2)
