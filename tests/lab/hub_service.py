"""The lab's Hub as a background process: it serves `.lab/models` to boxes and to this machine."""

import json
import shlex
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from tests.lab.address import candidates, is_free
from tests.lab.base import REPO, Lab, LabError, lock
from tests.lab.group import Group

PORTS: Final = (8080, 8081)  # of the Hub, and of the CDN that it sends downloads to
_START_TIMEOUT: Final = 30.0  # seconds


@dataclass(frozen=True)
class Served:
    """Where the Hub is: what stands in `.lab/hub.json`.

    + url: what HF_ENDPOINT is set to
    + cdn_url: where downloads come from
    """

    url: str
    cdn_url: str

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """What is in the file; None if there is no file."""
        try:
            return cls(**json.loads(path.read_text()))
        except FileNotFoundError:
            return None


def ensure(lab: Lab) -> Served:
    """Start the Hub unless it runs already, and say where it is.

    It keeps its address from one start to the next. Raises LabError with its last lines.
    """
    file, log = _file(lab), lab.root / "hub.log"
    with lock(lab.root / "hub.lock"):
        served = find(lab)
        if served is not None:
            return served
        _group(lab).end()
        file.unlink(missing_ok=True)
        host = _host(lab)
        lab.models.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tests.lab.hub", "--root", str(lab.models), "--host", host]
        command += ["--port", str(PORTS[0]), "--cdn-port", str(PORTS[1])]
        _group(lab).start(f"cd {shlex.quote(str(REPO))} && exec {shlex.join(command)}", log)
        deadline = time.monotonic() + _START_TIMEOUT
        while not log.read_text().startswith("hub "):  # its one line, once it serves
            if not _group(lab).processes() or time.monotonic() > deadline:
                _group(lab).end()
                raise LabError(f"The lab's Hub did not start:\n{log.read_text()[-2000:]}")
            time.sleep(0.05)
        _, url, _, cdn_url = log.read_text().split()
        served = Served(url, cdn_url)
        draft = file.with_name("hub.json.part")
        draft.write_text(json.dumps(asdict(served), indent=2) + "\n")
        draft.rename(file)
    return served


def find(lab: Lab) -> Served | None:
    """Where the Hub is, if it runs."""
    return Served.read(_file(lab)) if _group(lab).processes() else None


def stop(lab: Lab) -> None:
    """End the Hub. None running is no error."""
    with lock(lab.root / "hub.lock"):
        _group(lab).end()
        _file(lab).unlink(missing_ok=True)


def _file(lab: Lab) -> Path:
    return lab.root / "hub.json"


def _group(lab: Lab) -> Group:
    return Group(lab, "hub")


def _host(lab: Lab) -> str:
    """The last address of the lab where both ports are free; boxes begin with the first."""
    for host in reversed(list(candidates(lab.root))):
        if all(is_free(host, port) for port in PORTS):
            return host
    raise LabError(f"The lab finds no loopback address with the ports {PORTS} free for its Hub.")
