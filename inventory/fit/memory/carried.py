"""Numbers that an engine printed on this box, brought into the prediction."""

from __future__ import annotations

import math

from inventory.base import Unknown
from inventory.common.units import from_gib
from inventory.fit.memory.kv import KvLayout
from inventory.fit.memory.measured import Measured
from inventory.fit.memory.overhead import Overhead, overhead
from inventory.fit.memory.span import Span, exactly
from inventory.fit.memory.weights import Weights, weights
from inventory.fit.model.architecture import Architecture
from inventory.fit.start.card import Card
from inventory.fit.start.resolve import Resolved, resolve
from inventory.fit.start.start import Start

_PRINTED = from_gib(0.005)
"""The engine prints GiB with two decimals."""


def requested_bytes(total: Span, resolved: Resolved) -> Span:
    """The budget: the share of the card that utilisation allows, rounded up as the engine does
    (vLLM 0.32.0 v1/worker/utils.py:724)."""
    return Span(
        low=math.ceil(total.low * resolved.utilisation),
        likely=math.ceil(total.likely * resolved.utilisation),
        high=math.ceil(total.high * resolved.utilisation),
    )


def loaded_weights(
    architecture: Architecture, resolved: Resolved, known: Measured
) -> Weights | Unknown:
    """The weights as measured, where that was the same split; else as computed."""
    if known.weights is None:
        return weights(architecture, resolved.start)
    if known.start is not None and _shape(known.start) != _shape(resolved.start):
        return weights(architecture, resolved.start)
    return Weights(per_rank=exactly(known.weights), source="measured")


def _shape(start: Start) -> tuple[object, ...]:
    return (start.tp, start.pp, start.ep, start.dp, start.dtype, start.quantization, start.draft)


def measured_overhead(
    architecture: Architecture, resolved: Resolved, cards: tuple[Card, ...], known: Measured
) -> Overhead:
    """The predicted overhead with the printed parts in their place."""
    over = overhead(architecture, resolved, cards)
    replaced = {
        name: exactly(value)
        for name, value in (
            ("activation", known.activation),
            ("not_torch", known.not_torch),
            ("estimate", known.estimate),
            ("graphs", known.graphs),
        )
        if value is not None
    }
    if known.start is not None and "activation" in replaced:
        then = overhead(architecture, resolve(architecture, known.start, cards), cards)
        change = over.activation.likely - then.activation.likely
        amount = max(0, replaced["activation"].likely + change)
        replaced["activation"] = exactly(amount)
    return over.model_copy(update=replaced) if replaced else over


def carried(
    architecture: Architecture,
    resolved: Resolved,
    cards: tuple[Card, ...],
    known: Measured,
    total: Span,
    load: Weights,
    over: Overhead,
    layout: KvLayout | Unknown,
) -> Span:
    """The printed KV memory, carried over from the start that printed it to this one."""
    assert known.available_kv is not None  # noqa: S101
    printed = _refined(known, layout, resolved)
    if known.start is None:
        return exactly(printed)
    then = resolve(architecture, known.start, cards)
    before = weights(architecture, then.start)
    if isinstance(before, Unknown):
        return exactly(printed)
    moved = requested_bytes(total, resolved).likely - requested_bytes(total, then).likely
    then_over = overhead(architecture, then, cards)
    moved -= over.charged.likely - then_over.charged.likely
    if _shape(then.start) != _shape(resolved.start):
        moved -= load.per_rank.likely - before.per_rank.likely
    doubt = abs(over.charged.likely - then_over.charged.likely) // 4
    amount = printed + moved
    return Span(low=amount - doubt, likely=amount, high=amount + doubt)


def _refined(known: Measured, layout: KvLayout | Unknown, resolved: Resolved) -> int:
    """The printed memory to the byte, where the printed tokens tell it: they count whole blocks."""
    assert known.available_kv is not None  # noqa: S101
    if known.kv_tokens is None or isinstance(layout, Unknown) or not layout.is_uniform:
        return known.available_kv
    block = layout.groups[0].block_tokens * layout.dcp
    exact = known.kv_tokens // block * layout.block_bytes
    near = -_PRINTED - layout.block_bytes <= exact - known.available_kv <= _PRINTED
    return exact if near and resolved.start.kv_cache_memory is None else known.available_kv
