"""For all tests: how hypothesis looks for examples, and a lab for each worker."""

import os

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
