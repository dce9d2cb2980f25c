"""What the margins mean: which failure, how sure, and the flags that would resolve it."""

from typing import NamedTuple

from inventory.base import Unknown
from inventory.common.units import GIB, gib
from inventory.fit.answer.verdict import Verdict, prediction
from inventory.fit.legality.shapes import legal_sizes
from inventory.fit.memory.memory import Margin, Memory, Mode, with_sequences
from inventory.fit.memory.span import Span
from inventory.fit.model.architecture import Architecture
from inventory.fit.settings.card import Card

_ENDS: dict[Mode, tuple[str, str]] = {
    "free": (
        "free-memory",
        "the engine refuses: 'Free memory on device … is less than desired'",
    ),
    "weights": ("weights", "loading runs out of memory"),
    "profile": ("profile", "the profile run runs out of memory"),
    "sampler-profile": (
        "sampler",
        "the profile run ends with 'out of memory … warming up sampler'",
    ),
    "blocks": ("no-kv", "the engine refuses: 'No available memory for the cache blocks'"),
    "context": (
        "kv-context",
        "the engine refuses: 'To serve at least one request with the model's max seq len'",
    ),
    "states": (
        "state-blocks",
        "the engine refuses: 'max_num_seqs … exceeds available Mamba cache blocks'",
    ),
    "graphs": ("graphs", "capturing CUDA graphs runs out of memory"),
    "warmup": ("sampler", "the sampler's warm-up runs out of memory, after minutes of loading"),
}
"""Failure mode -> stable name of the rule, and how the start ends."""

TIGHT = GIB
"""A margin whose lower end is below this is called tight: starts of the same flags were seen 0.1
(run to run) to 1 GiB (cold against warm compile cache, 6g-cold) apart (NOTES.md section 2)."""

FEWER_SEQUENCES = (512, 256, 128, 64, 32, 16)


class _Start(NamedTuple):
    """A start whose memory is known."""

    architecture: Architecture
    found: Memory
    cards: tuple[Card, ...]


def memory_verdicts(
    architecture: Architecture, found: Memory, cards: tuple[Card, ...]
) -> tuple[Verdict, ...]:
    """The failures, in the order of a start. What follows a likely one does not matter."""
    start = _Start(architecture, found, cards)
    verdicts: list[Verdict] = []
    for margin in found.margins:
        if margin.left.low >= (TIGHT if margin.mode == "warmup" else 0):
            continue
        verdicts.append(_verdict(start, margin))
        if margin.left.likely < 0:
            if margin.mode in {"blocks", "context"}:
                verdicts += _by_sampler(start)
            break
    return tuple(verdicts)


def _verdict(start: _Start, margin: Margin) -> Verdict:
    choices = _choices(start, margin.mode)
    return Verdict(
        rule=_ENDS[margin.mode][0],
        certain=margin.left.high < 0,
        fails=margin.left.likely < 0,
        wanted=_wanted(start.found, margin.mode),
        found=_found(start.found, start.cards, margin),
        why=_why(margin),
        next_step=f"set {', or '.join(choices)}" if choices else "use more or larger GPUs",
        choices=choices,
    )


def _wanted(found: Memory, mode: Mode) -> str:
    resolved = found.resolved
    if mode in {"warmup", "sampler-profile", "states"}:
        return f"max_num_seqs {resolved.max_num_seqs}"
    if mode == "context":
        length = resolved.max_model_len
        return f"one request of {length:,} tokens" if isinstance(length, int) else "one request"
    return f"gpu_memory_utilization {resolved.utilisation} of {gib(found.total.likely)}"


def _found(found: Memory, cards: tuple[Card, ...], margin: Margin) -> str:
    over, held, total = found.overhead, found.weights.per_rank, gib(found.total.likely)
    mode = margin.mode
    if mode == "free":
        holders = _holders(cards)
        who = f"; {'; '.join(holders)}" if holders else ""
        free = found.requested.likely + margin.left.likely
        return f"{gib(found.requested.likely)} wanted, {gib(free)} free at the start{who}"
    if mode == "weights":
        return f"weights of {held.shown()} a GPU, {total} of memory"
    if mode in {"profile", "sampler-profile"}:
        part = "the sampler's" if mode == "sampler-profile" else "a forward pass's"
        return (
            f"weights {gib(held.likely)} + {part} peak {over.activation.shown()} + "
            f"{gib(over.not_torch.likely)} outside torch, {_left(margin.left)} of {total}"
        )
    if mode == "blocks":
        return (
            f"{gib(found.requested.likely)} - weights {gib(held.likely)} - activation "
            f"{gib(over.activation.likely)} - {gib(over.not_torch.likely)} outside torch - graphs "
            f"{gib(over.estimate.likely)} = {found.available.shown()} for the KV cache"
        )
    if mode in {"states", "graphs", "warmup"}:
        return _found_late(found, margin)
    needed = found.available.likely - margin.left.likely
    return f"{gib(needed)} needed, {found.available.shown()} available"


