"""Read by pyinfra before anything else: one supported series, and an answer for silent boxes."""

from pyinfra import config

from deploys.unreachable import explain_unreachable

config.REQUIRE_PYINFRA_VERSION = "~=3.10"

explain_unreachable()
