"""What a caller knows besides the journal, to make a remedy exact."""

from __future__ import annotations

from pydantic import Field

from inventory.base import Frozen


class Hints(Frozen):
    """All optional: a diagnosis never needs them, and never contradicts the journal with them."""

    now: float | None = Field(
        default=None, description="seconds since the epoch: when the journal was read"
    )
    fits_max_num_seqs: int | None = Field(
        default=None, ge=1, description="the largest max_num_seqs that fits, from inventory.fit"
    )
    bad_files: tuple[str, ...] = Field(
        default=(), description="shards that a check of the folder found damaged"
    )
    environment: dict[str, str] = Field(default_factory=dict, description="of the unit")
