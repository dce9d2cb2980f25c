"""Where the lab keeps its state, what it says when something is missing, and how it takes turns."""

import fcntl
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self

REPO: Final = Path(__file__).resolve().parents[2]

WORKER: Final = "worker-"
"""How the folder of a worker's lab begins; its number follows."""

_PACKAGES: Final = {
    "debootstrap": "debootstrap",
    "systemd-nspawn": "systemd-container",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "setsid": "util-linux",
    "unshare": "util-linux",
}


class LabError(Exception):
    """The lab cannot do what was asked. The message is one or two sentences for a person."""


@dataclass(frozen=True)
class Lab:
    """One lab: its folder, and the folder of what is slow to make.

    + root: boxes, the key, the running Hub. Two labs with different folders do not meet.
      ``LAB_ROOT`` names another than the usual one
    + caches: image, wheelhouse and models; several labs may share them
    """

    root: Path = field(default_factory=lambda: Path(os.environ.get("LAB_ROOT") or REPO / ".lab"))
    caches: Path = REPO / ".lab"

    @property
    def of_workers(self) -> tuple[Self, ...]:
        """The labs of tests that run side by side, each below this one."""
        roots = sorted(self.root.glob(f"{WORKER}*"))
        return tuple(replace(self, root=root) for root in roots if root.is_dir())

    @property
    def boxes(self) -> Path:
        """The folder of the boxes: `NAME/` and `NAME.json` for each."""
        return self.root / "boxes"

    @property
    def models(self) -> Path:
        """What the Hub serves: `ORGANISATION/NAME/`."""
        return self.caches / "models"

    @property
    def wheelhouse(self) -> Path:
        """The wheels that boxes install from; seen in a box as /srv/wheelhouse."""
        return self.caches / "wheelhouse"

    @property
    def key(self) -> Path:
        """The SSH key that every box of this lab accepts, made when first asked for."""
        path = self.root / "key"
        with lock(self.root / "key.lock"):
            if not path.exists():
                draft = self.root / "key.part"
                draft.unlink(missing_ok=True)
                run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(draft)])
                draft.with_suffix(".part.pub").rename(path.with_suffix(".pub"))
                draft.rename(path)
        return path


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Be the only one of all processes in here; waits for its turn.

    The kernel lets go of the lock when the process ends, however it ends.

    + path: the lock file; it stays
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def require(*tools: str) -> None:
    """Raise LabError, naming what is missing, unless this machine can run a lab.

    + tools: programs that must be on PATH
    """
    if platform.system() != "Linux":
        raise LabError("The lab needs Linux: a box is booted by systemd-nspawn.")
    for tool in tools:
        if shutil.which(tool, path=_path()) is None:
            package = _PACKAGES.get(tool, tool)
            raise LabError(f"The lab needs {tool}. Install it: apt-get install {package}")
    if os.geteuid() != 0:
        raise LabError("The lab needs root: it mounts and boots boxes. Run it with sudo.")


def run(command: Sequence[str], *, log: Path | None = None, timeout: float | None = None) -> str:
    """Run a program and return what it printed; raise LabError with its last lines if it fails.

    + log: file that the output is kept in
    + timeout: seconds
    """
    variables = {**os.environ, "PATH": _path()}
    with tempfile.TemporaryFile() if log is None else log.open("w+b") as output:
        try:
            done = subprocess.run(
                command,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired:
            raise LabError(f"{command[0]} did not end within {timeout:.0f} s.") from None
        output.seek(0)
        words = output.read().decode(errors="replace")
    if done.returncode != 0:
        last = "\n".join(words.strip().splitlines()[-8:])
        raise LabError(f"{command[0]} ended with status {done.returncode}:\n{last}")
    return words


def _path() -> str:
    """PATH with the system folders, which a plain user's may lack."""
    return os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/local/sbin:/usr/sbin:/sbin"
