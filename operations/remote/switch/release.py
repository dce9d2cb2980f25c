"""Wait until the GPUs of a service are free, or say who holds them.

Runs on the box, standard library only, by hand too::

    python -m remote.switch.release --gpus GPU-1111…,GPU-2222… --timeout 60

GPU memory comes back some time after the process that held it is gone, and an engine that starts
in between fails. Free is what two readings in a row say: no process, and no more memory in use than
an idle driver takes. No process is ended from here.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

IDLE_MIB = 500
"""Memory that an idle card may show as used: the driver's own, and a display's."""

INTERVAL = 0.5


def rows(query: str) -> list[list[str]]:
    """The answer of nvidia-smi to one query, cell by cell; empty where it does not answer."""
    try:
        shown = subprocess.run(
            ["nvidia-smi", query, "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.split(", ") for line in shown.stdout.splitlines()]


def used(gpus: set[str]) -> dict[str, int]:
    """UUID -> MiB in use, of those GPUs that answered with a number."""
    found = rows("--query-gpu=uuid,memory.used")
    return {
        row[0]: int(row[1])
        for row in found
        if len(row) == 2 and row[0] in gpus and row[1].isdigit()  # noqa: PLR2004
    }


def holders(gpus: set[str]) -> list[str]:
    """The processes on these GPUs, each as a person would name it."""
    found = rows("--query-compute-apps=gpu_uuid,pid,used_memory,process_name")
    return [
        f"{', '.join(row[3:])} (pid {row[1]}, {unit_of(row[1])}): {row[2]} MiB of {row[0]}"
        for row in found
        if len(row) > 3 and row[0] in gpus  # noqa: PLR2004
    ]


def unit_of(pid: str) -> str:
    """The systemd service that a process belongs to, in words."""
    try:
        text = Path("/proc", pid, "cgroup").read_text()
    except OSError:
        return "unit unknown"
    found = re.findall(r"/([^/\s:]+\.service)(?=/|\s|$)", text)
    return found[-1] if found else "in no unit"


def wait(gpus: set[str], timeout: float) -> tuple[int, str]:
    """Watch until the GPUs are free.

    + returns: exit status and a sentence
    """
    began = time.monotonic()
    quiet = 0
    while True:
        memory, processes = used(gpus), holders(gpus)
        busy = {uuid: mib for uuid, mib in memory.items() if mib > IDLE_MIB}
        quiet = 0 if busy or processes or len(memory) < len(gpus) else quiet + 1
        elapsed = time.monotonic() - began
        if quiet == 2:  # noqa: PLR2004 - one reading may fall between two holders
            return 0, f"release: {len(gpus)} GPUs free after {elapsed:.1f} s"
        if elapsed > timeout:
            for line in processes or [
                f"no process is shown, {mib} MiB of {uuid}" for uuid, mib in busy.items()
            ]:
                print(f"release: held by {line}")
            silent = ", ".join(sorted(gpus - set(memory)))
            return 1, f"GPUs not free after {elapsed:.0f} s" + (
                f"; no answer for {silent}" if silent else ""
            )
        time.sleep(INTERVAL)


def main() -> int:
    """Parse the arguments and wait."""
    parser = argparse.ArgumentParser(description="Wait until the GPUs of a service are free.")
    parser.add_argument("--gpus", required=True, help="UUIDs, separated by commas")
    parser.add_argument("--timeout", type=float, required=True, help="seconds")
    arguments = parser.parse_args()
    status, sentence = wait(set(arguments.gpus.split(",")), arguments.timeout)
    print(sentence, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
