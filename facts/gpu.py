"""GPUs: memory, health, NUMA node, links, and who uses them."""

from __future__ import annotations

from collections.abc import Mapping

from pyinfra.api import StringCommand

from facts.box import Probed
from facts.hardware import parse_hardware
from facts.query import Query
from facts.sections import Section
from inventory.hardware import Hardware


class Gpus(Probed[Hardware]):
    """Returns the accelerators of a box and the state of their driver.

    .. code:: python

        {"state": "ok", "gpus": [{"uuid": "GPU-…", "memory_total": 102641958912, …}], …}
    """

    def command(self, sysfs: str = "/sys") -> StringCommand:
        """Read the hardware.

        + sysfs: root of the sysfs tree
        """
        return self.ask(Query(hardware=True, sysfs=sysfs))

    def read(self, found: Mapping[str, Section]) -> Hardware:
        """The hardware sections."""
        return parse_hardware(found)
