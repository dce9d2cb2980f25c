"""Who listens on a TCP port, by process and unit."""

from __future__ import annotations

from collections.abc import Mapping

from pyinfra.api import StringCommand

from facts.box import Probed
from facts.query import Query
from facts.reading.listeners import Listener, read_listeners
from facts.sections import Section
from inventory.base import Unknown


class Listeners(Probed[tuple[Listener, ...] | Unknown]):
    """Returns the listeners on a port.

    .. code:: python

        [{"address": "127.0.0.1", "port": 8000, "pid": 812, "unit": "vllm-kimi-k25.service", …}]
    """

    def command(self, port: int, address: str = "127.0.0.1") -> StringCommand:
        """Read the listeners.

        + port: TCP port
        + address: where to ask for an answer
        """
        return self.ask(Query(host=address, port=int(port)))

    def read(self, found: Mapping[str, Section]) -> tuple[Listener, ...] | Unknown:
        """The listener section."""
        return read_listeners(found)
