"""nvidia-smi's words, and what an idle GPU may show, for controller and box."""

import re
from collections.abc import Sequence

from inventory.common.units import MIB

APPS = ("gpu_uuid", "pid", "used_memory", "process_name")
"""Fields of ``--query-compute-apps``. The name comes last: nothing is quoted, and it may hold
commas."""

NO_PID = (0, 0xFFFFFFFF)
"""Numbers that drivers 535.43 to 535.86 print if there is no pid (nvitop#75)."""

# Parts that use the host's memory. Newer drivers say so by ATS without a total; older ones leave
# only the name (nvgpu#37, all-smi#80). The N1X prints its carve-out as if it were all
# (unsloth#11208: it says 8128 MiB, and CUDA can use 46477).
_INTEGRATED = re.compile(r"\b(GB10|Thor|Orin|N1X)\b")

_IDLE_BYTES, _IDLE_SHARE = 500 * MIB, 100


def is_absent(cell: str) -> bool:
    """Whether the card has no such value. An error is another thing: ``[Unknown Error]``."""
    return cell in ("[N/A]", "N/A", "[Not Supported]", "Not Supported")


def is_integrated(name: str) -> bool:
    """Whether a card of this name has no memory of its own."""
    return bool(_INTEGRATED.search(name))


def is_hidden(name: str) -> bool:
    """Whether a process has no name here, e.g. ``[Not Found]``: another pid namespace has it, and
    its number is somebody else's here."""
    return name.startswith("[")


def whole(cell: str, digits: int = 19) -> int | None:
    """A whole number, not negative; None for anything else.

    + digits: the most that it may have
    """
    return int(cell) if re.fullmatch(f"[0-9]{{1,{digits}}}", cell) else None


def mig(cell: str) -> bool | None:
    """Whether a card is cut into slices, from ``mig.mode.current``; None if unknown.

    >>> mig("Enabled"), mig("[N/A]"), mig("[Unknown Error]")
    (True, False, None)
    """
    return {"Enabled": True, "Disabled": False}.get(cell, False if is_absent(cell) else None)


def cells(line: str, columns: Sequence[str]) -> list[str] | None:
    """The cells of a row without quotes, whose last one may hold commas; None for other lines.

    >>> cells("GPU-1, 7, [N/A], python3 a,b", APPS)
    ['GPU-1', '7', '[N/A]', 'python3 a,b']
    """
    found = [cell.strip() for cell in line.split(",", len(columns) - 1)]
    return found if len(found) == len(columns) else None


def idle_limit(total: int) -> int:
    """Bytes that an idle GPU may show as used: 500 MiB, or one part in 100 if that is more.

    A display takes some, and an older driver counts its reserve, which grows with the card: 479
    MiB on an H100, 614 on an H200, 726 on a B200 (unsloth#9362), 912 on an A100 (nvml-wrapper#57).
    The context of a process is about as large, but a process is listed.

    + total: bytes of the card; 0 where they are not known

    >>> idle_limit(0) // MIB, idle_limit(143_771 * MIB) // MIB
    (500, 1437)
    """
    return max(_IDLE_BYTES, total // _IDLE_SHARE)
