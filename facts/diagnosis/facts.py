"""What a caller knows besides the journal, to make a remedy exact."""

from __future__ import annotations

from pydantic import Field

from inventory.base import Frozen


class Facts(Frozen):
    """All optional: a diagnosis never needs them, and never contradicts the journal with them."""

    now: float | None = Field(
        default=None, description="seconds since the epoch: when the journal was read"
    )
    patience: float | None = Field(
        default=None,
        gt=0,
        description="seconds of silence that count as a hang; derived from the phase if not given",
    )
    max_num_seqs: int | None = Field(
        default=None, ge=1, description="that fits, from inventory.fit (Derived.max_num_seqs)"
    )
    vocab_size: int | None = Field(default=None, ge=1, description="of the model")
    weights_gib: float | None = Field(
        default=None, gt=0, description="of the checkpoint, all ranks together"
    )
    bad_files: tuple[str, ...] = Field(
        default=(), description="shards that a check of the folder found damaged"
    )
    environment: dict[str, str] = Field(
        default_factory=dict, description="of the unit, without secrets"
    )
