"""The history as plain text."""

from collections.abc import Callable, Sequence

from facts.history.comparison import BoxHistory, Comparison, Figure, History
from facts.history.measured import Measured
from facts.history.words import duration, moment, times
from inventory.common.throughput import SINGLE, Measurement
from inventory.common.units import gibibytes

LEFT_HEAD = ("ready (UTC)", "host", "service", "commit", "engine")
RIGHT_HEAD = ("GPUs", "start", "GB/s", "KV tokens", "downtime", "tok/s one", "tok/s many")
NONE = "-"
"""Not measured."""
GB = 1e9
LEAST_SECONDS = 0.05
"""A part that is shorter in both would be printed as nothing."""


def render(found: History) -> str:
    """A table of starts, and for each box its newest start against earlier ones.

    + returns: lines, with a line break at the end
    """
    rows = [_row(box.host, start) for box in found.boxes for start in box.starts]
    lines = columns([(*LEFT_HEAD, *RIGHT_HEAD), *rows], frozenset(RIGHT_HEAD)) if rows else []
    for box in found.boxes:
        lines += _notes(box)
        for comparison in box.comparisons:
            lines += ["", *_compared(box.host, comparison)]
    return "\n".join(lines) + "\n"


def columns(rows: Sequence[Sequence[str]], right: frozenset[str]) -> list[str]:
    """Rows in aligned columns.

    + rows: the first one is the head
    + right: heads of columns that are aligned to the right
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [">" if head in right else "<" for head in rows[0]]
    return [
        "  ".join(
            f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def _row(host: str, start: Measured) -> tuple[str, ...]:
    rate = start.bytes_per_s
    return (
        moment(start.ready),
        host,
        start.service,
        start.commit[:12] or NONE,
        start.engine or NONE,
        str(start.gpus) if start.gpus else "CPU",
        _seconds(start.total),
        NONE if rate is None else f"{rate / GB:.2f}",
        NONE if start.kv_cache_tokens is None else f"{start.kv_cache_tokens:,}",
        _seconds(start.downtime_s),
        *_rates(start.throughput),
    )


def _seconds(seconds: float | None) -> str:
    return NONE if seconds is None else duration(seconds)


def _rates(found: Measurement | None) -> tuple[str, str]:
    """Of one user, and of those several users who together got the most."""
    rates = {} if found is None else found.rates
    one = rates.pop(SINGLE, None)
    many = max(rates, key=lambda users: rates[users], default=None)
    return (
        NONE if one is None else f"{one:,.0f}",
        NONE if many is None else f"{rates[many]:,.0f} at {many}",
    )


def _notes(box: BoxHistory) -> list[str]:
    if not box.starts and not box.problems:
        return [f"{box.host}: no start was recorded"]
    return [f"{box.host}: {problem}" for problem in box.problems]


def _compared(host: str, comparison: Comparison) -> list[str]:
    this, that = comparison.this, comparison.that
    heads = (f"{this.service}, {moment(this.ready)}", f"{that.service}, {moment(that.ready)}")
    parts = [
        (part.name, duration(part.this), duration(part.that), f"{part.difference:+.1f} s")
        for part in comparison.parts
        if max(abs(part.this), abs(part.that)) >= LEAST_SECONDS
    ]
    rows = [("seconds of the start", "this", "that", "difference"), *parts]
    if this.total is not None and that.total is not None:
        rows.append(
            ("sum", duration(this.total), duration(that.total), f"{this.total - that.total:+.1f} s")
        )
    figures = [_figure(figure) for figure in comparison.figures if figure.name != "load"]
    aside = frozenset({"this", "that", "difference", "ratio"})
    lines = [f"{host}: {heads[0]}, against {heads[1]}:", f"  {comparison.sentence}"]
    if parts:
        lines += [f"    {line}" for line in columns(rows, aside)]
    if figures:
        table = columns([("other figures", "this", "that", "ratio"), *figures], aside)
        lines += [f"    {line}" for line in table]
    return lines


def _figure(figure: Figure) -> tuple[str, str, str, str]:
    ratio = NONE if figure.ratio is None else times(figure.ratio)
    return figure.name, _amount(figure, figure.this), _amount(figure, figure.that), ratio


def _amount(figure: Figure, value: float) -> str:
    show = _SHOWN.get(figure.unit)
    return f"{value:,.2f} {figure.unit}".rstrip() if show is None else show(value)


_SHOWN: dict[str, Callable[[float], str]] = {
    "s": duration,
    "bytes": lambda value: gibibytes(int(value)),
    "bytes/s": lambda value: f"{value / GB:.2f} GB/s",
    "tokens": lambda value: f"{value:,.0f} tokens",
    "tok/s": lambda value: f"{value:,.1f} tok/s",
}
"""Units that are not shown as they stand."""
