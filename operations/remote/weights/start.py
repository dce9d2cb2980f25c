"""Start a fetch as a systemd unit of its own, or join the one that runs, and say how it goes.

Runs as root on the box, by hand too::

    python -m operations.remote.weights.start < request.json            # and follow it to its end
    python -m operations.remote.weights.start --detach < request.json   # and leave it to itself

On standard input is a ``FetchRequest``, as JSON. The fetch outlives the connection that started it.
The token lies in a file that only root reads, reaches the fetch as a credential, and is removed
when the fetch ends; no argument, no environment, no log and no unit property holds it.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from inventory.common.fetch import FetchRequest
from inventory.common.files import write_whole
from inventory.common.paths import MANIFEST, RUN
from operations.remote.transient import follow, is_running, launch, properties
from operations.remote.weights.progress import HUNG

_PASSED_ON = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "HF_ENDPOINT",
    "HF_HOME",
    "HF_HUB_CACHE",
)
"""Variables of a login on the box that decide how the Hub is reached: a unit inherits none."""


def unit_name(folder: str | Path) -> str:
    """One unit for one folder: every run that wants the same snapshot finds the same unit."""
    return f"boxwright-fetch-{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}.service"


def start(request: FetchRequest, unit: str, place: Path) -> bool:
    """Start the unit. False where another one started it in the same moment.

    + place: folder under /run for the request, the token and the log
    """
    subprocess.run(["systemctl", "reset-failed", unit], capture_output=True, check=False)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    (place / "request.json").write_text(json.dumps(replace(request, token=None).to_json()))
    (place / "environment").write_text("".join(environment_lines()))
    write_whole(place / "token", request.token or "", mode=0o600)
    wanted = {
        "User": request.user,
        "Type": "exec",
        "UMask": "0022",
        "StandardInput": f"file:{place}/request.json",
        "StandardOutput": f"append:{place}/log",
        "StandardError": f"append:{place}/log",
        "LoadCredential": f"token:{place}/token",
        "EnvironmentFile": f"{place}/environment",
        # A hung fetch ends itself with this status; the credential has to be there again then.
        "RestartForceExitStatus": str(HUNG),
        "RestartSec": "5",
        "ExecStopPost": f'+/bin/sh -c \'[ "$EXIT_STATUS" = {HUNG} ] || rm -f {place}/token '
        f"{place}/environment'",
        "NoNewPrivileges": "yes",
        "PrivateTmp": "yes",
        "ProtectSystem": "full",
        "Nice": "5",
        "TimeoutStopSec": "10",
    }
    description = f"fetch of {request.folder}; its log: {place}/log"
    return launch(unit, description, wanted, "operations.remote.weights.fetch")


def environment_lines() -> Iterator[str]:
    """Lines of an EnvironmentFile, quoted as systemd reads them."""
    for name, value in sorted(os.environ.items()):
        if name.upper() in _PASSED_ON and "\n" not in value:
            quoted = value.replace("\\", "\\\\").replace('"', '\\"')
            yield f'{name}="{quoted}"\n'


def main() -> int:
    """Read the request; start or join; follow to the end, or leave it."""
    request = FetchRequest.from_json(json.load(sys.stdin))
    unit = unit_name(request.folder)
    place = Path(RUN) / unit.removesuffix(".service")
    joined = is_running(properties(unit)) or not start(request, unit, place)
    if sys.argv[1:] == ["--detach"]:
        print(f"fetch: {unit} {'runs already' if joined else 'is on its way'}", flush=True)
        return 0
    if joined:
        print(f"fetch: {unit} runs already: joining it", flush=True)
    state = follow(unit, place / "log", joined)
    if state.get("Result", "success") == "success" and (request.folder / MANIFEST).exists():
        return 0
    print(f"fetch: {unit} ended: {state.get('Result')}; its log: {place}/log", flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