def _holders(cards: tuple[Card, ...]) -> list[str]:
    return list(dict.fromkeys(holder for card in cards for holder in card.holders))


def _found_late(found: Memory, margin: Margin) -> str:
    over, seqs = found.overhead, found.resolved.max_num_seqs
    if margin.mode == "graphs":
        return f"CUDA graphs of {over.graphs.shown()}, {_left(margin.left)} after them"
    if margin.mode == "warmup":
        return (
            f"the warm-up of {seqs} sequences takes {over.warmup.shown()}, "
            f"{_left(margin.left)} after it"
        )
    if isinstance(found.kv, Unknown):
        return found.kv.unknown
    blocks = [found.kv.blocks(max(0, end)) for end in (found.available.low, found.available.high)]
    return (
        f"{seqs} sequences need a state each, and the pool has "
        f"{found.kv.blocks(max(0, found.available.likely))} blocks ({blocks[0]} to {blocks[1]})"
    )


def _left(left: Span) -> str:
    if left.likely < 0:
        return f"{gib(-left.likely)} too much"
    return f"{left.shown()} left"


def _why(margin: Margin) -> str:
    ends = _ENDS[margin.mode][1]
    if margin.left.high < 0:
        return ends
    if margin.left.likely < 0:
        return f"probably {ends}"
    if margin.left.low < 0:
        return f"tight: at the worst end of the range {ends}"
    return "tight but possible: starts with the same flags differ by up to 1 GiB"


def _by_sampler(start: _Start) -> tuple[Verdict, ...]:
    """The sampler's peak is the cause if fewer sequences alone resolve it."""
    seqs, asked = _enough_with(start), start.found.resolved.max_num_seqs
    if seqs is None:
        return ()
    peak = start.found.overhead.sampler.shown()
    return (
        prediction(
            "sampler",
            f"max_num_seqs {asked}",
            f"the sampler's warm-up of {asked} sequences takes {peak} of the budget",
            "with fewer sequences the same start works",
            f"set --max-num-seqs {seqs}",
            f"--max-num-seqs {seqs}",
        ),
    )


def _enough_with(start: _Start) -> int | None:
    """The most sequences with which the start probably works; None if every number fails."""
    for seqs in FEWER_SEQUENCES:
        if seqs < start.found.resolved.max_num_seqs:
            other = with_sequences(start.architecture, start.found, start.cards, seqs)
            if all(margin.left.likely >= 0 for margin in other.margins):
                return seqs
    return None


def _choices(start: _Start, mode: Mode) -> tuple[str, ...]:
    """Flags that resolve it, each by itself."""
    architecture, found, cards = start
    settings = found.resolved.settings
    choices: list[str] = []
    if mode == "free":
        share = found.margin("free")
        free = found.requested.low + (share.low if share else 0)
        fits = int(100 * free / found.total.likely) / 100
        choices += [f"stop {holder.split(' holds ')[0]} first" for holder in _holders(cards)]
        choices += [f"--gpu-memory-utilization {fits:.2f}"] if fits > 0 else []
        return tuple(choices)
    if mode in {"sampler-profile", "warmup", "blocks", "context", "states", "graphs"}:
        seqs = _enough_with(start)
        choices += [f"--max-num-seqs {seqs}"] if seqs is not None else []
    if mode == "context":
        shorter = _shorter(found)
        choices += [f"--max-model-len {shorter}"] if shorter else []
        if settings.kv_cache_dtype == "auto":
            choices.append("--kv-cache-dtype fp8")
        if architecture.mla is not None and settings.dcp == 1 and settings.tp > 1:
            choices.append(f"--decode-context-parallel-size {settings.tp}")
    if mode in {"graphs", "warmup"} and found.resolved.utilisation > 0.5:  # noqa: PLR2004
        choices.append(f"--gpu-memory-utilization {found.resolved.utilisation - 0.05:.2f}")
    if mode == "graphs":
        choices.append("--compilation-config.cudagraph_mode=PIECEWISE")
    if mode in {"weights", "profile", "sampler-profile", "blocks", "context"}:
        legal = legal_sizes(architecture, settings, found.resolved.engine)
        larger = [tp for tp in legal if tp > settings.tp]
        choices += [f"TP={min(larger)}"] if larger else []
    return tuple(choices)


def _shorter(found: Memory) -> int:
    """A length that fits: the likely one, or the certain one if the asked length is only tight."""
    wished = found.resolved.max_model_len
    if not isinstance(found.longest, Span) or isinstance(wished, Unknown):
        return 0
    likely, low = found.longest.likely, found.longest.low
    return likely if likely < wished else low if low < wished else 0
