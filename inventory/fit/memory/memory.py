"""The memory of one start: budget, KV cache, what fits into it, and how near each failure is."""

import math
from typing import Literal

from pydantic import Field

from inventory.base import Frozen, Unknown
from inventory.common.units import GIB
from inventory.fit.memory import constants as c
from inventory.fit.memory.kv import KvLayout, kv_layout
from inventory.fit.memory.overhead import Overhead, overhead
from inventory.fit.memory.span import NOTHING, Span, exactly
from inventory.fit.memory.weights import Weights, weights
from inventory.fit.model.architecture import Architecture
from inventory.fit.settings.card import Card
from inventory.fit.settings.resolve import Resolved
from inventory.fit.settings.settings import Release

Mode = Literal[
    "free",
    "weights",
    "profile",
    "sampler-profile",
    "blocks",
    "context",
    "states",
    "graphs",
    "warmup",
]
"""The failure modes in the order in which a start meets them: less free than wanted; weights do
not fit; the profile run does not (forward pass, or the sampler in it); nothing left for the KV
cache; less than one full request; fewer states of linear attention than sequences; CUDA graphs;
the sampler's warm-up."""

STATES_SINCE: Release = (0, 19, 0)
"""Since when the engine refuses more sequences than the pool has blocks, where each sequence needs
one for its state and CUDA graphs are captured (vllm-project/vllm#38270)."""


class Margin(Frozen):
    """How much is left before a failure mode. If it is negative, the start fails."""

    mode: Mode
    left: Span = Field(description="bytes")


class Memory(Frozen):
    """The memory of the fullest rank, in bytes."""

    resolved: Resolved
    total: Span = Field(description="of the card, as the engine sees it")
    requested: Span = Field(description="total x utilisation")
    weights: Weights
    overhead: Overhead
    available: Span = Field(description="for the KV cache; negative where nothing is left")
    kv: KvLayout | Unknown
    tokens: Span | Unknown = Field(description="that the KV cache holds, as the engine prints it")
    concurrency: float | Unknown = Field(description="requests of full length at once, likely")
    longest: Span | Unknown = Field(description="largest max_model_len, in tokens")
    margins: tuple[Margin, ...] = Field(description="in the order in which a start meets them")

    def margin(self, mode: Mode) -> Span | None:
        """What is left before one failure mode; None if it cannot occur."""
        return next((m.left for m in self.margins if m.mode == mode), None)


def memory(
    architecture: Architecture,
    resolved: Resolved,
    cards: tuple[Card, ...],
    load: Weights | None = None,
) -> Memory | Unknown:
    """The memory of one start.

    + cards: the GPUs it runs on; the one with least memory decides
    """
    if not cards:
        return Unknown(unknown="no GPU was given")
    held = load or weights(architecture, resolved.settings)
    return held if isinstance(held, Unknown) else _memory(architecture, resolved, cards, held)


def with_sequences(
    architecture: Architecture, found: Memory, cards: tuple[Card, ...], seqs: int
) -> Memory:
    """The memory of the same start with another max_num_seqs."""
    resolved = found.resolved.model_copy(update={"max_num_seqs": seqs})
    return _memory(architecture, resolved, cards, found.weights)


def _memory(
    architecture: Architecture, resolved: Resolved, cards: tuple[Card, ...], held: Weights
) -> Memory:
    total = min((card.total for card in cards), key=lambda span: span.likely)
    over = overhead(architecture, resolved, cards)
    # Rounded up as the engine does (vLLM 0.32.0 v1/worker/utils.py:724).
    requested = total.each(lambda end: math.ceil(end * resolved.utilisation))
    layout = kv_layout(
        architecture, resolved.settings, resolved.engine, resolved.max_num_batched_tokens
    )
    available = requested - held.per_rank - over.charged - _rank_spread(resolved, cards)
    if resolved.settings.kv_cache_memory:
        available = exactly(resolved.settings.kv_cache_memory)
    length = resolved.max_model_len
    concurrency: float | Unknown
    if isinstance(layout, Unknown):
        concurrency = layout
    elif isinstance(length, Unknown):
        concurrency = length
    else:
        concurrency = round(layout.concurrency(max(0, available.likely), length), 2)
    free = min((_free_at_start(card, over) for card in cards), key=lambda span: span.likely)
    return Memory(
        resolved=resolved,
        total=total,
        requested=requested,
        weights=held,
        overhead=over,
        available=available,
        kv=layout,
        tokens=_tokens(layout, available, length),
        concurrency=concurrency,
        longest=_longest(layout, available, architecture.context, length),
        margins=_margins(resolved, layout, free, requested, held, over, available),
    )


