"""A run that is cut off in the middle: the next one ends in the same place.

Cut off is the controller (killed), the connection (its end on the box is killed) or the box (it
reboots). Until the switch the old service serves, and at no time do two engines share a GPU.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inventory.catalogue import KIMI_K25, MINIMAX_M25
from tests.deploys.state import probed, unlike
from tests.deploys.watch import Watch
from tests.lab import old_service
from tests.lab.base import Lab
from tests.lab.box import Box
from tests.lab.converge import pyinfra, started
from tests.lab.simulated import eight_gpus, install

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

DEPLOY = "deploys/minimax.py"
NEW, OLD = MINIMAX_M25.unit, KIMI_K25.unit

FIRST_STEPS = (
    # Operation, seconds into it, and how many layers the box has of what comes before it.
    ("packages, user, folders", 0.5, 0),
    ("programs", 3.0, 0),
    (": snapshot", 1.0, 2),
    (": engine", 3.0, 1),
)
"""Where a box that serves nothing but the old model is cut off."""

SIGNAL_FIRST = 1.0
"""Seconds by which systemd's line that it stops a unit may come after its signal, on a busy
machine: the line is written once the stop has begun."""


LAST_STEPS = (
    "Starting operation.*unit file",
    "Starting operation.*: serving",
    r"switch: .* stopped after",
    r"release: ",
    r"wait: .*load",
    r"wait: .*server",
    r"chat: ",
    r"switch: .* serves ",
)
"""Where a box that has snapshot and engine is cut off: after a line of the run."""


@pytest.fixture(scope="module")
def box(lab: Lab) -> Iterator[Box]:
    """A box with simulated GPUs whose memory comes back soon."""
    with Box("killed", lab, user="root", simulated=True) as box:
        yield box


def fresh(box: Box, layers: Sequence[Path] = ()) -> None:
    """A box that nothing but the old service and these layers is on."""
    Box(box.name, box.lab, layers=layers).rebuild()
    install(box.root, replace(eight_gpus(), release_seconds=0.5))
    old_service.install(box)


@pytest.fixture(scope="module")
def whole(box: Box, lab: Lab) -> dict[str, Any]:
    """What an undisturbed run makes of a fresh box."""
    fresh(box)
    run = pyinfra(DEPLOY, "-y", box=box.name)
    assert run.status == 0, run.text
    return probed(box, lab)


@pytest.fixture
def prepared(box: Box, whole: dict[str, Any]) -> Box:
    """A box that has snapshot and engine, and that the old service serves on."""
    assert whole
    box.run(
        f"systemctl disable --quiet --now {NEW} 2>/dev/null; "
        f"rm -rf /etc/systemd/system/{NEW} /var/lib/boxwright; systemctl daemon-reload; sleep 0.7"
    )
    old_service.install(box)
    return box


def cut_off(box: Box, after: str, cut: Callable[[Any], None], seconds: float = 0.0) -> float:
    """Start a run and cut it off.

    + after: pattern of a line that the run prints
    + cut: what is done to the running pyinfra
    + seconds: between the line and the cut
    + returns: when it was cut
    """
    with started(DEPLOY, "-y", box=box.name) as running:
        assert running.stdout
        seen = []
        for line in running.stdout:
            seen.append(line)
            if re.search(after, line):
                time.sleep(seconds)
                moment = time.time()
                cut(running)
                # An ssh that lost its box ends by itself; a controller must not wait for ever.
                running.kill()
                return moment
    raise AssertionError(f"{after} was never reached:\n{''.join(seen)}")


def kill(running: Any) -> None:
    """SIGKILL for the controller."""
    running.kill()


def ends_in_the_same_place(box: Box, lab: Lab, whole: dict[str, Any]) -> None:
    """The next run converges, the one after changes nothing, and no GPU has another process."""
    run = pyinfra(DEPLOY, "-y", box=box.name)
    assert run.status == 0, run.text
    assert unlike(probed(box, lab), whole) == []
    again = pyinfra(DEPLOY, "-y", box=box.name)
    assert (again.status, again.changed) == (0, []), again.text
    pids = box.run("nvidia-smi --query-compute-apps=pid --format=csv,noheader").stdout.split()
    units = [box.run(f"cat /proc/{pid}/cgroup").stdout for pid in pids]
    assert len(units) == 4
    assert all(NEW in unit for unit in units)


@pytest.mark.parametrize(("operation", "seconds", "layers"), FIRST_STEPS)
def test_a_controller_killed_while_it_prepares(
    box: Box,
    lab: Lab,
    whole: dict[str, Any],
    installed: list[Path],
    operation: str,
    seconds: float,
    layers: int,
) -> None:
    fresh(box, installed[:layers])
    with Watch(f"http://{box.address}:8000") as watch:
        moment = cut_off(box, f"Starting operation.*{operation}", kill, seconds)
    assert watch.answered_until(moment)
    ends_in_the_same_place(box, lab, whole)


@pytest.mark.parametrize("line", LAST_STEPS)
def test_a_controller_killed_around_the_switch(
    prepared: Box, lab: Lab, whole: dict[str, Any], line: str
) -> None:
    with Watch(f"http://{prepared.address}:8000") as watch:
        moment = cut_off(prepared, line, kill)
    since = f"--since @{watch.looks[0].at:.0f}"
    stopped = prepared.run(
        f"journalctl -u {OLD} -o short-unix --no-pager {since} | grep Stopping | tail -n 1"
    ).stdout.split()
    asked = float(stopped[0]) - SIGNAL_FIRST if stopped else moment
    assert watch.answered_until(min(moment, asked))
    ends_in_the_same_place(prepared, lab, whole)


@pytest.mark.parametrize("line", [LAST_STEPS[2], LAST_STEPS[4], LAST_STEPS[6]])
def test_a_box_that_reboots_in_the_middle_comes_back_serving(
    prepared: Box, lab: Lab, whole: dict[str, Any], line: str
) -> None:
    def power_cut(_: Any) -> None:
        prepared.cut()

    cut_off(prepared, line, power_cut)
    prepared.boot()
    with Watch(f"http://{prepared.address}:8000") as watch:
        end = time.monotonic() + 120
        while time.monotonic() < end and not any(look.model for look in watch.looks):
            time.sleep(0.1)
    served = {look.model for look in watch.looks} - {None}
    assert served, "nothing serves after the reboot"
    ends_in_the_same_place(prepared, lab, whole)


@pytest.mark.parametrize("line", [LAST_STEPS[0], LAST_STEPS[2], LAST_STEPS[4]])
def test_a_connection_that_breaks(
    prepared: Box, lab: Lab, whole: dict[str, Any], line: str
) -> None:
    def break_it(_: Any) -> None:
        # Only the sessions: the listening sshd stays, and this command's own ends last.
        prepared.run(
            "for p in /proc/[0-9]*; do read -r n <$p/comm; tr '\\0' ' ' <$p/cmdline | "
            "grep -q '^sshd: root@' && [ ${p#/proc/} != $PPID ] && kill ${p#/proc/}; done; :"
        )
        time.sleep(0.5)

    cut_off(prepared, line, break_it)
    ends_in_the_same_place(prepared, lab, whole)
