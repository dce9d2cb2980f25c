"""Throughput as a record holds it: a ladder of loads, from a single stream upwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inventory.base import Frozen

MOST = 1e12
"""No measure: such a figure is damaged."""
ONE = 1


class Rung(Frozen):
    """Output tokens a second of all users together."""

    users: int
    tokens_per_s: float


class Ladder(Frozen):
    """One measurement, whose rungs hold as many users at a time.

    + load: what each request asked for, e.g. its tokens; only the same load is comparable
    """

    rungs: tuple[Rung, ...] = ()
    load: str = ""

    @property
    def one(self) -> Rung | None:
        """A single stream."""
        return self.at(ONE)

    @property
    def most(self) -> Rung | None:
        """The rung of several users that gave the most."""
        several = [rung for rung in self.rungs if rung.users > ONE]
        return max(several, key=lambda rung: rung.tokens_per_s, default=None)

    def at(self, users: int) -> Rung | None:
        """The rung of so many users."""
        return next((rung for rung in self.rungs if rung.users == users), None)

    def shared(self, other: Ladder) -> tuple[tuple[Rung, Rung], ...]:
        """The single stream and the highest further rung that both have under the same load."""
        if self.load != other.load:
            return ()
        both = sorted({rung.users for rung in self.rungs} & {rung.users for rung in other.rungs})
        pairs = [(self.at(users), other.at(users)) for users in dict.fromkeys(both[:1] + both[-1:])]
        return tuple((a, b) for a, b in pairs if a is not None and b is not None)


def ladder(throughput: Mapping[str, Any] | None) -> Ladder:
    """The rungs that a record holds.

    + throughput: of a record (operations/remote/throughput); what is no such measurement has none
    """
    found = throughput or {}
    rungs = found.get("rungs")
    read = [_rung(rung) for rung in rungs] if isinstance(rungs, list) else []
    load = found.get("load")
    words = [f"{name} {load[name]}" for name in sorted(load)] if isinstance(load, Mapping) else []
    return Ladder(rungs=tuple(rung for rung in read if rung is not None), load=", ".join(words))


def _rung(rung: Any) -> Rung | None:
    if not isinstance(rung, Mapping):
        return None
    users, tokens = rung.get("concurrency"), rung.get("output_tokens_per_second")
    if not isinstance(users, int) or not isinstance(tokens, (int, float)):
        return None
    if not 0 < users < MOST or not 0 <= tokens < MOST:
        return None
    return Rung(users=users, tokens_per_s=tokens)
