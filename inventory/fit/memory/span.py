"""An amount that is not known exactly: the least, the likely and the most."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self

from pydantic import Field, model_validator

from inventory.base import Frozen
from inventory.common.units import gib


class Span(Frozen):
    """An amount of bytes (or of tokens) with an honest range.

    The amount is not below ``low`` and not above ``high``. Outside the measured regimes the two
    are further apart.
    """

    low: int = Field(description="not less than this")
    likely: int = Field(description="the best guess")
    high: int = Field(description="not more than this")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low <= self.likely <= self.high:
            raise ValueError(f"not in order: {self.low}, {self.likely}, {self.high}")
        return self

    def __add__(self, other: Span) -> Span:
        return Span(
            low=self.low + other.low,
            likely=self.likely + other.likely,
            high=self.high + other.high,
        )

    def __sub__(self, other: Span) -> Span:
        return Span(
            low=self.low - other.high,
            likely=self.likely - other.likely,
            high=self.high - other.low,
        )

    def each(self, change: Callable[[int], int]) -> Span:
        """Every end changed in the same way.

        + change: gives more, or the same, for more
        """
        return Span(low=change(self.low), likely=change(self.likely), high=change(self.high))

    @property
    def is_exact(self) -> bool:
        """Whether the amount is certain."""
        return self.low == self.high

    def shown(self) -> str:
        """For people: the likely amount, and the range if it is uncertain."""
        if self.is_exact:
            return gib(self.likely)
        return f"{gib(self.likely)} ({self.low / 2**30:,.2f} to {self.high / 2**30:,.2f})"


class Guess(NamedTuple):
    """A number with the range in which it lies: a measured constant, or a computed amount."""

    low: float
    likely: float
    high: float

    @classmethod
    def exactly(cls, number: float) -> Guess:
        """A number without doubt."""
        return cls(number, number, number)

    def __mul__(self, by: float) -> Guess:  # type: ignore[override]
        """So many times each end."""
        return Guess(self.low * by, self.likely * by, self.high * by)

    def times(self, amount: float | Span) -> Span:
        """As an amount of bytes.

        + amount: bytes for each; GIB for a constant in GiB
        """
        ends = amount if isinstance(amount, Span) else Guess.exactly(amount)
        return Span(
            low=round(ends.low * self.low),
            likely=round(ends.likely * self.likely),
            high=round(ends.high * self.high),
        )


def exactly(amount: int) -> Span:
    """A known amount."""
    return Span(low=amount, likely=amount, high=amount)


def around(likely: int, less: int, more: int) -> Span:
    """A likely amount and how far it may be off, both ways."""
    return Span(low=likely - less, likely=likely, high=likely + more)


def most(a: Span, b: Span) -> Span:
    """The larger of two amounts, end by end."""
    return Span(low=max(a.low, b.low), likely=max(a.likely, b.likely), high=max(a.high, b.high))


NOTHING = Span(low=0, likely=0, high=0)
