"""Room on the file system that will hold a path."""

from __future__ import annotations

from collections.abc import Mapping

from pyinfra.api import StringCommand

from facts.box import Probed
from facts.query import Query
from facts.reading.disks import Disk, read_disks
from facts.sections import Section


class Disks(Probed[tuple[Disk, ...]]):
    """Returns the file systems that hold, or will hold, the given paths.

    .. code:: python

        [{"path": "/shared/models", "parent": "/shared", "available": 1099511627776, …}]
    """

    def command(self, paths: str = "/") -> StringCommand:
        """Read the file systems.

        + paths: absolute paths, separated by commas; they need not exist
        """
        return self.ask(Query(disks=tuple(paths.split(","))))

    def read(self, found: Mapping[str, Section]) -> tuple[Disk, ...]:
        """The disk section."""
        return read_disks(found)
