"""The SSH link of a real box."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import paramiko
import pytest

from facts.link import tune
from tests.lab.base import Lab
from tests.lab.box import Box


@pytest.mark.lab
def test_nagle_is_off_and_keepalive_is_on() -> None:
    with Box("link", Lab(), user="root", simulated=False) as box:
        link = box.connection
        client = paramiko.SSHClient()
        client.load_host_keys(link.ssh_known_hosts_file)
        client.connect(link.ssh_hostname, link.ssh_port, link.ssh_user, key_filename=link.ssh_key)
        transport = client.get_transport()
        assert transport is not None
        assert isinstance(transport.sock, socket.socket)
        option = (socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert transport.sock.getsockopt(*option) == 0
        assert tune(SimpleNamespace(client=client))
        assert transport.sock.getsockopt(*option) == 1
        client.close()


def test_a_connector_without_ssh_has_nothing_to_tune() -> None:
    assert not tune(SimpleNamespace())
