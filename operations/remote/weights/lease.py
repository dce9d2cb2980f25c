"""The lease: of all boxes and processes on one shared folder, one fetches and the others wait.

Not flock: on network file systems it fails (ENOLCK), or lets everybody in. A file made with O_EXCL
says who fetches; its modification time is the heartbeat. A process that waits compares two looks
by its own clock: the clocks of two machines are never compared.
"""

import contextlib
import json
import os
import secrets
import socket
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from inventory.common.fetch import FetchLimits
from inventory.common.wire import Wire
from operations.remote.weights.errors import LostLeaseError


@dataclass(frozen=True)
class LeaseOwner(Wire):
    """Who fetches, among all machines and containers.

    + boot: of the machine, and within it the container's numbering of processes
    + born: when the process started, in clock ticks since the boot
    + nonce: tells two leases of one process apart
    """

    tolerant: ClassVar[bool] = True

    host: str = "an unknown box"
    boot: str = ""
    pid: int | None = None
    born: str = ""
    nonce: str = ""


class Lease:
    """A claim on one folder."""

    def __init__(self, path: Path, limits: FetchLimits) -> None:
        self.path = path
        self.limits = limits
        self.owner = replace(identity(), nonce=secrets.token_hex(8))
        self.leader = "nobody"
        self._descriptor: int | None = None
        self._lost = threading.Event()
        self._ended = threading.Event()
        self._beating: threading.Thread | None = None
        self._seen: tuple[object, float] = (None, 0.0)

    def take(self) -> bool:
        """Try to become the one that fetches. Never waits.

        + raises: OSError where the folder takes no file
        """
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        for _ in range(2):
            try:
                descriptor = os.open(self.path, flags, 0o644)
            except FileExistsError:
                if not self._bury():
                    return False
                continue
            os.write(descriptor, json.dumps(self.owner.to_json()).encode())
            # The server's clock, by its own hand: utime without a time.
            self._descriptor = descriptor
            self._beating = threading.Thread(target=self._beat, name="lease", daemon=True)
            self._beating.start()
            return True
        return False

    def keep(self) -> None:
        """Go on only while the lease is this one's.

        + raises: LostLeaseError if another process has it
        """
        if self._lost.is_set() or not self._is_mine():
            self._lost.set()
            raise LostLeaseError(
                "another box took this fetch over, because this one gave no sign of life for "
                f"{self.limits.dead:.0f} s: nothing more is written here"
            )

    def release(self) -> None:
        """Let another one take it."""
        self._ended.set()
        if self._beating is not None:
            self._beating.join()
        if self._descriptor is not None:
            if self._is_mine():
                with contextlib.suppress(OSError):
                    self.path.unlink()
            os.close(self._descriptor)
            self._descriptor = None

    def _is_mine(self) -> bool:
        try:
            return _owner_in(self.path.read_text()) == self.owner
        except OSError:
            return False

    def _beat(self) -> None:
        while not self._ended.wait(self.limits.beat):
            try:
                # By the open file: a new lease of another process keeps its own time.
                os.utime(self._descriptor or -1)
                self.keep()
            except LostLeaseError:
                return
            except OSError:
                continue

    def _bury(self) -> bool:
        """Remove the lease that is there, if its holder is dead."""
        # Opening makes a network file system ask its server: a bare stat may come from a cache.
        try:
            with self.path.open() as stream:
                beat = os.fstat(stream.fileno()).st_mtime_ns
                text = stream.read()
        except FileNotFoundError:
            return True
        owner = _owner_in(text)
        self.leader = owner.host
        sign = (text, beat)
        if sign != self._seen[0]:
            self._seen = (sign, time.monotonic())
        silent = time.monotonic() - self._seen[1]
        if not gone(owner) and silent < self.limits.dead:
            return False
        grave = self.path.with_name(f"{self.path.name}.{self.owner.nonce}")
        try:
            self.path.rename(grave)
        except FileNotFoundError:
            return True
        buried = grave.read_text()
        if buried != text:
            # Somebody else buried it first, and this is the new holder's: give it back.
            with contextlib.suppress(FileExistsError):
                os.link(grave, self.path)
        grave.unlink()
        return buried == text


def _owner_in(text: str) -> LeaseOwner:
    """Who a lease names. Half a lease names nobody."""
    try:
        return LeaseOwner.from_json(json.loads(text))
    except ValueError:
        return LeaseOwner()


def identity() -> LeaseOwner:
    """Who this process is."""
    return LeaseOwner(socket.gethostname(), _boot(), os.getpid(), _born(os.getpid()))


def gone(owner: LeaseOwner) -> bool:
    """Whether a holder is certainly dead: it was on this machine, and its process is not there."""
    return owner.boot == _boot() and owner.pid is not None and _born(owner.pid) != owner.born


def _boot() -> str:
    """This boot of this machine, and within it this container's numbering of processes."""
    parts = []
    for path in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id"):
        with contextlib.suppress(OSError):
            parts.append(Path(path).read_text().strip())
    with contextlib.suppress(OSError):
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(parts)


def _born(pid: int) -> str:
    """When a process started, in clock ticks since the boot; empty for one that is not there."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[19]
