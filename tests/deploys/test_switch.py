"""What a switch does when it goes wrong: the worst outcome is the old service back."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inventory.catalogue import KIMI_K25, MINIMAX_M25
from operations.tools import run_module
from tests.deploys.watch import Watch
from tests.lab import old_service
from tests.lab.base import Lab
from tests.lab.box import Box
from tests.lab.converge import Run, pyinfra
from tests.lab.desired import host
from tests.lab.simulated import eight_gpus, install

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

DEPLOY = "deploys/minimax.py"
NEW, OLD = MINIMAX_M25.unit, KIMI_K25.unit
TINY = "lab/tiny-minimax-m2"

BROKEN = """
import sys
from operations.remote.switch import carry_out
from operations.remote.switch.waiting.wait import Watch
Watch.by_unit = None
sys.exit(carry_out.main())
"""
"""The program, with an error of its own while it waits."""

MOST_SECONDS_LATE = 2.0
"""From a crash to the old service's answer, beside the old service's own start."""


@pytest.fixture(scope="module")
def box(lab: Lab, installed: list[Path]) -> Iterator[Box]:
    """A box whose old service serves, with everything prepared for the new one."""
    with Box("switching", lab, user="root", simulated=True, layers=installed) as box:
        install(box.root, replace(eight_gpus(), release_seconds=0.5))
        old_service.install(box)
        yield box


def plan(box: Box, service: str = TINY, **settings: Any) -> None:
    """What stub engines do at their next start."""
    text = json.dumps({"load_seconds": 0.5, "services": {service: settings}})
    box.run("cat >/opt/simulated/plan.json", stdin=text)


def back_to_the_old(box: Box) -> None:
    """As if the new service had never been there, its snapshot and engine apart."""
    box.run(
        f"systemctl disable --quiet --now {NEW} 2>/dev/null; "
        f"rm -rf /etc/systemd/system/{NEW} /var/lib/boxwright /opt/simulated/plan.json; "
        "systemctl daemon-reload; sleep 0.7"
    )
    old_service.install(box)


def serving(box: Box) -> str | None:
    """Name of the model that answers."""
    with Watch(f"http://{box.address}:8000") as watch:
        pass  # one look
    return watch.looks[-1].model


def state(box: Box, unit: str) -> tuple[str, str]:
    """Active state and enablement."""
    shown = box.run(f"systemctl show -P ActiveState -P UnitFileState {unit}").stdout.split()
    return shown[0], shown[1] if len(shown) > 1 else ""


def failed(run: Run) -> None:
    """The run failed, and said why in four parts."""
    assert run.status != 0, run.text
    assert run.four_parts == ["wanted", "found", "why", "next"], run.text


def seconds_to_come_back(box: Box, watch: Watch) -> float:
    """From the crash of the new service to an answer of the old one, its own start left out."""

    def moments(unit: str, words: str) -> list[float]:
        show = f"journalctl -u {unit} -o short-unix --no-pager | grep -E '{words}'"
        return [float(line.split()[0]) for line in box.run(show).stdout.splitlines()]

    crashed = moments(NEW, "Main process exited")[-1]
    started, up = moments(OLD, "systemd.*: Started|startup complete")[-2:]
    return watch.gap()[1] - crashed - (up - started)


def test_a_sampler_that_runs_out_of_memory_brings_the_old_service_back(box: Box) -> None:
    late: list[float] = []
    # Beside other tests one try may be slow; a slow way back is slow in each.
    while len(late) < 3 and (not late or late[-1] > MOST_SECONDS_LATE):
        plan(box, crash="sampler-oom")
        with Watch(f"http://{box.address}:8000") as watch:
            run = pyinfra(DEPLOY, "-y", box=box.name)
        failed(run)
        # The cause and its remedy, not the echoes, and what serves now.
        assert "CUDA out of memory occurred when warming up sampler" in run.text
        assert re.search(r"next: .*--max-num-seqs \d+", run.text)
        assert f"{OLD} answers again" in run.text
        assert state(box, OLD) == ("active", "enabled")
        assert state(box, NEW)[0] == "inactive"
        assert serving(box) == KIMI_K25.served_model_name
        late.append(seconds_to_come_back(box, watch))
    assert min(late) <= MOST_SECONDS_LATE, late


def test_the_next_run_tries_again_and_switches(box: Box) -> None:
    plan(box)
    run = pyinfra(DEPLOY, "-y", box=box.name)
    assert run.status == 0, run.text
    assert state(box, NEW) == ("active", "enabled")
    assert state(box, OLD) == ("inactive", "disabled")
    assert re.search(r"switch: downtime [0-9.]+ s: stop [0-9.]+, release [0-9.]+, load", run.text)
    again = pyinfra(DEPLOY, "-y", box=box.name)
    assert (again.status, again.changed) == (0, []), again.text


def test_another_text_of_the_same_unit_is_taken_back_too(
    box: Box, lab: Lab, tmp_path: Path
) -> None:
    before = box.run(f"cat /etc/systemd/system/{NEW}").stdout
    name, known = host(box.name, lab)
    known["override"][MINIMAX_M25.name] = {"listen": {"served_model_name": "renamed"}}
    path = tmp_path / "inventory_of_a_test.py"
    path.write_text(f"boxes = [({name!r}, {known!r})]\n")
    plan(box, "renamed", crash="no-cache-blocks")
    run = pyinfra(DEPLOY, "-y", inventory=path)
    failed(run)
    assert f"{NEW} answers again" in run.text, run.text
    assert box.run(f"cat /etc/systemd/system/{NEW}").stdout == before
    assert (serving(box), state(box, NEW)) == (TINY, ("active", "enabled"))
    again = pyinfra(DEPLOY, "-y", box=box.name)
    assert again.status == 0, again.text


def test_an_error_of_the_program_itself_brings_the_old_service_back(box: Box) -> None:
    request = json.loads(box.run("cat /run/boxwright/switch/request.json").stdout)
    box.run(f"systemctl stop {NEW}; sleep 0.7")
    old_service.install(box)
    program = shlex.split(run_module("switch.carry_out"))[0]
    done = box.run(f"{program} -c {shlex.quote(BROKEN)}", stdin=json.dumps(request), check=False)
    assert done.returncode == 1
    assert "switch: failed: TypeError: 'NoneType' object is not callable" in done.stdout
    assert f"{OLD} was not seen to answer" in done.stdout
    end = time.monotonic() + 120
    while serving(box) != KIMI_K25.served_model_name:
        assert time.monotonic() < end


def test_a_service_that_answers_is_not_taken_back_for_a_note(box: Box) -> None:
    back_to_the_old(box)
    plan(box)
    # Where the note belongs there is something that cannot be replaced.
    box.run(f"mkdir -p /var/lib/boxwright/ready/{NEW}/in-the-way")
    run = pyinfra(DEPLOY, "-y", box=box.name)
    failed(run)
    assert f"wanted: {NEW} enabled and on record" in run.text
    assert serving(box) == TINY
    started = box.run(f"systemctl show -P InvocationID {NEW}").stdout
    box.run(f"rm -r /var/lib/boxwright/ready/{NEW}")
    run = pyinfra(DEPLOY, "-y", box=box.name)
    assert run.status == 0, run.text
    assert box.run(f"systemctl show -P InvocationID {NEW}").stdout == started
    assert state(box, OLD) == ("inactive", "disabled")


def test_the_wreck_is_kept_where_that_is_asked_for(box: Box) -> None:
    back_to_the_old(box)
    plan(box, crash="kv-too-small")
    run = pyinfra(DEPLOY, "-y", "--data", "rollback=false", box=box.name)
    failed(run)
    assert "nothing is serving on this box" in run.text
    assert state(box, OLD)[0] == "inactive"


def test_a_first_deploy_has_nothing_to_go_back_to(box: Box) -> None:
    box.run(f"systemctl disable --quiet --now {NEW} {OLD}; rm -rf /var/lib/boxwright; sleep 0.7; :")
    plan(box, crash="driver-too-old")
    run = pyinfra(DEPLOY, "-y", box=box.name)
    failed(run)
    assert "nothing is serving on this box" in run.text
    assert "rollback" not in run.text.partition("Starting operation")[2]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"crash": "no-device", "exit": 0}, "status 0"),
        ({"serve": "die"}, "chat"),
        ({"serve": "error"}, "chat"),
    ],
    ids=str,
)
def test_every_way_to_fail_ends_with_the_old_service(
    box: Box, settings: dict[str, Any], says: str
) -> None:
    back_to_the_old(box)
    plan(box, **settings)
    run = pyinfra(DEPLOY, "-y", box=box.name)
    failed(run)
    assert says in run.text
    assert f"{OLD} answers again" in run.text
    assert serving(box) == KIMI_K25.served_model_name


def test_a_stranger_on_the_gpus_is_named_and_nothing_is_stopped(box: Box) -> None:
    back_to_the_old(box)
    plan(box)
    hold = "for g in 1 5; do simulated-hold $g 2 & done; wait"
    box.run(f"systemd-run --quiet --unit=stranger sh -c '{hold}'")
    holders = "nvidia-smi --query-compute-apps=pid --format=csv,noheader | wc -l"
    box.run(f"until [ $({holders}) = 10 ]; do sleep 0.1; done", timeout=20)
    started = box.run(f"systemctl show -P InvocationID {OLD}").stdout
    run = pyinfra(DEPLOY, "-y", box=box.name)
    assert box.run(holders).stdout.strip() == "10"
    box.run("systemctl stop stranger; sleep 0.7")
    failed(run)
    assert "stranger.service" in run.text
    assert box.run(f"systemctl show -P InvocationID {OLD}").stdout == started
    assert serving(box) == KIMI_K25.served_model_name
