"""A snapshot's folder: manifest, and files by name and size."""

from __future__ import annotations

from collections.abc import Mapping

from pyinfra.api import StringCommand

from facts.box import Probed
from facts.query import Query
from facts.reading.snapshots import SnapshotState, read_snapshot
from facts.sections import Section


class Snapshots(Probed[SnapshotState]):
    """Returns what is in a snapshot's folder.

    .. code:: python

        {"exists": true, "manifest": {"repo": "…", "commit": "…", …}, "files": [{"path": …}]}
    """

    def command(self, folder: str) -> StringCommand:
        """Read the folder.

        + folder: absolute path of one commit's directory
        """
        return self.ask(Query(snapshot=folder))

    def read(self, found: Mapping[str, Section]) -> SnapshotState:
        """The snapshot sections."""
        return read_snapshot(found)
