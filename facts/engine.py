"""An engine environment: which distributions it really holds."""

from __future__ import annotations

from collections.abc import Mapping

from pyinfra.api import StringCommand

from facts.box import Probed
from facts.query import Query
from facts.reading.engines import EngineState, read_engine
from facts.sections import Section


class Engines(Probed[EngineState]):
    """Returns what an engine environment holds.

    .. code:: python

        {"exists": true, "finished": true, "distributions": {"vllm": "0.32.0", …}, …}
    """

    def command(self, folder: str) -> StringCommand:
        """Read the environment.

        + folder: absolute path, e.g. /opt/vllm/vllm-0.32.0
        """
        return self.ask(Query(environment=folder))

    def read(self, found: Mapping[str, Section]) -> EngineState:
        """The environment section."""
        return read_engine(found)
