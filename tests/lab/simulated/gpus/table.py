"""The table that ``nvidia-smi`` prints for people, in the shape of driver 580."""

from __future__ import annotations

import time
from collections.abc import Sequence

from .fields import Reading, long_bus_id

RULE = "+" + "-" * 89 + "+"
COLUMNS = "+" + "-" * 41 + "+" + "-" * 24 + "+" + "-" * 22 + "+"
HEAVY = "|" + "=" * 41 + "+" + "=" * 24 + "+" + "=" * 22 + "|"


def table(readings: Sequence[Reading], processes: Sequence[tuple[int, int, str, int]]) -> str:
    """The whole text.

    + processes: index of the card, process id, name, MiB
    """
    box = readings[0].box
    lines = [
        time.strftime("%a %b %d %H:%M:%S %Y       "),
        RULE,
        f"| NVIDIA-SMI {box.driver:<22} Driver Version: {box.driver:<14} "
        f"CUDA Version: {box.cuda:<8} |",
        COLUMNS,
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | "
        "Volatile Uncorr. ECC |",
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | "
        "GPU-Util  Compute M. |",
        "|                                         |                        |"
        "               MIG M. |",
        HEAVY,
    ]
    for reading in readings:
        persistence = "On" if box.persistence else "Off"
        usage = f"{reading.used}MiB / {reading.gpu.memory_total}MiB"
        state, heat, draw = ("P0", 52, 85) if reading.busy else ("P8", 31, 31)
        lines += [
            f"| {reading.index:3}  {_short(reading.gpu.name):<27}{persistence:>6}  | "
            f"{long_bus_id(reading.gpu.bus_id):>18} Off |                    0 |",
            f"| N/A {heat:4}C    {state}           {draw:4}W /  600W | {usage:>22} |"
            "      0%      Default |",
            "|                                         |                        |"
            "             Disabled |",
            COLUMNS,
        ]
    lines += [
        "",
        RULE,
        f"| {'Processes:':<87} |",
        "|  GPU   GI   CI              PID   Type   Process name                        "
        "GPU Memory |",
        "|        ID   ID                                                               "
        "Usage      |",
        "|" + "=" * 89 + "|",
    ]
    for index, pid, name, used in processes:
        lines.append(
            f"| {index:4}   N/A  N/A  {pid:15}      C   {name[:33]:<33} {f'{used}MiB':>12} |"
        )
    if not processes:
        lines.append(f"|  {'No running processes found':<86} |")
    return "\n".join([*lines, RULE, ""])


def _short(name: str) -> str:
    """A product name in the width of its column."""
    return name if len(name) <= 27 else f"{name[:24]}..."
