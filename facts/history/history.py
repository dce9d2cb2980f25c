"""Which starts to hold against each other: the newest of a box against what came before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from facts.history.comparison import Comparison, compare
from facts.history.measured import Measured, measure
from facts.reading.records import Record
from inventory.base import Frozen, Unknown


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


def history(found: Mapping[str, tuple[Record | Unknown, ...] | Unknown]) -> History:
    """The history of some boxes.

    + found: the fact's answer by host
    """
    return History(boxes=tuple(_box(host, records) for host, records in found.items()))


def _box(host: str, records: tuple[Record | Unknown, ...] | Unknown) -> BoxHistory:
    if isinstance(records, Unknown):
        return BoxHistory(host=host, problems=(records.unknown,))
    read = sorted(
        (one for one in records if isinstance(one, Record)), key=lambda one: one.ready, reverse=True
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
