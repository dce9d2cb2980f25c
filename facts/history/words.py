"""Figures in the words of people, and two starts in one sentence."""

from datetime import UTC, datetime

from facts.history.measured import Measured
from facts.history.parts import READING, UNMEASURED, Read, StartPart

SMALL_SECONDS, SMALL_SHARE = 0.5, 0.02
"""A part whose difference is below both, the share being that of the longer start, is not worth
its own words."""

MINUTE = 60.0
IN_SECONDS = 100.0
"""Below this many seconds, no minutes."""
SAME = 0.005
"""Two figures whose ratio is nearer to one than this are called the same."""


def duration(seconds: float) -> str:
    """Seconds, or minutes and seconds.

    >>> duration(75.24), duration(785.0), duration(-0.31)
    ('75.2 s', '13 min 5 s', '-0.3 s')
    """
    if abs(seconds) < IN_SECONDS:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(abs(seconds)), int(MINUTE))
    return f"{'-' if seconds < 0 else ''}{minutes} min {rest} s"


def against(this: float, that: float) -> str:
    """Two durations.

    >>> against(64.2, 206.0)
    '64.2 s against 3 min 26 s'
    """
    return f"{duration(this)} against {duration(that)}"


def fewer(ratio: float) -> str:
    """How many times fewer bytes.

    >>> fewer(2.347), fewer(0.5), fewer(1.001)
    ('2.3x fewer bytes', '2.0x more bytes', 'as many bytes')
    """
    return _compared(ratio, "as many", "fewer", "more") + " bytes"


def quicker(ratio: float) -> str:
    """How many times as fast a read.

    >>> quicker(1.4), quicker(0.8), quicker(1.0)
    ('1.4x faster read', '1.2x slower read', 'as fast a read')
    """
    return _compared(ratio, "as fast a", "faster", "slower") + " read"


def _compared(ratio: float, same: str, above: str, below: str) -> str:
    if abs(ratio - 1) < SAME:
        return same
    return f"{times(ratio)} {above}" if ratio > 1 else f"{times(1 / ratio)} {below}"


def times(ratio: float) -> str:
    """A factor; two decimals near one, so that it is not called 1.0.

    >>> times(2.347), times(1.026), times(31.2)
    ('2.3x', '1.03x', '31x')
    """
    if ratio < 1.1:  # noqa: PLR2004
        return f"{ratio:.2f}x"
    return f"{ratio:.1f}x" if ratio < 10 else f"{ratio:,.0f}x"  # noqa: PLR2004


def moment(seconds: float) -> str:
    """Seconds since the epoch as date and minute, UTC.

    >>> moment(1795554412.0)
    '2026-11-24 21:06'
    """
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "?"


def sentence(
    this: Measured, that: Measured, parts: tuple[StartPart, ...], read: Read | None
) -> str:
    """The ratio of two start times in measured parts."""
    if this.total is None or that.total is None:
        return "the start was not clocked in both"
    small = max(SMALL_SECONDS, SMALL_SHARE * max(this.total, that.total))
    said: list[str] = []
    rest = [0.0, 0.0]
    by_size = sorted(parts, key=lambda part: -abs(part.difference))
    for part in sorted(by_size, key=lambda part: (part.name == UNMEASURED, part.name != READING)):
        if part.name == READING and read is not None:
            words = f"{fewer(read.bytes)}, {quicker(read.rate)}"
            said.append(f"{words} ({against(part.this, part.that)})")
        elif abs(part.difference) >= small:
            said.append(f"{part.name} {_sides(part, this, that)}")
        else:
            rest = [rest[0] + part.this, rest[1] + part.that]
    if any(abs(side) >= SMALL_SECONDS for side in rest):
        said.append(f"all else {against(*rest)}")
    return f"{duration(this.total)} against {duration(that.total)}: {', '.join(said) or 'equal'}"


def _sides(part: StartPart, this: Measured, that: Measured) -> str:
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
