"""GPUs of a real systemd box are seen to be free, leftovers are ended and strangers are not."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import time
from collections.abc import Iterator

import pytest

from operations.remote.switch.gpu_memory.leftovers import end
from operations.tools import programs
from tests.lab.base import Lab
from tests.lab.box import Box
from tests.lab.simulated import eight_gpus
from tests.lab.simulated.gpus.description import DESCRIPTION

UUIDS = [gpu.uuid for gpu in eight_gpus().gpus]
OLD = "vllm-old.service"
FOLDER = "/opt/releasing"
UNPACK = f"""
import json, pathlib, sys
for name, text in json.load(sys.stdin).items():
    path = pathlib.Path("{FOLDER}") / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
"""
BOOKS = "/dev/simulated-gpus"


def test_only_a_member_of_the_group_is_ended() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        assert end(process.pid, OLD) is None
        assert process.poll() is None
        process.kill()
    assert end(process.pid, OLD) is None, "it is gone"


@pytest.fixture(scope="module")
def machine() -> Iterator[Box]:
    """A box with simulated GPUs and the programs of the switch."""
    with Box("releasing", Lab(), user="root", simulated=True) as box:
        box.run(f"python3 -c {shlex.quote(UNPACK)}", stdin=json.dumps(programs()))
        # Long enough to be seen on a machine that is busy with other tests.
        write = "import json, sys; d = json.load(open(sys.argv[1])); d['release_seconds'] = 4.0; "
        write += "json.dump(d, open(sys.argv[1], 'w'))"
        box.run(f"python3 -c {shlex.quote(write)} /{DESCRIPTION}")
        yield box


@pytest.fixture
def box(machine: Box) -> Iterator[Box]:
    """That box, where nobody holds a GPU and the driver works."""
    machine.run(f"rm -rf {BOOKS}/*")
    yield machine
    machine.run(
        f"rm -f {BOOKS}/mode.json; systemctl stop {OLD} tenant.service stray.scope 2>&1; "
        "kill -KILL $(nvidia-smi --query-compute-apps=pid --format=csv,noheader) 2>&1; :"
    )


def unit(box: Box, script: str, kill_mode: str = "mixed") -> None:
    """Start the old service: a shell script that holds GPUs."""
    box.run(
        f"cat >/etc/systemd/system/{OLD} && systemctl daemon-reload && systemctl start {OLD}",
        stdin=f"[Service]\nKillMode={kill_mode}\nExecStart=/bin/sh -c {shlex.quote(script)}\n",
    )


def until_held(box: Box, count: int) -> list[int]:
    """The processes on the GPUs, once there are so many."""
    ask = "nvidia-smi --query-compute-apps=pid --format=csv,noheader"
    deadline = time.monotonic() + 15
    while len(pids := box.run(ask).stdout.split()) < count:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return [int(pid) for pid in pids]


def release(
    box: Box, *gpus: int, timeout: float = 30, more: str = f"--units {OLD}", before: str = ":"
) -> tuple[int, list[str]]:
    """Exit status and lines of the program.

    + before: a command to run first, over the same connection
    """
    chosen = ",".join(UUIDS[gpu] for gpu in gpus)
    words = (
        f"-m operations.remote.switch.gpu_memory.release --gpus {chosen} --timeout {timeout} {more}"
    )
    done = box.run(f"{before}; cd {FOLDER} && exec python3 {words}", check=False)
    print(done.stdout)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def seconds(line: str) -> float:
    return float(line.split()[1])


def clock(text: str) -> int:
    """Seconds of a time of day."""
    hours, minutes, rest = map(int, text.split(":"))
    return hours * 3600 + minutes * 60 + rest


def alive(box: Box, pid: int) -> bool:
    return box.run(f"kill -0 {pid}", check=False).returncode == 0


@pytest.mark.lab
def test_free_gpus_cost_two_readings(box: Box) -> None:
    box.run("systemd-run --unit tenant simulated-hold 4 60")  # another card's
    until_held(box, 1)
    status, (line,) = release(box, 0, 1, 2, 3)
    assert status == 0
    assert re.fullmatch(r"release: +[0-9.]+ s  4 GPUs are free", line)
    assert seconds(line) < 5


@pytest.mark.lab
def test_memory_that_comes_back_late_is_waited_for(box: Box) -> None:
    unit(box, "simulated-hold 0 60 & simulated-hold 1 20 & wait")
    until_held(box, 2)
    status, (first, last) = release(box, 0, 1, before=f"systemctl stop {OLD}")
    assert status == 0
    held = f"60.0 GiB of GPU 0 ({UUIDS[0][:12]}), 20.0 GiB of GPU 1 ({UUIDS[1][:12]})"
    assert f"{held} in use, by no process that is shown" in first
    assert last.endswith("2 GPUs are free")
    assert seconds(last) > seconds(first)


@pytest.mark.lab
def test_what_a_stopped_unit_left_behind_is_ended(box: Box) -> None:
    unit(box, "simulated-hold 0 60 & simulated-hold 1 20 & wait", kill_mode="process")
    pids = until_held(box, 2)
    box.run(f"systemctl stop {OLD}")
    assert all(alive(box, pid) for pid in pids)
    status, lines = release(box, 0, 1)
    assert status == 0
    for pid in pids:
        assert any(
            line.endswith(f"ended python3 simulated-hold (pid {pid}), left behind by {OLD}")
            for line in lines
        )
        assert not alive(box, pid)


@pytest.mark.lab
def test_a_service_that_still_runs_is_waited_for_and_named(box: Box) -> None:
    unit(box, "exec simulated-hold 0 60")
    (pid,) = until_held(box, 1)
    assert release(box, 0, more=f"--units {OLD} --look") == (0, ["no process of others"])
    status, lines = release(box, 0, timeout=2)
    assert status == 1
    assert re.search(
        rf"GPUs not free after [0-9]+ s: python3 simulated-hold \(pid {pid}, in {OLD}, since "
        r"[0-9:]{8}, [0-9]+ s ago\) holds 60.0 GiB of GPU 0",
        lines[-1],
    )
    assert alive(box, pid)


@pytest.mark.lab
def test_a_stranger_is_named_and_untouched_and_nothing_is_stopped(box: Box) -> None:
    unit(box, "exec simulated-hold 0 60")
    box.run("systemd-run --unit tenant simulated-hold 1 30")
    until_held(box, 2)
    main = box.run("systemctl show -p MainPID --value tenant").stdout.strip()
    status, (line,) = release(box, 0, 1, more=f"--units {OLD} --look")
    assert status == 1
    told = re.fullmatch(
        rf"python3 simulated-hold \(pid {main}, in tenant.service, since ([0-9:]{{8}}), "
        r"[0-9]+ s ago\) holds 30.0 GiB of GPU 1 \(GPU-00000001\)",
        line,
    )
    assert told
    started = box.run(f"ps -o lstart= -p {main}").stdout.split()[3]
    assert abs(clock(told[1]) - clock(started)) <= 2
    assert box.run(f"systemctl is-active {OLD} tenant").stdout.split() == ["active"] * 2
    began = time.monotonic()
    status, lines = release(box, 1, timeout=60)
    assert status == 1
    assert 3 <= time.monotonic() - began < 40, "it does not wait for the timeout"
    assert f"pid {main}, in tenant.service" in lines[-1]
    assert lines[-1].endswith("not one of ours, and left alone")
    assert alive(box, int(main))


@pytest.mark.lab
def test_memory_of_nobody_beside_a_service_that_runs_is_told_before_it_is_stopped(box: Box) -> None:
    unit(box, "exec simulated-hold 0 60")
    box.run("simulated-hold 1 30 0.1")  # it ends, and its memory stays for longer than is waited
    box.run(f"touch -d '+1 hour' {BOOKS}/{UUIDS[1]}.*")
    until_held(box, 1)
    status, (line,) = release(box, 0, 1, more=f"--units {OLD} --look")
    assert status == 1
    assert line == f"30.0 GiB of GPU 1 ({UUIDS[1][:12]}) in use, by no process that is shown"
    status, lines = release(box, 1, timeout=1)
    assert status == 1
    assert "nvidia-smi --gpu-reset" in lines[-1]


@pytest.mark.lab
def test_one_that_left_its_unit_is_a_stranger(box: Box) -> None:
    unit(box, "systemd-run --scope --unit stray simulated-hold 0 20 & exec sleep 60", "process")
    (pid,) = until_held(box, 1)
    box.run(f"systemctl stop {OLD}")
    status, lines = release(box, 0)
    assert (status, alive(box, pid)) == (1, True)
    assert f"pid {pid}, in stray.scope" in lines[-1]


@pytest.mark.lab
@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ({"mode": "hang"}, "no answer within 2 s"),
        ({"mode": "lost", "gpu": 1}, "no row for it: Unable to determine the device handle"),
        ({"mode": "no-driver"}, "ended with status 9: NVIDIA-SMI has failed because"),
        ({"mode": "mismatch"}, "Driver/library version mismatch"),
    ],
)
def test_a_card_that_does_not_answer_is_not_free(
    box: Box, mode: dict[str, object], said: str
) -> None:
    box.run(f"cat >{BOOKS}/mode.json", stdin=json.dumps(mode))
    status, lines = release(box, 0, 1, timeout=2)
    assert status == 1
    assert said in lines[-1]
    assert UUIDS[1] in lines[-1]
    if mode["mode"] == "lost":
        status, lines = release(box, 0, 1, more="--look")
        assert status == 1
        assert said in lines[-1]
        assert release(box, 0, 2, more="--look") == (0, ["no process of others"])
