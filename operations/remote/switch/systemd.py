"""What is asked of systemd, whether a unit runs, and which processes are its own."""

import subprocess
from pathlib import Path

from inventory.common.cgroup import ProcessOrigin, origin
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


def origin_of(pid: int, proc: Path = Path("/proc")) -> ProcessOrigin | None:
    """Where a process belongs; None where it is not in /proc."""
    try:
        return origin((proc / str(pid) / "cgroup").read_text(errors="replace").splitlines())
    except OSError:
        return None


def members(unit: str) -> set[int]:
    """Processes in the control group of a unit, and in groups below it.

    By way of /proc: where control groups are mounted differs between machines.
    """
    pids = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    return {pid for pid in pids if (found := origin_of(pid)) and found.unit == unit}
