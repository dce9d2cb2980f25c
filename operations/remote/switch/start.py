"""Start a switch as a unit of its own, or join the one that runs, and say how it goes.

Runs as root on the box, by hand too::

    python -m operations.remote.switch.start < request.json

The switch outlives the connection that started it, and the controller that asked for it. A request
that finds another one under way waits for its end first.
"""

import json
import sys
from pathlib import Path

from inventory.common.files import write_whole
from inventory.common.paths import OUTCOME, SWITCH
from inventory.common.switch import DONE, SwitchOutcome, SwitchRequest
from operations.remote.transient import follow, is_running, launch, properties

_LOG = Path(SWITCH, "log")
_REQUEST = Path(SWITCH, "request.json")
SWITCH_UNIT = "boxwright-switch.service"
"""One for the box: two switches at once would stop each other's services."""

_WANTED = {
    "Type": "exec",
    "StandardInput": f"file:{_REQUEST}",
    "StandardOutput": f"append:{_LOG}",
    "StandardError": f"append:{_LOG}",
    "Environment": "PYTHONUNBUFFERED=1",
    "TimeoutStopSec": "10",
    # A switch that failed is not a machine that is degraded.
    "CollectMode": "inactive-or-failed",
}


def start(request: SwitchRequest) -> bool:
    """Start the unit. False where another one started it in the same moment."""
    _LOG.unlink(missing_ok=True)
    write_whole(_REQUEST, json.dumps(request.to_json()), mode=0o600)
    description = f"switch to {request.new.unit}; its log: {_LOG}"
    return launch(SWITCH_UNIT, description, _WANTED, "operations.remote.switch.carry_out")


def under_way() -> SwitchRequest | None:
    """The request that is being carried out; None where it cannot be read."""
    try:
        return SwitchRequest.from_json(json.loads(_REQUEST.read_text()))
    except (OSError, ValueError, RecursionError):
        return None


def main() -> int:
    """Read the request; start or join; follow to the end."""
    request = SwitchRequest.from_json(json.load(sys.stdin))
    while is_running(properties(SWITCH_UNIT)):
        other = under_way()
        print(f"switch: {SWITCH_UNIT} runs already: joining it", flush=True)
        follow(SWITCH_UNIT, _LOG, joined=True)
        if other == request:
            return _status()
    while not start(request):
        follow(SWITCH_UNIT, _LOG, joined=True)
    follow(SWITCH_UNIT, _LOG, joined=False)
    return _status()


def _status() -> int:
    """Exit status: that of the outcome. Without one the switch itself was ended."""
    try:
        outcome = SwitchOutcome.from_json(json.loads(Path(OUTCOME).read_text()))
    except (OSError, ValueError):
        print(f"switch: {SWITCH_UNIT} was ended before it came to an end; its log: {_LOG}")
        return 1
    return 0 if outcome.kind == DONE else 1


if __name__ == "__main__":
    sys.exit(main())
