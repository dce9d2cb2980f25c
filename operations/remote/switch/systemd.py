"""What is asked of systemd, and whether a unit runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

from inventory.common.systemd import STOPPED, moment
from operations.remote.switch.errors import SwitchError
from operations.remote.systemctl import show


def control(*arguments: str) -> None:
    """Run systemctl.

    + raises: SwitchError with its words
    """
    done = subprocess.run(["systemctl", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip() or f"exit status {done.returncode}"
        raise SwitchError("systemd", f"systemctl {' '.join(arguments)}: {said}")


def start(unit: str) -> None:
    """Start a unit, whatever became of its earlier starts.

    + raises: SwitchError with systemd's words
    """
    # The start limit counts starts by hand too, and those of a crash loop.
    subprocess.run(["systemctl", "reset-failed", "--", unit], capture_output=True, check=False)
    control("start", "--", unit)


def kill(unit: str) -> None:
    """SIGKILL to all of a unit, for what has nothing to lose."""
    subprocess.run(
        ["systemctl", "kill", "-s", "KILL", "--", unit], capture_output=True, check=False
    )


def is_active(unit: str) -> bool:
    """Whether a unit runs, or is about to: the pause before a restart counts."""
    return show(unit, "ActiveState").get("ActiveState", "inactive") not in STOPPED


def runs_from_file(unit: str) -> bool:
    """Whether a unit's main process runs, and was started from its present file."""
    state = show(unit, "ActiveState", "SubState", "FragmentPath", "ExecMainStartTimestamp")
    if (state.get("ActiveState"), state.get("SubState")) != ("active", "running"):
        return False
    started = moment(state.get("ExecMainStartTimestamp", ""))
    try:
        return started is not None and started >= Path(state["FragmentPath"]).stat().st_mtime
    except (KeyError, OSError):
        return False
