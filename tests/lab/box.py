"""A box: a container booted by systemd-nspawn, with real systemd and real sshd.

Its files are the image, the layers that it was given, and one overlay on top, so a rebuilt host is
a fresh overlay. The overlay and all other mounts live in a mount namespace of the box's own
processes: when those end, however they end, nothing stays mounted on this machine.

Example:
    with Box("one") as box:
        print(box.run("systemctl is-system-running").stdout)
"""

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.lab import disk, image, nspawn
from tests.lab.address import choose, is_free
from tests.lab.base import Lab, LabError, lock, require
from tests.lab.connection import Connection
from tests.lab.group import Group
from tests.lab.simulated.gpus.description import DESCRIPTION
from tests.lab.simulated.install import install

BOOT_TIMEOUT: Final = 60.0  # seconds; a box answers within 3 on an idle machine


class Box:
    """One box of a lab. Making the object does nothing to the machine.

    + name: its host name
    + lab: where it belongs; the one in this repository unless said otherwise
    + user: who logs in; None keeps what the box has, `root` for a new one
    + systemd: False for a box whose only process is sshd; None keeps what the box has
    + simulated: whether it gets the simulated GPUs; None keeps what the box has
    + layers: what a fresh disk of it has on the image (tests/lab/layer.py), the lowest first

    As a context manager it is a fresh host on entry and is destroyed on exit.
    """

    def __init__(
        self,
        name: str,
        lab: Lab | None = None,
        *,
        user: str | None = None,
        systemd: bool | None = None,
        simulated: bool | None = None,
        layers: Sequence[Path] = (),
    ) -> None:
        letters = name.replace("-", "")
        if not (letters.isascii() and letters.isalnum() and len(name) <= 32 and name[0] != "-"):
            raise LabError(f"{name!r} cannot be a box: letters, digits and hyphens, 32 at most.")
        self.name = name
        self.lab = lab or Lab()
        self._user, self._systemd, self._simulated = user, systemd, simulated
        self._layers = tuple(layers)
        self.folder = self.lab.boxes / name
        self.file = self.lab.boxes / f"{name}.json"
        self.console = self.lab.boxes / f"{name}.console.log"
        self.group = Group(self.lab, f"box-{name}")

    @property
    def is_running(self) -> bool:
        """Whether any process of it runs."""
        return bool(self.group.processes())

    @property
    def connection(self) -> Connection:
        """How to reach it. Raises LabError for a box that was never booted."""
        found = Connection.read(self.file)
        if found is None:
            raise LabError(f"There is no box {self.name}. Boot it first.")
        return found

    @property
    def address(self) -> str:
        """Its loopback address: what a service in it binds."""
        return self.connection.ssh_hostname

    @property
    def root(self) -> Path:
        """Its root folder as seen from outside, while it runs; for root on this machine.

        Raises LabError when it does not run.
        """
        for pid in self.group.processes():
            try:
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:  # it ended meanwhile
                continue
            # The numbers of a process, from the outermost PID namespace to its own: init is 1.
            numbers = status.partition("NSpid:")[2].partition("\n")[0].split()
            if len(numbers) > 1 and numbers[-1] == "1":
                return Path(f"/proc/{pid}/root")
        raise LabError(f"The box {self.name} does not run.")

    def boot(self) -> Self:
        """Boot it, making it first if there is none, and wait until it can be worked with.

        A running box is left as it is. Raises LabError with the end of its console if it does not
        come up.
        """
        with self._turn():
            have = Connection.read(self.file)
            # A box that outlived systemd-nspawn would not come back from a reboot.
            if have is not None and self.group.named("systemd-nspawn"):
                want = self._wished(have)
                same = (want.systemd, want.simulated) == (have.systemd, have.simulated)
                if same and self._boot_id():
                    want.write(self.file)
                    return self
            self._start()
        return self

    def rebuild(self) -> Self:
        """Throw away all that was done in it and boot it: a freshly installed host.

        Its address stays; its machine id and its SSH host key do not, as on a rebuilt host.
        """
        with self._turn():
            self.group.end()
            disk.remove(self.folder)
            self._start()
        return self

    def reboot(self) -> Self:
        """Reboot it from inside (`systemctl reboot`) and wait until it is back."""
        with self._turn():
            if not self.connection.systemd:
                raise LabError(f"The box {self.name} has no systemd that could reboot it.")
            before = self.run("cat /proc/sys/kernel/random/boot_id", user="root").stdout
            self.run("systemctl reboot", user="root", check=False)
            self._wait(lambda: self._boot_id() not in {"", before})
        return self

    def cut(self) -> Self:
        """Cut its power: all its processes end at once. Its disk stays; `boot` boots it again."""
        with self._turn():
            self.group.end()
        return self

    def destroy(self) -> None:
        """Cut its power and remove it with all its files. No such box is no error."""
        with self._turn():
            self.group.end()
            disk.remove(self.folder)
            for path in (self.file, self.console, self._known_hosts):
                path.unlink(missing_ok=True)

    def run(
        self,
        command: str,
        *,
        user: str | None = None,
        stdin: str = "",
        check: bool = True,
        timeout: float = 120,
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell command in it over SSH.

        + user: who logs in; the box's user unless said otherwise
        + stdin: text for its standard input
        + check: raise LabError, with what it printed, if it fails
        + timeout: seconds
        """
        try:
            done = subprocess.run(
                [*self.connection.ssh(user), command],
                input=stdin,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired:
            raise LabError(f"{self.name}: {command!r} did not end in {timeout:.0f} s.") from None
        if check and done.returncode != 0:
            words = (done.stdout + done.stderr).strip()
            raise LabError(f"{self.name}: {command!r} ended with {done.returncode}:\n{words}")
        return done

    def __enter__(self) -> Self:
        return self.rebuild()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.destroy()

    @property
    def _known_hosts(self) -> Path:
        return self.lab.boxes / f"{self.name}.known_hosts"

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One change to a box at a time, also from several processes."""
        require("systemd-nspawn", "unshare", "mount", "ssh", "ssh-keygen")
        with lock(self.lab.boxes / f".{self.name}.lock"):
            yield

    def _start(self) -> None:
        """Boot what is on the disk, or a fresh disk, and wait for it."""
        self.group.end()  # half a box that an interrupted run left
        link = self._connect()
        if (self.folder / "upper").is_dir():
            disk.address(self.folder, link)
        else:
            disk.create(self.folder, image.ensure(self.lab), link, self._layers)
        if link.simulated and not (self.folder / "upper" / DESCRIPTION).exists():
            install(self.folder / "upper")
        self.group.start(nspawn.script(self.folder, link, self.lab.wheelhouse), self.console)
        self._wait(lambda: bool(self._boot_id()))

    def _connect(self) -> Connection:
        """Settle how the box is reached: as before if its address is still free."""
        with lock(self.lab.boxes / ".addresses.lock"):
            have = Connection.read(self.file)
            if have is None or not is_free(have.ssh_hostname, have.ssh_port):
                others = {other.ssh_hostname for other in connections(self.lab)}
                host, port = choose(self.lab, others)
            else:
                host, port = have.ssh_hostname, have.ssh_port
            link = have or Connection(self.name, host, port, "root", "", "")
            link = replace(
                self._wished(link),
                ssh_hostname=host,
                ssh_port=port,
                ssh_key=str(self.lab.key),
                ssh_known_hosts_file=str(self._known_hosts),
            )
            link.write(self.file)
        return link

    def _wished(self, have: Connection) -> Connection:
        """What was said of the box when this object was made; the rest as it is."""
        return replace(
            have,
            ssh_user=self._user or have.ssh_user,
            systemd=have.systemd if self._systemd is None else self._systemd,
            simulated=have.simulated if self._simulated is None else self._simulated,
        )

    def _boot_id(self) -> str:
        """What tells this boot from the next; empty while the box does not answer.

        Waits for systemd to be done with booting: logins of other users work from then on.
        """
        ready = "systemctl is-system-running --wait > /dev/null 2>&1;"
        ready = ready if self.connection.systemd else ""
        command = f"{ready} cat /proc/sys/kernel/random/boot_id"
        try:
            done = self.run(command, user="root", check=False, timeout=BOOT_TIMEOUT)
        except LabError:
            return ""
        return done.stdout if done.returncode == 0 else ""

    def _wait(self, is_up: Callable[[], bool]) -> None:
        deadline = time.monotonic() + BOOT_TIMEOUT
        while not is_up():
            if not self.is_running or time.monotonic() > deadline:
                self.group.end()
                words = self.console.read_text(errors="replace").split("\n")
                last = "\n".join(words[-15:])
                raise LabError(f"The box {self.name} did not come up. Its console:\n{last}")
            time.sleep(0.1)


def connections(lab: Lab) -> tuple[Connection, ...]:
    """How each box of the lab is reached, running or not, by name."""
    found = (Connection.read(path) for path in sorted(lab.boxes.glob("*.json")))
    return tuple(link for link in found if link is not None)