def _margins(
    resolved: Resolved,
    layout: KvLayout | Unknown,
    free: Span,
    requested: Span,
    held: Weights,
    over: Overhead,
    available: Span,
) -> tuple[Margin, ...]:
    """All that can be computed."""
    given = resolved.settings.kv_cache_memory is not None
    loaded = free - held.per_rank - over.not_torch
    by_sampler = over.sampler.likely > over.forward.likely
    found: list[Margin] = []
    if not given:
        found.append(Margin(mode="free", left=free - requested))
    found.append(Margin(mode="weights", left=free - held.per_rank))
    found.append(
        Margin(mode="sampler-profile" if by_sampler else "profile", left=loaded - over.activation)
    )
    if not given:
        found.append(Margin(mode="blocks", left=available - exactly(1)))
    length = resolved.max_model_len
    if not isinstance(layout, Unknown) and not isinstance(length, Unknown):
        needed = layout.needed(length) + (layout.block_bytes if layout.null_block else 0)
        found.append(Margin(mode="context", left=available - exactly(needed)))
    if not isinstance(layout, Unknown) and _needs_states(layout, resolved):
        states = resolved.max_num_seqs * layout.block_bytes
        found.append(Margin(mode="states", left=available - exactly(states)))
    if given:
        left = loaded - available - over.graphs
    else:
        # The cache takes the rest of the budget. Free are the share outside the budget, and what
        # the budget was charged with and no longer holds.
        left = free - requested + over.activation + over.estimate - over.graphs
    found.append(Margin(mode="graphs", left=left))
    found.append(Margin(mode="warmup", left=left - over.warmup - over.reserve))
    return tuple(found)


def _needs_states(layout: KvLayout, resolved: Resolved) -> bool:
    """Whether every sequence must have a block of the pool for itself."""
    linear = any(group.kind == "linear" for group in layout.groups)
    return linear and resolved.version >= STATES_SINCE and not resolved.settings.enforce_eager


def _rank_spread(resolved: Resolved, cards: tuple[Card, ...]) -> Span:
    """What the fullest rank has less than the nominal one."""
    if len(cards) == 1 or resolved.settings.gpus == 1:
        return NOTHING
    return (c.RANK_SPREAD_HOSTS if cards[0].unified else c.RANK_SPREAD).times(GIB)


def _free_at_start(card: Card, over: Overhead) -> Span:
    """What the engine finds free: all of an idle card less context and NCCL."""
    free = card.total
    if isinstance(card.free, int):
        unseen = card.nvml_total - card.total.likely if isinstance(card.nvml_total, int) else 0
        known = min(card.total.likely, max(0, card.free - max(0, unseen)))
        # NVML counts a reserve as used that the engine's total leaves out as well.
        free = Span(low=known, likely=known, high=min(card.total.high, max(known, card.free)))
    return free - over.used_before


def _tokens(layout: KvLayout | Unknown, available: Span, length: int | Unknown) -> Span | Unknown:
    if isinstance(layout, Unknown):
        return layout
    if isinstance(length, Unknown):
        if not layout.is_uniform:
            return length
        length = 1
    return available.each(lambda end: layout.tokens(max(0, end), length))


def _longest(
    layout: KvLayout | Unknown,
    available: Span,
    context: int | Unknown,
    length: int | Unknown,
) -> Span | Unknown:
    if isinstance(layout, Unknown):
        return layout
    limit = context if not isinstance(context, Unknown) else length
    if isinstance(limit, Unknown):
        return limit
    return available.each(lambda end: layout.longest(max(0, end), limit))
