"""Who listens: the kernel's table, and the processes that hold a socket."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.common.switch import Target
from operations.remote.switch.systemd import origin_of
from operations.remote.switch.waiting import probe
from operations.remote.switch.waiting.listener import (
    Socket,
    endpoint,
    listening,
    owners,
    reached,
    sockets,
)

TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0
   1: 00000000:1F41 00000000:0000 0A 00000000:00000000 00:00000000 00000000   997        0 4712 1 0
   2: 0100007F:1F40 0100007F:D2A0 01 00000000:00000000 00:00000000 00000000     0        0 4713 1 0
"""
ZERO = "0" * 32
TABLE6 = f"""\
   0: {ZERO}:1F40 {ZERO}:0000 0A 0 0 0 0 0 5
   1: 0000000000000000FFFF00000200007F:1F40 {ZERO}:0000 0A 0 0 0 0 0 6
   2: 00000000000000000000000001000000:1F40 {ZERO}:0000 0A 0 0 0 0 0 7
"""


def sock(address: str, port: int, inode: int) -> Socket:
    return Socket(ip_address(address), port, inode)


def test_the_kernels_table() -> None:
    assert sockets(TABLE) == [sock("127.0.0.1", 8000, 4711), sock("0.0.0.0", 8001, 4712)]
    assert sockets(TABLE6) == [
        sock("::", 8000, 5),
        sock("127.0.0.2", 8000, 6),
        sock("::1", 8000, 7),
    ]


@given(st.text())
def test_any_table_can_be_read(text: str) -> None:
    assert isinstance(sockets(text), list)


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("127.0.0.1", {1}),  # an exact address is served before a wildcard
        ("127.0.0.2", {2, 3}),
        ("::1", {3}),  # the wildcard of IPv4 takes no IPv6
    ],
)
def test_what_a_connection_reaches(address: str, found: set[int]) -> None:
    here = [sock("127.0.0.1", 80, 1), sock("0.0.0.0", 80, 2), sock("::", 80, 3)]
    here.append(sock("127.0.0.1", 81, 4))
    assert {one.inode for one in reached(here, [ip_address(address)], 80)} == found


def test_where_a_url_leads() -> None:
    assert endpoint("http://127.0.0.1:8000") == ((ip_address("127.0.0.1"),), 8000)
    assert endpoint("http://[::1]:81/x") == ((ip_address("::1"),), 81)
    assert endpoint("http://no.such.host.invalid") == ((), 80)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def test_the_process_behind_a_socket(listener: socket.socket) -> None:
    address, port = listener.getsockname()
    (found,) = reached(listening(), [ip_address(address)], port)
    mine = next(one for one in owners(found.inode, "no-such.service") if one.pid == os.getpid())
    assert not mine.ours
    place = origin_of(os.getpid())
    assert place is not None
    assert f"(pid {os.getpid()}, {place.unit or 'in no unit'})" in mine.words
    assert owners(1, "no-such.service") == []


def test_nothing_listens(listener: socket.socket) -> None:
    _, port = listener.getsockname()
    listener.close()
    answer = probe.look(Target("x.service", f"http://127.0.0.1:{port}", "m"))
    assert (answer.owners, answer.health, answer.rounds) == ((), None, 1)
