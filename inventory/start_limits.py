"""What follows from the time that a load may need: when systemd and the switch give up."""

import math
from typing import NamedTuple

LONGEST_LOAD_SECONDS = 900
"""The longest load in the field log behind the catalogue: Kimi-K2.5 NVFP4, 13 minutes."""
RESTART_SECONDS = 15
START_BURST = 3
STOP_SECONDS = 60
"""The server drains, and its workers get 9 s and more of their own before they are killed."""
_LOADS = 2
_MARGIN = 1.2
"""One fifth more than the starts themselves, so that none slips out of the interval."""


class StartLimits(NamedTuple):
    """Seconds, except for the burst. The unit, the wait and the answer of the fit say these."""

    load: int
    """That a load may need."""
    patience: int
    """A start that is not ready by then never will be."""
    interval: int
    """StartLimitIntervalSec: as many failures as the burst fall into it, however late each is."""
    burst: int = START_BURST
    restart: int = RESTART_SECONDS
    stop: int = STOP_SECONDS


def start_limits(load_seconds: int | None) -> StartLimits:
    """The limits of a service.

    + load_seconds: that a load may need; None where nothing is known of it

    >>> start_limits(300)
    StartLimits(load=300, patience=600, interval=1134, burst=3, restart=15, stop=60)
    """
    load = load_seconds or LONGEST_LOAD_SECONDS
    interval = math.ceil(START_BURST * (load + RESTART_SECONDS) * _MARGIN)
    return StartLimits(load, _LOADS * load, interval)
