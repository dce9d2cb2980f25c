"""Numbers that a box has printed itself: they replace the constants."""

from __future__ import annotations

from pydantic import Field

from inventory.fit.start.start import Start
from inventory.fit.value import Value


class Measured(Value):
    """What an engine printed when it started this model on these cards, in bytes a rank.

    Every field is optional: what was not printed stays predicted. With ``start`` the numbers are
    carried over to other settings by the difference that the prediction makes between the two.
    """

    start: Start | None = Field(
        default=None, description="the settings of that start; None: the same as now"
    )
    total: int | None = Field(default=None, description="of the card, as the engine sees it")
    free_at_init: int | None = Field(
        default=None, description='"Free memory on device (a/b GiB) on startup": a'
    )
    weights: int | None = Field(default=None, description='"Model loading took … GiB"')
    available_kv: int | None = Field(default=None, description='"Available KV cache memory"')
    kv_tokens: int | None = Field(default=None, description='"GPU KV cache size: … tokens"')
    activation: int | None = Field(default=None, description="peak activation")
    not_torch: int | None = Field(default=None, description="non-torch memory")
    estimate: int | None = Field(default=None, description="estimated CUDA graphs")
    graphs: int | None = Field(default=None, description='"Graph capturing … took … GiB"')
