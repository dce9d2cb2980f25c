"""Who listens on an address: the unit's own process, somebody else's, or nobody."""

import socket
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from urllib.parse import urlsplit

from operations.remote.switch.systemd import origin_of

LISTENS = "0A"
"""TCP_LISTEN of the kernel's table (include/net/tcp_states.h)."""

Address = IPv4Address | IPv6Address


@dataclass(frozen=True)
class Socket:
    """A socket that listens.

    + inode: by which the processes that hold it are found
    """

    address: Address
    port: int
    inode: int


@dataclass(frozen=True)
class Owner:
    """A process that holds a socket.

    + unit: the system's service or scope it belongs to
    + ours: it belongs to the unit that should listen
    """

    pid: int
    name: str
    unit: str | None
    ours: bool

    @property
    def words(self) -> str:
        """For people."""
        return f"{self.name} (pid {self.pid}, {self.unit or 'in no unit'})"


def endpoint(url: str) -> tuple[tuple[Address, ...], int]:
    """The addresses and the port that a URL leads to, as this machine resolves it."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except OSError:
        return (), port
    return tuple({ip_address(str(one[4][0]).partition("%")[0]) for one in found}), port


def sockets(text: str) -> list[Socket]:
    """Those that listen, of the kernel's table ``/proc/net/tcp`` or ``tcp6``. Other lines are
    passed over.

    >>> row = "0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 1"
    >>> sockets(row)
    [Socket(address=IPv4Address('127.0.0.1'), port=8000, inode=4711)]
    """
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) < 10 or words[3] != LISTENS:  # noqa: PLR2004 - the inode is the tenth
            continue
        host, _, port = words[1].rpartition(":")
        try:
            found.append(Socket(_address(host), int(port, 16), int(words[9])))
        except ValueError:
            continue
    return found


def _address(digits: str) -> Address:
    """An address in words of 32 bits, each in the byte order of a little-endian machine."""
    raw = bytes.fromhex(digits)
    turned = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    address = ip_address(turned)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def reached(listening: Iterable[Socket], addresses: Collection[Address], port: int) -> list[Socket]:
    """The sockets that a connection to an address reaches: an exact one before a wildcard.

    A wildcard of IPv6 takes IPv4 connections too, unless it was told otherwise.
    """
    here = [one for one in listening if one.port == port]
    exact = [one for one in here if one.address in addresses]
    return exact or [
        one
        for one in here
        if one.address.is_unspecified
        and any(one.address.version >= address.version for address in addresses)
    ]


def listening() -> list[Socket]:
    """All sockets of this machine that listen."""
    found = []
    for name in ("tcp", "tcp6"):
        try:
            found += sockets(Path("/proc/net", name).read_text())
        except OSError:
            continue
    return found


def owners(inode: int, unit: str) -> list[Owner]:
    """The processes that hold a socket; only the unit's own where there are any.

    + unit: that should listen
    + returns: nothing where they cannot be told
    """
    link = f"socket:[{inode}]"
    units = {
        int(path.name): _unit(int(path.name))
        for path in Path("/proc").iterdir()
        if path.name.isdecimal()
    }
    for ours in (True, False):
        found = [
            Owner(pid, _name(pid), of, ours)
            for pid, of in units.items()
            if (of == unit) is ours and _holds(pid, link)
        ]
        if found:
            return found
    return []


def _unit(pid: int) -> str | None:
    found = origin_of(pid)
    return found.unit if found else None


def _holds(pid: int, link: str) -> bool:
    try:
        paths = list(Path("/proc", str(pid), "fd").iterdir())
    except OSError:
        return False
    return any(_target(path) == link for path in paths)


def _target(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:  # closed meanwhile
        return ""


def _name(pid: int) -> str:
    try:
        return Path("/proc", str(pid), "comm").read_text().strip() or "?"
    except OSError:
        return "?"
