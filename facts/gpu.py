"""GPUs and NUMA nodes of a box, each as a fact of its own."""

from collections.abc import Mapping

from pyinfra.api import StringCommand

from facts.box import Probed
from facts.hardware import parse_hardware
from facts.query import Query
from facts.sections import Section
from inventory.hardware import Hardware, NumaNode


class Gpus(Probed[Hardware]):
    """Returns the accelerators of a box and the state of their driver: memory, health, NUMA node,
    links, and who uses them.

    .. code:: python

        {"state": "ok", "gpus": [{"uuid": "GPU-…", "memory_total": 102641958912, …}], …}
    """

    read = staticmethod(parse_hardware)

    def command(self, sysfs: str = "/sys") -> StringCommand:
        """Read the hardware.

        + sysfs: root of the sysfs tree
        """
        return self.ask(Query(hardware=True, sysfs=sysfs))


class NumaNodes(Probed[tuple[NumaNode, ...]]):
    """Returns the NUMA nodes of a box: CPUs, memory, sockets.

    .. code:: python

        [{"id": 0, "cpus": "0-31,64-95", "memory_total": 540142534656, "socket": 0, …}, …]
    """

    def command(self, sysfs: str = "/sys") -> StringCommand:
        """Read the nodes.

        + sysfs: root of the sysfs tree
        """
        return self.ask(Query(hardware=True, sysfs=sysfs))

    def read(self, found: Mapping[str, Section]) -> tuple[NumaNode, ...]:
        """The nodes alone."""
        return parse_hardware(found).numa_nodes
