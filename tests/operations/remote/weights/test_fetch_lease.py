"""Who fetches where several could: one has the lease, and a dead one's is taken."""

import json
import os
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest

from inventory.common.fetch import FetchLimits
from operations.remote.weights.errors import LostLeaseError
from operations.remote.weights.lease import Lease, LeaseOwner, gone, identity

LIMITS = FetchLimits(beat=0.05, dead=0.4)


def test_one_has_it_until_it_lets_go(tmp_path: Path) -> None:
    first, second = (Lease(tmp_path / "lease", LIMITS) for _ in range(2))
    assert first.take()
    assert not second.take()
    assert second.leader == socket.gethostname()
    time.sleep(LIMITS.dead * 1.5)
    assert not second.take(), "it beats"
    first.keep()
    first.release()
    assert second.take()
    second.release()
    assert list(tmp_path.iterdir()) == []


def test_another_machines_is_dead_only_by_its_silence(tmp_path: Path) -> None:
    path = tmp_path / "lease"
    path.write_text(json.dumps(replace(identity(), boot="another", pid=1, nonce="x").to_json()))
    lease = Lease(path, LIMITS)
    assert not lease.take()
    time.sleep(LIMITS.dead / 2)
    os.utime(path)
    assert not lease.take()
    time.sleep(LIMITS.dead * 1.5)
    assert lease.take()
    lease.release()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"pid": "x"}'])
def test_half_a_lease_is_waited_for_too(tmp_path: Path, text: str) -> None:
    path = tmp_path / "lease"
    path.write_text(text)
    lease = Lease(path, LIMITS)
    assert not lease.take()
    time.sleep(LIMITS.dead * 1.5)
    assert lease.take()
    lease.release()


def test_a_lost_lease_is_noticed(tmp_path: Path) -> None:
    lease = Lease(tmp_path / "lease", LIMITS)
    assert lease.take()
    (tmp_path / "lease").write_text('{"nonce": "another"}')
    with pytest.raises(LostLeaseError):
        lease.keep()
    lease.release()
    assert (tmp_path / "lease").exists(), "it is not this one's to remove"


def test_a_process_is_gone_when_another_has_its_number() -> None:
    assert not gone(identity())
    assert gone(replace(identity(), born="1"))
    assert gone(replace(identity(), pid=1 << 22))
    assert not gone(replace(identity(), pid=1 << 22, boot="another machine"))
    assert not gone(LeaseOwner())
