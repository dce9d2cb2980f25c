"""Parts of a box, each as a fact of its own: disks, engines, listeners, snapshots, units."""

from pyinfra.api import StringCommand

from facts.box import Probed
from facts.query import Query
from facts.reading.disks import Disk, read_disks
from facts.reading.engines import EngineState, read_engine
from facts.reading.listeners import Listener, read_listeners
from facts.reading.snapshots import SnapshotState, read_snapshot
from facts.reading.units import UnitState, read_units
from inventory.base import Unknown


class Disks(Probed[tuple[Disk, ...]]):
    """Returns the file systems that hold, or will hold, the given paths.

    .. code:: python

        [{"path": "/shared/models", "parent": "/shared", "available": 1099511627776, …}]
    """

    read = staticmethod(read_disks)

    def command(self, paths: str = "/") -> StringCommand:
        """Read the file systems.

        + paths: absolute paths, separated by commas; they need not exist
        """
        return self.ask(Query(disks=tuple(paths.split(","))))


class Engines(Probed[EngineState]):
    """Returns which distributions an engine environment really holds.

    .. code:: python

        {"exists": true, "finished": true, "distributions": {"vllm": "0.32.0", …}, …}
    """

    read = staticmethod(read_engine)

    def command(self, folder: str) -> StringCommand:
        """Read the environment.

        + folder: absolute path, e.g. /opt/vllm/vllm-0.32.0
        """
        return self.ask(Query(environment=folder))


class Listeners(Probed[tuple[Listener, ...] | Unknown]):
    """Returns who listens on a TCP port, by process and unit.

    .. code:: python

        [{"address": "127.0.0.1", "port": 8000, "pid": 812, "unit": "vllm-kimi-k25.service", …}]
    """

    read = staticmethod(read_listeners)

    def command(self, port: int, address: str = "127.0.0.1") -> StringCommand:
        """Read the listeners.

        + port: TCP port
        + address: where to ask for an answer
        """
        return self.ask(Query(host=address, port=int(port)))


class Snapshots(Probed[SnapshotState]):
    """Returns what is in a snapshot's folder: its manifest, and its files by name and size.

    .. code:: python

        {"exists": true, "manifest": {"repo": "…", "commit": "…", …}, "files": [{"path": …}]}
    """

    read = staticmethod(read_snapshot)

    def command(self, folder: str) -> StringCommand:
        """Read the folder.

        + folder: absolute path of one commit's directory
        """
        return self.ask(Query(snapshot=folder))


class Units(Probed[tuple[UnitState, ...] | Unknown]):
    """Returns the state of systemd units. One that does not exist has load state ``not-found``.

    .. code:: python

        [{"name": "vllm-kimi-k25.service", "active_state": "active", "sub_state": "running", …}]
    """

    read = staticmethod(read_units)

    def command(self, units: str) -> StringCommand:
        """Read the units.

        + units: full names, separated by commas
        """
        return self.ask(Query(units=tuple(units.split(","))))
