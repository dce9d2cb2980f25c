"""Two starts laid side by side, part by part, so that the parts' differences add up.

A phase that prints nothing is missing in one start, and its time stands in the next phase. Such
phases are compared together: what two starts do not both show is never called a difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from facts.history.measured import Measured
from inventory.base import Frozen
from inventory.common import start_phases as stones
from inventory.common.start_phases import EAGER_SKIPS, PHASES

UNMEASURED = "not measured"
REST = "the rest"
READING, BESIDE = "weights", "the rest of loading"
LOADING = "loading"

GROUPS = {
    stones.IMPORT: "processes",
    stones.CONFIG: "processes",
    stones.WORKERS: "processes",
    stones.DISTRIBUTED: "processes",
    stones.LOAD: LOADING,
    stones.COMPILE: "compile",
    stones.PROFILE: "KV cache",
    stones.KERNELS: "kernels",
    stones.CAPTURE: "graph capture",
}
"""What people call the phases; those that are not here are the rest."""


class StartPart(Frozen):
    """One part of two starts, in seconds.

    + phases: of :mod:`inventory.common.start_phases` that it covers
    + difference: this - that
    """

    name: str
    phases: tuple[str, ...]
    this: float
    that: float
    difference: float


class Read(Frozen):
    """Reading the weights: ``seconds = bytes * rate``, each the other start's by this one's.

    + bytes: how many times this start's bytes the other one reads
    + rate: how many times as fast this start reads
    + seconds: how many times as long the other one reads
    """

    bytes: float
    rate: float
    seconds: float


@dataclass(eq=False)
class _Piece:
    """Phases that can only be compared together."""

    groups: list[str]
    phases: list[str]
    this: float
    that: float

    def absorb(self, other: _Piece) -> None:
        self.groups += [group for group in other.groups if group not in self.groups]
        self.phases += other.phases
        self.this += other.this
        self.that += other.that


def parts_of(this: Measured, that: Measured) -> tuple[StartPart, ...]:
    """The parts of both starts. Where totals are known, the last part is what no phase covers, so
    that the parts of each start sum to its total, and their differences to the difference.

    + returns: none where one of the starts has no total
    """
    if this.total is None or that.total is None:
        return ()
    pieces = _grouped(_aligned(_known(this), _known(that)))
    found: list[StartPart] = []
    for piece in pieces:
        found += _split(piece, this, that) if stones.LOAD in piece.phases else [_whole(piece)]
    left = this.total - sum(part.this for part in found)
    left_there = that.total - sum(part.that for part in found)
    return (*found, _part(UNMEASURED, [], left, left_there))


def read_of(this: Measured, that: Measured) -> Read | None:
    """The read of both starts as a product; None where one was not measured."""
    if this.read is None or that.read is None:
        return None
    (size, seconds), (other_size, other_seconds) = this.read, that.read
    return Read(
        bytes=other_size / size,
        rate=(size / seconds) / (other_size / other_seconds),
        seconds=other_seconds / seconds,
    )


def _known(start: Measured) -> dict[str, float]:
    """Its phases, with zero for those that its settings rule out."""
    skipped = EAGER_SKIPS if start.eager and start.phases else frozenset()
    return {name: start.phases.get(name, 0.0) for name in (*start.phases, *sorted(skipped))}


def _aligned(this: Mapping[str, float], that: Mapping[str, float]) -> list[_Piece]:
    """Phases in their order, each up to the next end that both starts show.

    What comes after the last common end stays out: its other side was not measured.
    """
    order = dict.fromkeys((*PHASES, *this, *that))
    pieces: list[_Piece] = []
    open_ = _Piece([], [], 0.0, 0.0)
    for name in order:
        if name not in this and name not in that:
            continue
        group = GROUPS.get(name, REST)
        open_.absorb(_Piece([group], [name], this.get(name, 0.0), that.get(name, 0.0)))
        if name in this and name in that:
            pieces.append(open_)
            open_ = _Piece([], [], 0.0, 0.0)
    return pieces


def _grouped(pieces: list[_Piece]) -> list[_Piece]:
    """Pieces that share a group become one."""
    grouped: list[_Piece] = []
    for piece in pieces:
        same = [one for one in grouped if set(one.groups) & set(piece.groups)]
        if not same:
            grouped.append(piece)
            continue
        first, *others = [*same, piece]
        for one in others:
            first.absorb(one)
        grouped = [one for one in grouped if one is first or one not in same]
    return grouped


def _split(piece: _Piece, this: Measured, that: Measured) -> list[StartPart]:
    """Reading the weights apart from what it stands in, where both engines clocked it."""
    a, b = this.weights_s, that.weights_s
    if a is None or b is None or a > piece.this or b > piece.that:
        return [_whole(piece)]
    groups = [BESIDE if group == LOADING else group for group in piece.groups]
    beside = _Piece(groups, piece.phases, piece.this - a, piece.that - b)
    return [_part(READING, [stones.LOAD], a, b), _whole(beside)]


def _whole(piece: _Piece) -> StartPart:
    return _part(" + ".join(piece.groups), piece.phases, piece.this, piece.that)


def _part(name: str, phases: list[str], this: float, that: float) -> StartPart:
    return StartPart(name=name, phases=tuple(phases), this=this, that=that, difference=this - that)
