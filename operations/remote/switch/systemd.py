"""What systemd says of units and processes, and what is asked of it."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

from operations.remote.switch.verdict import SwitchError

ANSWER_SECONDS = 10
"""A manager that is busy with a reload takes one or two."""

STOPPED = frozenset({"inactive", "failed"})
"""Active states in which no process runs and none is about to."""


def show(unit: str, *properties: str) -> dict[str, str]:
    """Properties of a unit as systemd prints them, times in microseconds and UTC; empty where
    systemd does not answer in time."""
    wanted = ",".join(properties)
    try:
        shown = subprocess.run(
            ["systemctl", "show", "--timestamp=us+utc", "-p", wanted, "--", unit],
            capture_output=True,
            text=True,
            check=False,
            timeout=ANSWER_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return {}
    return dict(line.split("=", 1) for line in shown.stdout.splitlines() if "=" in line)


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
    try:
        started = datetime.strptime(state["ExecMainStartTimestamp"], "%a %Y-%m-%d %H:%M:%S.%f UTC")
        written = Path(state["FragmentPath"]).stat().st_mtime
    except (KeyError, ValueError, OSError):
        return False
    return started.replace(tzinfo=UTC).timestamp() >= written
