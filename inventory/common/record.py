"""What is on record of a start that became ready: one file on its box.

The switch writes it (operations/remote/switch/record.py), a measurement of throughput adds to it,
the fact reads it (facts/record.py) and the history compares it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from inventory.common.throughput import Measurement
from inventory.common.wire import Amount, Whole, Wire

FORMAT: Final = 1

FILE_NAME = r"[0-9]{1,18}-[0-9a-f]{8}\.json"
"""Regular expression, for Python and for ``grep -E``: ready in seconds since the epoch, and the
beginning of the InvocationID."""


@dataclass(frozen=True)
class RecordedEngine(Wire):
    """What served."""

    tolerant = True
    package: str = ""
    version: str = ""


@dataclass(frozen=True)
class RecordedPlacement(Wire):
    """Where it served.

    + gpus: UUIDs; empty for a service on the CPU
    + numa_nodes: of the GPUs; None where the box does not say a GPU's node
    """

    tolerant = True
    gpus: tuple[str, ...] = ()
    numa_nodes: tuple[int | None, ...] = ()
    tensor_parallel_size: int | None = None


@dataclass(frozen=True)
class RecordedHost(Wire):
    """The box it served on.

    + driver: of the GPUs
    """

    tolerant = True
    kernel: str | None = None
    driver: str | None = None


@dataclass(frozen=True)
class RecordedSeconds(Wire):
    """The parts of the downtime, in seconds. A part that a start did not have is None.

    + stop: the old services, from the request to their end
    + release: from there until GPU memory was seen to be free
    + load: the start of the new one, until it answered
    + downtime: from the request to stop until the new one answered
    """

    tolerant = True
    stop: Amount | None = None
    release: Amount | None = None
    load: Amount | None = None
    downtime: Amount | None = None


@dataclass(frozen=True, kw_only=True)
class Declared(Wire):
    """What was declared of a start: the controller knows it before. No secrets.

    + service: its name
    + model: served name
    + repo, commit: the snapshot
    + weights_bytes: on disk
    + argv: the engine's command line
    + environment: names of variables, without their values
    """

    tolerant = True
    service: str
    model: str = ""
    repo: str = ""
    commit: str = ""
    weights_bytes: Whole | None = None
    engine: RecordedEngine = RecordedEngine()
    argv: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    placement: RecordedPlacement = RecordedPlacement()
    host: RecordedHost = RecordedHost()


@dataclass(frozen=True, kw_only=True)
class StartRecord(Declared):
    """One start that became ready: what was declared of it, and what was seen. Seconds, bytes.

    + unit: with its ending
    + invocation: InvocationID of the start
    + started, ready: seconds since the epoch
    + warm: the page cache's warm-up, ``bytes`` and ``seconds``; None if it was not warmed
    + phases: seconds by phase of the start
    + journal: lines that hold the engine's milestones and its own numbers
    + replaced: units of the old services
    + throughput: what was measured later
    """

    format: Literal[1] = FORMAT
    unit: str
    invocation: str
    ready: Amount
    started: Amount | None = None
    seconds: RecordedSeconds = RecordedSeconds()
    warm: Mapping[str, Amount] | None = None
    phases: Mapping[str, Amount] = field(default_factory=dict)
    journal: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    throughput: Measurement | None = None

    @property
    def file_name(self) -> str:
        """Its file, inside the folder of its unit."""
        return f"{int(self.ready)}-{self.invocation[:8]}.json"
