"""NUMA nodes: CPUs, memory, sockets."""

from __future__ import annotations

from collections.abc import Mapping

from pyinfra.api import StringCommand

from facts.box import Probed
from facts.hardware import parse_hardware
from facts.query import Query
from facts.sections import Section
from inventory.hardware import NumaNode


class NumaNodes(Probed[tuple[NumaNode, ...]]):
    """Returns the NUMA nodes of a box.

    .. code:: python

        [{"id": 0, "cpus": "0-31,64-95", "memory_total": 540142534656, "socket": 0, …}, …]
    """

    def command(self, sysfs: str = "/sys") -> StringCommand:
        """Read the nodes.

        + sysfs: root of the sysfs tree
        """
        return self.ask(Query(hardware=True, sysfs=sysfs))

    def read(self, found: Mapping[str, Section]) -> tuple[NumaNode, ...]:
        """The NUMA section."""
        return parse_hardware(found).numa_nodes
