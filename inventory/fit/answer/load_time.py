"""How long a start takes, and the limits that systemd and the readiness check need for it.

Figures (vllm-project issues and field logs): MiniMax-M2.5, 230 GB, 75 s from a warm NVMe and 250 s
from another (vllm#39610); Kimi-K2.5 NVFP4, 540 GB, 13 minutes; 158 GB from the page cache 25 s,
6.2 GB/s (vllm-omni#4896); GLM-5.1 on eight RTX PRO 6000: 233 s, of them 43 for the weights.
"""

from __future__ import annotations

from pydantic import Field

from inventory.base import Frozen, Unknown
from inventory.fit.model.architecture import Architecture
from inventory.start_limits import start_limits

LOADER = 6.2e9, 2.0e9, 0.8e9
"""Bytes a second of the loader: from the page cache; from one NVMe; the slower field logs."""
BESIDES = 35, 110, 180
"""Seconds of imports, NCCL, compilation, profile run, capture: warm caches; likely; cold."""
BESIDES_EAGER = 45
"""The same without compilation and capture, at most."""

LEAST_LOAD = 150
"""Even the smallest model gets this: imports from a cold disk alone may take a minute."""
ENGINE_PATIENCE = 600
"""VLLM_ENGINE_READY_TIMEOUT_S as it ships; it counts with data parallelism or several API
servers (v1/engine/core_client.py:743)."""


class LoadTime(Frozen):
    """Seconds from start to ready, and what follows from them."""

    fastest: int
    likely: int
    slowest: int
    given: int = Field(description="load_seconds of the service, else the slowest")
    patience: int = Field(description="how long the switch waits for readiness")
    start_limit_interval: int = Field(
        description="StartLimitIntervalSec: three starts that fail slowly must fall into it"
    )
    start_limit_burst: int
    stop: int = Field(description="TimeoutStopSec")
    engine_patience: int | None = Field(
        default=None, description="VLLM_ENGINE_READY_TIMEOUT_S, where the default is too short"
    )


def load_time(
    architecture: Architecture,
    weight_bytes: int | Unknown,
    *,
    given: int | None = None,
    eager: bool = False,
    engines: int = 1,
) -> LoadTime | Unknown:
    """How long a start takes.

    + weight_bytes: of the checkpoint; used where the files do not tell it
    + given: seconds that the service gives a load; None: as many as the slowest takes
    + eager: without CUDA graphs and compilation
    + engines: data parallel size
    """
    size = weight_bytes
    if architecture.checkpoint and not isinstance(architecture.checkpoint.size, Unknown):
        size = architecture.checkpoint.size
    if not isinstance(size, Unknown):
        fastest, likely, slowest = (
            round(size / speed) + (min(seconds, BESIDES_EAGER) if eager else seconds)
            for speed, seconds in zip(LOADER, BESIDES, strict=True)
        )
    elif given is None:
        return size
    else:
        fastest = likely = slowest = given
    limits = start_limits(given or max(LEAST_LOAD, slowest))
    patience = limits.patience
    return LoadTime(
        fastest=fastest,
        likely=likely,
        slowest=slowest,
        given=limits.load,
        patience=patience,
        start_limit_interval=limits.interval,
        start_limit_burst=limits.burst,
        stop=limits.stop,
        engine_patience=patience if engines > 1 and patience > ENGINE_PATIENCE else None,
    )
