"""The fetch as a unit of a real box: it outlives its connection, is joined, and keeps the token."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from facts.query import verify_units
from inventory.catalogue import MINIMAX_M25
from inventory.snapshot import Snapshot
from operations.remote.weights.start import unit_name
from operations.tools import run_module, tools_folder
from operations.verification import verification_script
from tests.lab import layer
from tests.lab.base import Lab
from tests.lab.box import Box
from tests.lab.hub import Fault, RemoteHub, chosen, launched, write_model
from tests.operations.remote.weights.fetching import REPO, listing, request_for

pytestmark = [pytest.mark.lab, pytest.mark.timeout(180)]

TOKEN = "hf_SecretOfTheReader"  # noqa: S105
HOME = f"/shared/models/{REPO}"


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    """A box with boxwright's programs, and a service user that owns the model's folder."""
    lab = Lab()
    with Box("fetching", lab, user="root", layers=[layer.tools().ensure(lab)]) as box:
        box.run(f"useradd --system vllm; install -d -o vllm -g vllm {HOME}")
        yield box


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[RemoteHub]:
    write_model(tmp_path / REPO, shards=4, shard_bytes=12_000_000, seed=int(time.time()) % 1000)
    with launched(tmp_path) as hub:
        hub.configure(throttle=8_000_000)
        yield hub


@pytest.fixture
def snapshot(hub: RemoteHub, box: Box) -> Iterator[Snapshot]:
    snapshot = listing(hub)
    hub.forget_requests()
    yield snapshot
    box.run(f"systemctl stop {unit(snapshot)}; rm -rf {HOME}/{snapshot.commit} {HOME}/.fetching-*")


def unit(snapshot: Snapshot) -> str:
    return unit_name(f"{HOME}/{snapshot.commit}")


def request(hub: RemoteHub, snapshot: Snapshot, token: str | None = None, **limits: float) -> str:
    work = request_for(hub, snapshot, Path(HOME), limits={"interval": 0.5, **limits})
    return json.dumps({**work, "user": "vllm", "token": token})


def start(box: Box, text: str) -> subprocess.Popen[str]:
    """The command that an operation runs, over a connection of its own."""
    process = subprocess.Popen(
        [*box.connection.ssh("root"), run_module("weights.start")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdin
    process.stdin.write(text)
    process.stdin.close()
    process.stdin = None
    return process


def until_bytes(hub: RemoteHub, count: int) -> None:
    deadline = time.monotonic() + 60
    while sent(hub) < count:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def sent(hub: RemoteHub) -> int:
    return sum(one.sent for one in chosen(hub.requests(), method="GET") if "." in one.path)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    text, _ = process.communicate(timeout=120)
    return process.returncode, text


def is_whole(box: Box, snapshot: Snapshot) -> bool:
    """By coreutils on the box: sizes, owner, and the digests of what is in LFS."""
    sums = "\n".join(
        f"{file.digest.removeprefix('sha256:')}  {file.path}"
        for file in snapshot.files
        if file.digest.startswith("sha256:")
    )
    folder = f"{HOME}/{snapshot.commit}"
    box.run(f"cd {folder} && sha256sum --quiet -c -", stdin=sums + "\n")
    owners = box.run(f"find {folder} -type f -printf '%u %m\\n' | sort -u").stdout.split("\n")
    return set(owners) <= {"vllm 444", "vllm 644", ""}


def test_it_outlives_a_lost_connection_and_a_second_run_joins_it(
    box: Box, hub: RemoteHub, snapshot: Snapshot
) -> None:
    first = start(box, request(hub, snapshot))
    until_bytes(hub, 5_000_000)
    first.kill()
    ended(first)
    assert box.run(f"systemctl is-active {unit(snapshot)}").stdout.strip() == "active"
    status, text = ended(start(box, request(hub, snapshot)))
    assert status == 0, text
    assert "runs already: joining it" in text
    assert "GiB (" in text
    assert "complete, every byte hashed" in text
    assert sent(hub) == snapshot.size
    assert is_whole(box, snapshot)
    listed = box.run(f"ls -A {HOME}").stdout.split()
    assert listed == [snapshot.commit]


def test_a_second_run_has_nothing_to_do(box: Box, hub: RemoteHub, snapshot: Snapshot) -> None:
    hub.configure(throttle=0)
    assert ended(start(box, request(hub, snapshot)))[0] == 0
    before = box.run(f"find {HOME} -printf '%p %s %T@ %i\\n' | sort").stdout
    hub.forget_requests()
    status, text = ended(start(box, request(hub, snapshot)))
    assert (status, hub.requests()) == (0, ())
    assert "complete already" in text
    assert box.run(f"find {HOME} -printf '%p %s %T@ %i\\n' | sort").stdout == before


def test_killed_in_its_unit_it_goes_on(box: Box, hub: RemoteHub, snapshot: Snapshot) -> None:
    first = start(box, request(hub, snapshot))
    until_bytes(hub, snapshot.size // 2)
    box.run(f"systemctl kill -s KILL {unit(snapshot)}")
    status, text = ended(first)
    assert status == 1
    assert "ended: signal" in text
    hub.configure(throttle=0)
    assert ended(start(box, request(hub, snapshot)))[0] == 0
    assert sent(hub) - snapshot.size <= 4 * 10 * (1 << 20)
    assert is_whole(box, snapshot)


def test_a_fetch_that_hangs_ends_itself_and_is_started_anew(
    box: Box, hub: RemoteHub, snapshot: Snapshot
) -> None:
    """No worker gives up here by itself: the watch over the whole process is what is left."""
    hub.allow(tokens=[TOKEN], gated={REPO: [TOKEN]})
    hub.configure(throttle=0)
    shards = sum(file.path.endswith("safetensors") for file in snapshot.files)
    hub.inject(Fault("stall", path="*.safetensors", times=shards, at=4_000_000))
    patient = {"hang": 3.0, "silence": 600.0, "window": 600.0, "patience": 600.0}
    status, text = ended(start(box, request(hub, snapshot, TOKEN, **patient)))
    assert status == 0, text
    assert "fetch: hung: not a byte for 3 s" in text
    assert "complete, every byte hashed" in text
    assert is_whole(box, snapshot)
    assert sent(hub) - snapshot.size <= shards * 4 * (1 << 20), "what had come is kept"
    place = f"/run/boxwright/{unit(snapshot).removesuffix('.service')}"
    assert box.run(f"ls {place}").stdout.split() == ["log", "request.json"], "nor is the token left"


def test_a_power_cut_costs_hardly_a_byte(box: Box, hub: RemoteHub, snapshot: Snapshot) -> None:
    first = start(box, request(hub, snapshot))
    until_bytes(hub, snapshot.size // 2)
    box.cut()
    ended(first)
    box.boot()
    hub.configure(throttle=0)
    status, text = ended(start(box, request(hub, snapshot)))
    assert status == 0, text
    assert sent(hub) - snapshot.size <= 4 * 10 * (1 << 20)
    assert is_whole(box, snapshot)


def test_the_token_is_nowhere_to_be_read(box: Box, hub: RemoteHub, snapshot: Snapshot) -> None:
    hub.allow(tokens=[TOKEN], gated={REPO: [TOKEN]})
    status, text = ended(start(box, request(hub, snapshot)))
    assert status == 1
    assert "accept its licence" in text
    running = start(box, request(hub, snapshot, TOKEN))
    until_bytes(hub, 5_000_000)
    name = unit(snapshot)
    seen: dict[str, Any] = {
        "properties": box.run(f"systemctl show {name}; systemctl cat {name}").stdout,
        "arguments": box.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '").stdout,
        "environments": box.run("cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; :").stdout,
        "journal": box.run("journalctl --no-pager -n 500").stdout,
    }
    place = f"/run/boxwright/{name.removesuffix('.service')}"
    assert box.run(f"stat -c '%a %U' {place}/token").stdout.split() == ["600", "root"]
    other = box.run(f"runuser -u nobody -- cat {place}/token", check=False)
    assert other.returncode != 0
    status, text = ended(running)
    assert status == 0, text
    seen["output"] = text
    seen["files"] = box.run(f"grep -rs {TOKEN} {HOME} {place} /var/log; :").stdout
    assert {where for where, what in seen.items() if TOKEN in what} == set()
    assert box.run(f"ls {place}").stdout.split() == ["log", "request.json"]
    assert not any(one.authorized for one in chosen(hub.requests(), where="cdn"))


def test_it_runs_as_the_services_user(box: Box, hub: RemoteHub, snapshot: Snapshot) -> None:
    running = start(box, request(hub, snapshot))
    until_bytes(hub, 2_000_000)
    user = box.run("ps -eo user,args | grep -v grep | grep weights.fetch").stdout.split()[0]
    assert user == "vllm"
    assert tools_folder() in box.run(f"systemctl show -p ExecStart {unit(snapshot)}").stdout
    assert ended(running)[0] == 0


def test_bytes_that_go_bad_are_found_on_schedule_and_fetched_again(
    box: Box, hub: RemoteHub, snapshot: Snapshot
) -> None:
    hub.configure(throttle=0)
    assert ended(start(box, request(hub, snapshot)))[0] == 0
    folder = f"{HOME}/{snapshot.commit}"
    service = MINIMAX_M25.model_copy(
        update={"model": MINIMAX_M25.model.model_copy(update={"verify": "Sun 03:00"})}
    )
    verifier, timer = verify_units(service)
    box.run(verification_script(service, folder))
    assert box.run(f"systemctl is-enabled {timer}; systemctl is-active {timer}").stdout.split() == [
        "enabled",
        "active",
    ]
    box.run(f"systemctl start {verifier}")
    shard = next(file for file in snapshot.files if file.path.endswith("safetensors"))
    path = f"{folder}/{shard.path}"
    box.run(
        f"touch -r {path} /tmp/time; "
        f"printf x | dd of={path} bs=1 seek=5000 conv=notrunc status=none; "
        f"touch -r /tmp/time {path}"
    )
    assert "complete already" in ended(start(box, request(hub, snapshot)))[1], "a stat cannot know"
    failed = box.run(f"systemctl start {verifier}; journalctl -u {verifier} -n 20", check=False)
    assert f"1 files are not what the Hub lists: {shard.path}" in failed.stdout
    assert ended(start(box, request(hub, snapshot)))[0] == 0
    assert is_whole(box, snapshot)
    box.run(f"systemctl start {verifier}")
    off = service.model_copy(update={"model": MINIMAX_M25.model})
    box.run(verification_script(off, folder))
    assert "not-found" in box.run(f"systemctl show -p LoadState {timer} {verifier}").stdout
