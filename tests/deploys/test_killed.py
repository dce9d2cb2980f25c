"""A controller that dies in the middle of a run: the next run ends in the same place."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.deploys.state import probed, unlike
from tests.lab import old_service
from tests.lab.base import Lab
from tests.lab.box import Box
from tests.lab.converge import pyinfra, started

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

DEPLOY = "deploys/minimax.py"


@pytest.fixture(scope="module")
def box(lab: Lab) -> Iterator[Box]:
    """A box with simulated GPUs."""
    with Box("killed", lab, user="root", simulated=True) as box:
        yield box


@pytest.fixture(scope="module")
def whole(box: Box, lab: Lab) -> dict[str, Any]:
    """What an undisturbed run makes of a fresh box."""
    old_service.install(box)
    run = pyinfra(DEPLOY, "-y", box=box.name)
    assert run.status == 0, run.text
    return probed(box, lab)


def killed_at(box: Box, operation: str, seconds: float) -> None:
    """Start a run and kill it, some seconds into an operation."""
    with started(DEPLOY, "-y", box=box.name) as running:
        assert running.stdout
        for line in running.stdout:
            if "Starting operation" in line and operation in line:
                time.sleep(seconds)
                running.kill()
                return
    raise AssertionError(f"{operation} was never reached")


@pytest.mark.parametrize(
    ("operation", "seconds"),
    [
        ("programs", 3.0),
        ("snapshot", 1.0),
        ("engine", 3.0),
        ("vllm-kimi-k25: stopped", 0.3),
        ("vllm-minimax-m25: running", 0.5),
        ("vllm-minimax-m25: ready", 0.3),
    ],
)
def test_the_next_run_ends_in_the_same_place(
    box: Box, lab: Lab, whole: dict[str, Any], operation: str, seconds: float
) -> None:
    box.rebuild()
    old_service.install(box)
    killed_at(box, operation, seconds)
    run = pyinfra(DEPLOY, "-y", box=box.name)
    assert run.status == 0, run.text
    assert unlike(probed(box, lab), whole) == []
    again = pyinfra(DEPLOY, "-y", box=box.name)
    assert (again.status, again.changed) == (0, []), again.text
