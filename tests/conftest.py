"""For all tests: how hypothesis looks for examples, a lab for each worker, and long files first."""

import os

import pytest
from hypothesis import settings

from tests.lab.base import REPO, WORKER

# Boxes, Hub and lock files of its own. For the programs that a test starts, too.
if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    os.environ["LAB_ROOT"] = str(REPO / ".lab" / f"{WORKER}{worker.removeprefix('gw')}")

# A busy machine is no failure; and with HYPOTHESIS_EXAMPLES a search can be made longer.
settings.register_profile(
    "boxwright",
    parent=settings.default,
    deadline=None,
    max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "100")),
)
settings.load_profile("boxwright")

LONG_FILES = (
    "test_real_engine",
    "test_killed",
    "test_simulated_gpus",
    "test_switch",
    "test_weights",
    "test_release",
    "test_fetch_unit",
    "test_fetch_faults",
    "test_real_faults",  # stands on the layer that test_real_engine makes, and would make its own
    "test_wait_unit",
)
"""Those that take minutes, in the order in which workers take them; short ones fill the rest."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long files first: at the end no worker is left alone with one."""
    place = {name: number for number, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))
