"""Bytes, shown as people and engines write them."""

from __future__ import annotations


def gibibytes(count: int) -> str:
    """Bytes in GiB, or in MiB below one GiB.

    >>> gibibytes(230_121_000_000), gibibytes(5_000_000)
    ('214.3 GiB', '4.8 MiB')
    """
    if count < 1 << 30:
        return f"{count / (1 << 20):.1f} MiB"
    return f"{count / (1 << 30):.1f} GiB"
