"""The service that should answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A unit, and how its service is asked.

    + unit: with its ending
    + url: base URL as seen from the box itself
    + model: served model name
    + max_model_len: declared context length in tokens; None is the model's own
    """

    unit: str
    url: str
    model: str
    max_model_len: int | None = None
