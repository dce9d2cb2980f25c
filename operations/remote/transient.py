"""A unit of its own for work of minutes: it outlives the connection that started it, and is joined.

Standard library only.
"""

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from inventory.common.systemd import STOPPED, has_job
from operations.remote.systemctl import show

POLL = 0.2

PATIENT_SECONDS = 30.0
"""The call of a manager that is busy ends by itself after 25."""


def properties(unit: str) -> dict[str, str]:
    """What systemd says of the unit."""
    wanted = ("LoadState", "ActiveState", "Result", "ExecMainStatus", "Job")
    return show(unit, *wanted, limit=PATIENT_SECONDS)


def is_running(state: Mapping[str, str]) -> bool:
    """Whether the work is under way, also between two starts, and before systemd came to it.

    >>> is_running({"ActiveState": "inactive", "Job": "1402"})
    True
    """
    return has_job(state) or (bool(state) and state.get("ActiveState") not in STOPPED)


def launch(unit: str, description: str, wanted: Mapping[str, str], module: str) -> bool:
    """Start a program of this package as a unit.

    + wanted: properties of the unit
    + module: its name, e.g. ``operations.remote.weights.fetch``
    + returns: False where another one started the unit in the same moment
    + raises: OSError with systemd's words
    """
    folder = Path(__file__).resolve().parents[2]
    command = ["systemd-run", "--quiet", "--no-block", f"--unit={unit}"]
    command.append(f"--description={description}")
    command += [
        f"--property={name}={value}"
        for name, value in {"WorkingDirectory": str(folder), **wanted}.items()
    ]
    command += [sys.executable, "-m", module]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 and not is_running(properties(unit)):
        raise OSError(f"systemd-run: {done.stderr.strip()}")
    return done.returncode == 0


def follow(unit: str, log: Path, joined: bool) -> dict[str, str]:
    """Print the unit's log as it grows, until the unit has ended.

    + joined: the work ran already: only its last line is of interest, and what follows
    + returns: what systemd says of the ended unit
    """
    position = 0
    while True:
        state = properties(unit)
        if log.exists():
            with log.open(errors="replace") as stream:
                stream.seek(position)
                lines = stream.readlines()
                position = stream.tell()
            for line in lines[-1:] if joined else lines:
                print(line, end="", flush=True)
            joined = False
        if not is_running(state):
            return state
        time.sleep(POLL)
