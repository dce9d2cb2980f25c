"""How the simulated ``nvidia-smi`` misbehaves, told by a file that a test writes.

::

    {"mode": "mismatch"}                      user-space library and kernel module differ
    {"mode": "no-driver"}                     the kernel module is not loaded
    {"mode": "no-devices"}                    a driver without a card
    {"mode": "lost", "gpu": 3}                one card has fallen off the bus
    {"mode": "hang", "seconds": 600}          every call hangs
    {"mode": "replay", "folder": "/…"}        recorded outputs, see :func:`replay`

The texts and statuses are those of anderskm/gputil#55 (18), gputil#26 (9) and
XuehaiPan/nvitop#139. No source gives the status of a lost card: 15 is NVML's code for it.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from .description import MODE, Box, root


def read_mode() -> dict[str, Any]:
    """The mode in force; empty for a driver that works."""
    try:
        mode: dict[str, Any] = json.loads((root() / MODE).read_text())
    except FileNotFoundError:
        return {}
    return mode


def fail(mode: dict[str, Any], box: Box, arguments: list[str]) -> int | None:
    """Answer a call as a broken driver does. None where the call goes on.

    Returns the exit status.
    """
    match mode.get("mode"):
        case "mismatch":
            version = box.driver.rpartition(".")[0]
            print("Failed to initialize NVML: Driver/library version mismatch")
            print(f"NVML library version: {version}")
            return 18
        case "no-driver":
            print(
                "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
                "Make sure that the latest NVIDIA driver is installed and running.\n"
            )
            return 9
        case "no-devices":
            print("No devices were found")
            return 6
        case "hang":
            time.sleep(float(mode.get("seconds", 600)))
            return 1
        case "replay":
            return replay(Path(mode["folder"]), arguments)
    return None


def replay(folder: Path, arguments: list[str]) -> int | None:
    """Print a recorded output.

    + folder: holds the recordings and ``index.json``, which maps the start of a command line to
      ``{"file", "status"}``: ``{"topo -m": {"file": "a07.txt"}, "--query-gpu": {…}}``. A call
      that it does not name is answered by the simulation.
    """
    line = " ".join(arguments)
    for start, recorded in json.loads((folder / "index.json").read_text()).items():
        if line.startswith(start):
            sys.stdout.flush()
            sys.stdout.buffer.write((folder / recorded["file"]).read_bytes())
            return int(recorded.get("status", 0))
    return None
