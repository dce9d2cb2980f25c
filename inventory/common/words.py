"""Lists as people read them."""

from __future__ import annotations

from collections.abc import Sequence

MOST_NAMED = 3
"""Items that are named before they are only counted."""


def first_few(items: Sequence[str], mark: str = ", ", rest: str = " and {} more") -> str:
    """The first items, and how many more there are.

    + mark: between two items
    + rest: said of the others

    >>> first_few(["a", "b", "c"]), first_few(["a", "b", "c", "d", "e"])
    ('a, b, c', 'a, b, c and 2 more')
    """
    more = rest.format(len(items) - MOST_NAMED) if items[MOST_NAMED:] else ""
    return mark.join(items[:MOST_NAMED]) + more
