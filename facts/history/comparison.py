"""Two starts compared: parts that add up, the read as a product, and one sentence."""

from __future__ import annotations

from math import inf, isfinite

from facts.history.measured import Measured
from facts.history.parts import UNMEASURED, WEIGHTS, Part, parts_of
from facts.history.words import against, duration, fewer, quicker
from inventory.base import Frozen

SMALL_SECONDS, SMALL_SHARE = 0.5, 0.02
"""A part whose difference is below both, the share being that of the longer start, is not worth
its own words."""


class Read(Frozen):
    """Reading the weights: ``seconds = bytes * rate``, each the other start's by this one's.

    + bytes: how many times this start's bytes the other one reads
    + rate: how many times as fast this start reads
    + seconds: how many times as long the other one reads
    """

    bytes: float
    rate: float
    seconds: float


class Figure(Frozen):
    """A figure that both starts have.

    + ratio: this / that; None where that is zero, or next to it
    """

    name: str
    unit: str
    this: float
    that: float
    ratio: float | None


class Comparison(Frozen):
    """This start against that one."""

    this: Measured
    that: Measured
    parts: tuple[Part, ...]
    """Of the start, seconds; empty where one of the totals was not measured."""
    read: Read | None
    figures: tuple[Figure, ...]
    sentence: str
    """The ratio of the two start times in measured parts."""


def compare(this: Measured, that: Measured) -> Comparison:
    """Compare two starts in what was measured in both.

    + this: the start that is looked at
    + that: what it is held against
    """
    parts, read = parts_of(this, that), _read(this, that)
    return Comparison(
        this=this,
        that=that,
        parts=parts,
        read=read,
        figures=_figures(this, that),
        sentence=_sentence(this, that, parts, read),
    )


def _read(this: Measured, that: Measured) -> Read | None:
    if this.read is None or that.read is None:
        return None
    (size, seconds), (other_size, other_seconds) = this.read, that.read
    return Read(
        bytes=other_size / size,
        rate=(size / seconds) / (other_size / other_seconds),
        seconds=other_seconds / seconds,
    )


def _figures(this: Measured, that: Measured) -> tuple[Figure, ...]:
    rows: list[tuple[str, str, float | None, float | None]] = [
        ("downtime", "s", this.downtime_s, that.downtime_s),
        ("stop", "s", this.stop_s, that.stop_s),
        ("release", "s", this.release_s, that.release_s),
        ("load", "s", this.total, that.total),
        ("weights", "bytes", this.weights_bytes, that.weights_bytes),
        ("warmed page cache", "bytes", this.warmed_bytes, that.warmed_bytes),
        ("read rate", "bytes/s", this.bytes_per_s, that.bytes_per_s),
        ("model per rank", "GiB", this.model_gib_per_rank, that.model_gib_per_rank),
        ("KV cache", "GiB", this.kv_cache_gib, that.kv_cache_gib),
        ("KV cache", "tokens", this.kv_cache_tokens, that.kv_cache_tokens),
        ("requests of full length", "", this.max_concurrency, that.max_concurrency),
        ("graph memory", "GiB", this.cudagraph_gib, that.cudagraph_gib),
    ]
    for a, b in this.throughput.shared(that.throughput):
        name = "one user" if a.users == 1 else f"{a.users} users"
        rows.append((name, "tok/s", a.tokens_per_s, b.tokens_per_s))
    return tuple(
        Figure(name=name, unit=unit, this=a, that=b, ratio=_ratio(a, b))
        for name, unit, a, b in rows
        if a is not None and b is not None
    )


def _ratio(a: float, b: float) -> float | None:
    """Of two figures; None where it is none."""
    ratio = a / b if b else inf
    return ratio if isfinite(ratio) else None


def _sentence(this: Measured, that: Measured, parts: tuple[Part, ...], read: Read | None) -> str:
    if this.total is None or that.total is None:
        return "the start was not clocked in both"
    small = max(SMALL_SECONDS, SMALL_SHARE * max(this.total, that.total))
    said: list[str] = []
    rest = [0.0, 0.0]
    by_size = sorted(parts, key=lambda part: -abs(part.difference))
    for part in sorted(by_size, key=lambda part: (part.name == UNMEASURED, part.name != WEIGHTS)):
        if part.name == WEIGHTS and read is not None:
            words = f"{fewer(read.bytes)}, {quicker(read.rate)}"
            said.append(f"{words} ({against(part.this, part.that)})")
        elif abs(part.difference) >= small:
            said.append(f"{part.name} {_sides(part, this, that)}")
        else:
            rest = [rest[0] + part.this, rest[1] + part.that]
    if any(abs(side) >= SMALL_SECONDS for side in rest):
        said.append(f"all else {against(*rest)}")
    return f"{duration(this.total)} against {duration(that.total)}: {', '.join(said) or 'equal'}"


def _sides(part: Part, this: Measured, that: Measured) -> str:
    """Both sides' seconds, and for compilation whether there was any, cold or warm."""
    if part.name != "compile":
        return against(part.this, part.that)
    words = []
    for seconds, side in ((part.this, this), (part.that, that)):
        if side.compilation == "none":
            words.append("none")
        else:
            words.append(f"{duration(seconds)} {side.compilation or ''}".strip())
    return " against ".join(words)
