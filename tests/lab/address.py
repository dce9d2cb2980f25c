"""Loopback addresses for boxes: each box listens on one of its own, in the host's network.

All of 127.0.0.0/8 is this machine, so a box needs no bridge, no firewall rule and no name server.
A lab has a stretch of 254 addresses that follows from its folder: two checkouts seldom share one,
and where they do, an address that is in use is passed over.
"""

import hashlib
import os
import socket
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from tests.lab.base import WORKER, Lab, LabError

# The host's own sshd may hold port 22 on every address.
SSH_PORTS: Final = (22, 2222, 22022)


def candidates(root: Path) -> Iterator[str]:
    """The addresses of a lab, `127.0.X.1` to `127.0.X.254`, best first.

    + root: the lab's folder; X follows from it and is between 2 and 254. Labs of
      tests that run side by side have one each
    """
    worker = root.name.removeprefix(WORKER) if root.name.startswith(WORKER) else ""
    usual = root.parent if worker.isdigit() else root
    number = 1 + int(worker) if worker.isdigit() else 0
    third = 2 + (hashlib.sha256(os.fsencode(usual)).digest()[0] + number) % 253
    return (f"127.0.{third}.{fourth}" for fourth in range(1, 255))


def is_free(host: str, port: int) -> bool:
    """Whether nothing listens there, on this address or on all of them."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As sshd does it: connections that have ended and linger do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen()
        except OSError:
            return False
    return True


def choose(lab: Lab, taken: Collection[str]) -> tuple[str, int]:
    """An address that no box of this lab has and nobody listens on, and a port for sshd.

    + taken: addresses of the lab's boxes, running or not

    Raises LabError when all are in use.
    """
    for port in SSH_PORTS:
        for host in candidates(lab.root):
            if host not in taken and is_free(host, port):
                return host, port
    raise LabError("The lab finds no free loopback address for another box. Destroy one.")
