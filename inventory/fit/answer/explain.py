"""The answer in words and numbers. The same data as JSON is ``Fit.to_json()``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inventory.base import Unknown
from inventory.common.units import gib
from inventory.fit.answer.derive import Derived
from inventory.fit.answer.verdict import Verdict
from inventory.fit.memory.kv import KvLayout
from inventory.fit.memory.memory import Memory, Mode
from inventory.fit.memory.span import Span
from inventory.fit.model.architecture import Architecture
from inventory.fit.settings.card import Card
from inventory.fit.settings.resolve import Resolved
from inventory.fit.settings.settings import shown

if TYPE_CHECKING:
    from inventory.fit.fit import Fit

_MODES: dict[Mode, str] = {
    "free": "free at the start",
    "weights": "weights",
    "profile": "profile run",
    "sampler-profile": "profile run (the sampler decides)",
    "blocks": "KV cache",
    "context": "one full request",
    "states": "a state for each sequence",
    "graphs": "CUDA graphs",
    "warmup": "sampler warm-up",
}


def explanation(answer: Fit) -> str:
    """What was asked, what was found, what follows."""
    architecture, resolved, memory = answer.architecture, answer.resolved, answer.memory
    lines = [_head(architecture, resolved, answer.cards)]
    if answer.choice is not None:
        lines.append(f"parallel sizes: {answer.choice.reason}")
    if resolved.filled:
        lines.append(f"engine defaults: {', '.join(resolved.filled)}")
    lines += [""]
    lines += _memory_lines(memory) if isinstance(memory, Memory) else [f"memory: {memory.unknown}"]
    lines += ["", *_verdict_lines(answer.verdicts)]
    lines += ["", *_derived_lines(answer.derived)]
    notes = [*architecture.notes, *(f"{name}: not known" for name in _missing(architecture))]
    if notes:
        lines += ["", "not known of the model: " + "; ".join(notes)]
    return "\n".join(lines)


def _head(architecture: Architecture, resolved: Resolved, cards: tuple[Card, ...]) -> str:
    name = architecture.name if isinstance(architecture.name, str) else "a model of unknown class"
    settings = resolved.settings
    sizes = f"TP{settings.tp}"
    sizes += f" PP{settings.pp}" if settings.pp > 1 else ""
    sizes += f" DP{settings.dp}" if settings.dp > 1 else ""
    sizes += " EP" if settings.ep else ""
    where = f"{len(cards)} x {cards[0].name}" if cards else "no GPUs"
    return f"{name} on {where}, {sizes}, vLLM {shown(resolved.engine)} ({resolved.runner} runner)"


def _memory_lines(memory: Memory) -> list[str]:
    over, load = memory.overhead, memory.weights
    rows = [
        ("card", f"{memory.total.shown()} as the engine sees it"),
        ("budget", f"{gib(memory.requested.likely)} at {memory.resolved.utilisation}"),
        ("- weights", f"{load.per_rank.shown()} from {load.source}"),
        ("- activation", f"{over.activation.shown()}"),
        ("- outside torch", over.not_torch.shown()),
        ("- graphs, estimated", over.estimate.shown()),
        ("= KV cache", memory.available.shown()),
    ]
    lines = [f"{label:<20} {text}" for label, text in rows]
    lines.append(f"{'regime':<20} {over.regime} ({over.measured_on})")
    if not over.within:
        lines += [f"{'outside of it':<20} {remark}" for remark in over.remarks]
    if load.remark:
        lines.append(f"{'weights':<20} {load.remark}")
    lines += _kv_lines(memory)
    lines.append("left before each failure:")
    lines += [f"  {_MODES[m.mode]:<32} {m.left.shown()}" for m in memory.margins]
    return lines


def _kv_lines(memory: Memory) -> list[str]:
    if isinstance(memory.kv, Unknown):
        return [f"{'KV layout':<20} not known: {memory.kv.unknown}"]
    lines = [f"{'KV layout':<20} {_layout(memory.kv)}"]
    if isinstance(memory.tokens, Span):
        tokens = memory.tokens
        lines.append(
            f"{'tokens':<20} {tokens.likely:,} ({tokens.low:,} to {tokens.high:,}), "
            f"{memory.concurrency}x at full length"
        )
    if isinstance(memory.longest, Span):
        lines.append(f"{'longest request':<20} {memory.longest.likely:,} tokens")
    return lines


def _layout(layout: KvLayout) -> str:
    if layout.is_uniform:
        return f"{layout.bytes_per_token:,} bytes a token and rank"
    kinds = ", ".join(
        f"{sum(g.kind == kind for g in layout.groups)} of {kind} layers"
        for kind in dict.fromkeys(group.kind for group in layout.groups)
    )
    return f"{len(layout.groups)} groups ({kinds}), {gib(layout.block_bytes)} a block"


def _verdict_lines(verdicts: tuple[Verdict, ...]) -> list[str]:
    if not verdicts:
        return ["nothing speaks against it"]
    return [
        f"{'REFUSED' if verdict.certain else 'likely to fail' if verdict.fails else 'note'} "
        f"{verdict.text}"
        for verdict in verdicts
    ]


def _derived_lines(derived: Derived) -> list[str]:
    lines: list[str] = []
    if isinstance(derived.max_num_seqs, int):
        lines.append(
            f"max_num_seqs {derived.max_num_seqs} works even at the worst end"
            + (f", {derived.most_seqs} probably" if isinstance(derived.most_seqs, int) else "")
        )
    if not isinstance(derived.load, Unknown):
        load = derived.load
        lines.append(
            f"ready after {load.likely} s ({load.fastest} to {load.slowest}), given "
            f"{load.given} s; wait {load.patience} s; "
            f"StartLimitIntervalSec={load.start_limit_interval} "
            f"StartLimitBurst={load.start_limit_burst} TimeoutStopSec={load.stop}"
        )
    return lines


def _missing(architecture: Architecture) -> tuple[str, ...]:
    return tuple(name for name in architecture.unknown_fields if name != "model_type")
