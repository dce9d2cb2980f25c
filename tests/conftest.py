"""For all tests: how hypothesis looks for examples."""

import os

from hypothesis import settings

# A busy machine is no failure; and with HYPOTHESIS_EXAMPLES a search can be made longer.
settings.register_profile(
    "boxwright",
    parent=settings.default,
    deadline=None,
    max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "100")),
)
settings.load_profile("boxwright")
