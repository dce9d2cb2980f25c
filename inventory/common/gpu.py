"""What controller and box both hold of a GPU's memory."""

from __future__ import annotations

from inventory.common.units import MIB

_IDLE_BYTES, _IDLE_SHARE = 500 * MIB, 100


def idle_limit(total: int) -> int:
    """Bytes that an idle GPU may show as used: 500 MiB, or one part in 100 where that is more.

    A display takes some, and an older driver counts its reserve, which grows with the card: 479
    MiB on an H100, 614 on an H200, 726 on a B200 (unsloth#9362), 912 on an A100 (nvml-wrapper#57).
    The context of a process is about as large, but a process is listed.

    + total: bytes of the card; 0 where they are not known

    >>> idle_limit(0) // MIB, idle_limit(143_771 * MIB) // MIB
    (500, 1437)
    """
    return max(_IDLE_BYTES, total // _IDLE_SHARE)
