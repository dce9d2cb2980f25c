"""Bytes and lists, shown as people and engines write them."""

from collections.abc import Sequence

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30

MOST_NAMED = 3
"""Items that are named before they are only counted."""


def ceil_div(a: int, b: int) -> int:
    """The quotient rounded up.

    >>> ceil_div(10, 4)
    3
    """
    return -(-a // b)


def round_up(value: int, multiple: int) -> int:
    """The next multiple that is not smaller.

    >>> round_up(2096, 16), round_up(2097, 16)
    (2096, 2112)
    """
    return ceil_div(value, multiple) * multiple


def gib(amount: float) -> str:
    """Bytes as GiB with two decimals, as the engine prints them.

    >>> gib(23 * GIB + GIB // 2)
    '23.50 GiB'
    """
    return f"{amount / GIB:,.2f} GiB"


def from_gib(amount: float) -> int:
    """GiB as whole bytes.

    >>> from_gib(0.5)
    536870912
    """
    return round(amount * GIB)


def gibibytes(count: int) -> str:
    """Bytes in GiB, or in MiB below one GiB.

    >>> gibibytes(230_121_000_000), gibibytes(5_000_000)
    ('214.3 GiB', '4.8 MiB')
    """
    return f"{count / MIB:.1f} MiB" if count < GIB else f"{count / GIB:.1f} GiB"


def first_few(items: Sequence[str], mark: str = ", ", rest: str = " and {} more") -> str:
    """The first items, and how many more there are.

    + mark: between two items
    + rest: said of the others

    >>> first_few(["a", "b", "c"]), first_few(["a", "b", "c", "d", "e"])
    ('a, b, c', 'a, b, c and 2 more')
    """
    more = rest.format(len(items) - MOST_NAMED) if items[MOST_NAMED:] else ""
    return mark.join(items[:MOST_NAMED]) + more
