"""Two starts compared: parts that add up, the read as a product, and one sentence. And which two:
the newest start of a box against what came before it."""

from collections.abc import Iterable, Mapping
from math import inf, isfinite

from facts.history.measured import Measured, measure
from facts.history.parts import Read, StartPart, parts_of, read_of
from facts.history.words import sentence
from inventory.base import Frozen, Unknown
from inventory.common.record import StartRecord
from inventory.common.throughput import SINGLE, Measurement


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
    parts: tuple[StartPart, ...]
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
    parts, read = parts_of(this, that), read_of(this, that)
    return Comparison(
        this=this,
        that=that,
        parts=parts,
        read=read,
        figures=_figures(this, that),
        sentence=sentence(this, that, parts, read),
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
    for users, here, there in _shared(this.throughput, that.throughput):
        rows.append(("one user" if users == SINGLE else f"{users} users", "tok/s", here, there))
    return tuple(
        Figure(name=name, unit=unit, this=a, that=b, ratio=_ratio(a, b))
        for name, unit, a, b in rows
        if a is not None and b is not None
    )


def _shared(
    this: Measurement | None, that: Measurement | None
) -> Iterable[tuple[int, float, float]]:
    """Users and both rates, at the single stream and at the highest rung that both have under the
    same load."""
    if this is None or that is None or this.load != that.load:
        return
    both = sorted(this.rates.keys() & that.rates.keys())
    for users in dict.fromkeys(both[:1] + both[-1:]):
        yield users, this.rates[users], that.rates[users]


def _ratio(a: float, b: float) -> float | None:
    ratio = a / b if b else inf
    return ratio if isfinite(ratio) else None


class BoxHistory(Frozen):
    """What one box recorded.

    + starts: newest first
    + comparisons: the newest start with the one before it of the same service, then with the last
      one of each other service
    + problems: what could not be read, and why
    """

    host: str
    starts: tuple[Measured, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    problems: tuple[str, ...] = ()


class History(Frozen):
    """What the boxes recorded, in the order of the inventory."""

    boxes: tuple[BoxHistory, ...]


def history(found: Mapping[str, tuple[StartRecord | Unknown, ...] | Unknown]) -> History:
    """The history of some boxes.

    + found: the fact's answer by host
    """
    return History(boxes=tuple(_box(host, records) for host, records in found.items()))


def _box(host: str, records: tuple[StartRecord | Unknown, ...] | Unknown) -> BoxHistory:
    if isinstance(records, Unknown):
        return BoxHistory(host=host, problems=(records.unknown,))
    read = sorted(
        (one for one in records if isinstance(one, StartRecord)),
        key=lambda one: one.ready,
        reverse=True,
    )
    starts = tuple(measure(one) for one in read)
    return BoxHistory(
        host=host,
        starts=starts,
        comparisons=tuple(compare(starts[0], other) for other in _others(starts)),
        problems=tuple(one.unknown for one in records if isinstance(one, Unknown)),
    )


def _others(starts: tuple[Measured, ...]) -> Iterable[Measured]:
    """What the newest start is held against."""
    last: dict[str, Measured] = {}
    for start in starts[1:]:
        last.setdefault(start.unit, start)
    # The same service first, where it has an earlier start.
    return sorted(last.values(), key=lambda start: start.unit != starts[0].unit)
