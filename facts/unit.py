"""systemd units: load state, file, enablement, what runs since when."""

from __future__ import annotations

from collections.abc import Mapping

from pyinfra.api import StringCommand

from facts.box import Probed
from facts.query import Query
from facts.reading.units import UnitState, read_units
from facts.sections import Section
from inventory.base import Unknown


class Units(Probed[tuple[UnitState, ...] | Unknown]):
    """Returns the state of systemd units. One that does not exist has load state ``not-found``.

    .. code:: python

        [{"name": "vllm-kimi-k25.service", "active_state": "active", "sub_state": "running", …}]
    """

    def command(self, units: str) -> StringCommand:
        """Read the units.

        + units: full names, separated by commas
        """
        return self.ask(Query(units=tuple(units.split(","))))

    def read(self, found: Mapping[str, Section]) -> tuple[UnitState, ...] | Unknown:
        """The unit sections."""
        return read_units(found)
