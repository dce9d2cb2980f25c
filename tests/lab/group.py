"""A control group of processes: how the lab knows what it started, and ends exactly that.

A process cannot leave its group unasked, its children are born in it, and the kernel keeps the
list. So there are no PID files that go stale, and no other process is ever touched. Each box also
needs a group of its own for another reason: systemd in the box keeps its books in the group that
it finds itself in, and two of them in one group would end each other's processes.
"""

import hashlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.lab.base import Lab, LabError, lock, require


def hierarchies(mountinfo: str) -> tuple[Path, ...]:
    """Where the control groups are in which systemd keeps its books.

    On a machine of today that is the one hierarchy (version 2); on a hybrid one also the named
    hierarchy of version 1.

    + mountinfo: the text of /proc/self/mountinfo
    """
    found = []
    for line in mountinfo.splitlines():
        left, separator, right = line.partition(" - ")
        kind, _, options = [*right.split(" "), "", "", ""][:3]
        named = kind == "cgroup" and "name=systemd" in options.split(",")
        if separator and (kind == "cgroup2" or named):
            found.append(Path(left.split(" ")[4]))
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True)
class Group:
    """The control group of one box, of the Hub, or of what makes the image or the wheelhouse.

    + lab: the lab that it belongs to
    + name: unique in that lab
    """

    lab: Lab
    name: str

    @property
    def folders(self) -> tuple[Path, ...]:
        """Its folder in each hierarchy, existing or not."""
        tag = hashlib.sha256(os.fsencode(self.lab.root)).hexdigest()[:12]
        mounted = hierarchies(Path("/proc/self/mountinfo").read_text())
        if not mounted:
            raise LabError("The lab needs control groups, and none are mounted here.")
        return tuple(folder / f"boxwright-lab-{tag}" / self.name for folder in mounted)

    def processes(self) -> frozenset[int]:
        """PIDs of its processes, those of the groups below included."""
        found: set[int] = set()
        # os.walk passes over groups that vanish while it looks, as those of ended sessions do.
        for folder, _, _ in (place for top in self.folders for place in os.walk(top)):
            try:
                found.update(map(int, Path(folder, "cgroup.procs").read_text().split()))
            except OSError:  # vanished, too
                continue
        return frozenset(found - {0})

    def named(self, name: str) -> frozenset[int]:
        """PIDs of those of its processes that have this name (at most 15 letters of it)."""
        found = set()
        for pid in self.processes():
            try:
                if Path(f"/proc/{pid}/comm").read_text() == f"{name[:15]}\n":
                    found.add(pid)
            except OSError:  # it ended meanwhile
                continue
        return frozenset(found)

    def inside(self, command: Sequence[str]) -> list[str]:
        """The command that runs the given one in the group; the group is made."""
        for folder in self.folders:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise LabError(
                    f"The lab needs control groups that it may change: {error}. In a container, "
                    "it must be a privileged one."
                ) from None
        join = [f"echo $$ > {shlex.quote(str(folder))}/cgroup.procs" for folder in self.folders]
        return ["sh", "-c", "\n".join(["set -e", *join, 'exec "$@"']), "sh", *command]

    def start(self, script: str, log: Path) -> None:
        """Run a shell script in the group, in the background, in a session of its own.

        + script: for /bin/sh
        + log: file for its output
        """
        require("setsid")
        # --fork: the script is nobody's child here, so nothing has to wait for it. It is in the
        # group from its first moment on.
        with log.open("wb") as file:
            done = subprocess.run(
                self.inside(["setsid", "--fork", "sh", "-c", script]),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd="/",
                check=False,
            )
        if done.returncode != 0:
            raise LabError(f"{self.name} could not be started: {log.read_text().strip()}")

    def end(self, timeout: float = 20) -> None:
        """End all its processes at once (SIGKILL) and remove it. Nothing there is no error.

        + timeout: seconds until LabError
        """
        deadline = time.monotonic() + timeout
        while pids := self.processes():
            if time.monotonic() > deadline:
                listed = ", ".join(map(str, sorted(pids)))
                raise LabError(f"These processes of {self.name} cannot be ended: {listed}.")
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.02)
        for folder in self.folders:
            _remove(folder, deadline)


def groups(lab: Lab) -> Iterator[Group]:
    """All groups of this lab that exist, in whatever state an earlier run left them."""
    names = {
        path.name
        for folder in Group(lab, "any").folders
        if folder.parent.is_dir()
        for path in folder.parent.iterdir()
        if path.is_dir()
    }
    return (Group(lab, name) for name in sorted(names))


def _remove(folder: Path, deadline: float) -> None:
    """Remove a group and those below it; the kernel may need a moment after the last process."""
    if not folder.is_dir():
        return
    for path in [Path(place) for place, _, _ in os.walk(folder, topdown=False)]:
        while True:
            try:
                path.rmdir()
                break
            except FileNotFoundError:
                break
            except OSError as error:
                if time.monotonic() > deadline:
                    raise LabError(
                        f"The control group {path} cannot be removed: {error}."
                    ) from None
                time.sleep(0.02)
    try:
        folder.parent.rmdir()
    except OSError:  # other boxes still have theirs
        return


@contextmanager
def making(lab: Lab, name: str) -> Iterator[Group]:
    """A group for the programs that make one of the caches, one maker at a time.

    A maker that was killed may have left its programs running: they are ended first. This one's
    are ended in any case, also when it fails.

    + name: of the cache
    """
    group = Group(Lab(lab.caches, lab.caches), f"make-{name}")
    with lock(lab.caches / f"{name}.lock"):
        group.end()
        try:
            yield group
        finally:
            group.end()
