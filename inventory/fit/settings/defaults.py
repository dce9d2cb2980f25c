"""What the engine chooses for a card by itself, and the most that is proposed to it.

Rules of vLLM 0.32.0 engine/arg_utils.py:2894-2985; when each came is said beside it.
"""

from __future__ import annotations

from inventory.common.units import GIB
from inventory.fit.settings.settings import Runner
from inventory.fit.settings.version import NEWEST_READ, Release

LARGE_CARD, HUGE_CARD = 70 * GIB, 160 * GIB
SMALL_CARD_SEQS_SINCE: Release = (0, 8, 5)
"""Before, every card got 1024 (n-q32int8-3090, d32-4090-083)."""

MOST_UTILISATION_SEVERAL = 0.93
"""On several GPUs: 0.95 left NCCL without buffers (rtx6kpro troubleshooting)."""


def is_large(total: int, name: str) -> bool:
    """Whether the engine takes the larger defaults: from 70 GiB, but never on an A100.

    + total: bytes of the card. The engine asks NVML, which says a little more than the engine
      sees; no card is near enough to 70 GiB for that to matter
    + name: of the card; empty where it is not known
    """
    return total >= LARGE_CARD and "a100" not in name.lower()


def default_max_num_seqs(
    total: int, name: str, runner: Runner = "V1", version: Release = NEWEST_READ
) -> int:
    """``max_num_seqs`` of a server that was given none.

    + total: bytes of the card, as NVML or the engine says
    + name: of the card; empty where it is not known

    >>> default_max_num_seqs(80 * GIB, "NVIDIA H100 80GB HBM3")
    1024
    >>> default_max_num_seqs(80 * GIB, "NVIDIA A100-SXM4-80GB")
    256
    """
    if runner == "V0":
        return 256
    everywhere = runner == "V1" and version < SMALL_CARD_SEQS_SINCE
    return 1024 if everywhere or is_large(total, name) else 256


def most_utilisation(gpus: int) -> float:
    """The largest ``gpu_memory_utilization`` that works on so many GPUs, memory permitting."""
    return MOST_UTILISATION_SEVERAL if gpus > 1 else 1.0
