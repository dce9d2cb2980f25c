"""Start a switch as a unit of its own, or join the one that runs, and say how it goes.

Runs as root on the box, by hand too::

    python -m operations.remote.switch.start < request.json

The switch outlives the connection that started it, and the controller that asked for it. A request
that finds another one under way waits for its end first.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from operations.remote.switch.files import write
from operations.remote.switch.verdict import OUTCOME, READY
from operations.remote.transient import follow, is_running, launch, properties

PLACE = Path("/run/boxwright/switch")
UNIT = "boxwright-switch.service"
"""One for the box: two switches at once would stop each other's services."""

WANTED = {
    "Type": "exec",
    "StandardInput": f"file:{PLACE}/request.json",
    "StandardOutput": f"append:{PLACE}/log",
    "StandardError": f"append:{PLACE}/log",
    "Environment": "PYTHONUNBUFFERED=1",
    "TimeoutStopSec": "10",
    # A switch that failed is not a machine that is degraded.
    "CollectMode": "inactive-or-failed",
}


def start(plain: dict[str, Any]) -> bool:
    """Start the unit. False where another one started it in the same moment."""
    (PLACE / "log").unlink(missing_ok=True)
    write(PLACE / "request.json", json.dumps(plain), mode=0o600)
    description = f"switch to {plain['service']['unit']}; its log: {PLACE}/log"
    return launch(UNIT, description, WANTED, "operations.remote.switch.order")


def running() -> dict[str, Any] | None:
    """The request that is being carried out; None where none is."""
    if not is_running(properties(UNIT)):
        return None
    try:
        found = json.loads((PLACE / "request.json").read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def main() -> int:
    """Read the request; start or join; follow to the end."""
    plain = json.load(sys.stdin)
    while (other := running()) is not None:
        print(f"switch: {UNIT} runs already: joining it", flush=True)
        follow(UNIT, PLACE / "log", joined=True)
        if other == plain:
            return _status()
    while not start(plain):
        follow(UNIT, PLACE / "log", joined=True)
    follow(UNIT, PLACE / "log", joined=False)
    return _status()


def _status() -> int:
    """Exit status: that of the outcome. Without one the switch itself was ended."""
    try:
        outcome = json.loads(Path(OUTCOME).read_text())
    except (OSError, ValueError):
        print(f"switch: {UNIT} was ended before it came to an end; its log: {PLACE}/log")
        return 1
    return 0 if outcome["kind"] == READY else 1


if __name__ == "__main__":
    sys.exit(main())
