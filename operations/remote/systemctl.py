"""The one question to systemd: ``systemctl show``."""

import subprocess

from inventory.common import systemd

SHOW_SECONDS = 10.0
"""A manager that is busy with a reload takes one or two."""


def show(unit: str, *wanted: str, limit: float = SHOW_SECONDS) -> dict[str, str]:
    """Properties of a unit as systemd prints them, times in microseconds and UTC; empty where
    systemd does not answer in time.

    + wanted: their names
    + limit: seconds
    """
    try:
        shown = subprocess.run(
            ["systemctl", "show", "--timestamp=us+utc", "-p", ",".join(wanted), "--", unit],
            capture_output=True,
            text=True,
            check=False,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return {}
    return systemd.properties(shown.stdout)
