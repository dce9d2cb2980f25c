"""Starts that became ready, as the box recorded them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from facts.sections import MISSING, Section
from inventory.base import Frozen, Unknown

FORMAT = 1
PREFIX = "record:"
"""Of the sections that hold one entry each: ``record:UNIT/FILE``."""

Number = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
"""Bounds that no measure reaches, so that arithmetic with a damaged one stays finite."""


class _Recorded(Frozen, extra="ignore"):
    """A later version may note more: that is no damage."""


class RecordedEngine(_Recorded):
    """What served."""

    package: str = ""
    version: str = ""


class RecordedPlacement(_Recorded):
    """Where it served."""

    gpus: tuple[str, ...] = ()
    """UUIDs; none for a service on the CPU."""
    numa_nodes: tuple[int | None, ...] = ()
    """None where the box does not say a GPU's node."""
    tensor_parallel_size: int | None = None


class RecordedHost(_Recorded):
    """The box it served on."""

    kernel: str | None = None
    driver: str | None = None
    """Of the GPUs."""


class RecordedSeconds(_Recorded):
    """The parts of the downtime, in seconds; None where a start had no such part."""

    stop: Number | None = None
    """The old service, from the order to its end."""
    release: Number | None = None
    """From there until GPU memory was seen to be free."""
    load: Number | None = None
    """The start of the new one, until it answered."""
    downtime: Number | None = None
    """From the order to stop until the new one answered."""


class Record(_Recorded):
    """One start that became ready."""

    format: Literal[1]
    service: str
    unit: str
    invocation: str
    """InvocationID of that start."""
    ready: Number
    """Seconds since the epoch."""
    started: Number | None = None
    model: str = ""
    """Served name."""
    repo: str = ""
    commit: str = ""
    weights_bytes: Count | None = None
    engine: RecordedEngine = RecordedEngine()
    argv: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    """Names of variables, without their values."""
    placement: RecordedPlacement = RecordedPlacement()
    host: RecordedHost = RecordedHost()
    seconds: RecordedSeconds = RecordedSeconds()
    warm: dict[str, Number] | None = None
    """The page cache's warm-up: bytes and seconds; None where there was none."""
    phases: dict[str, Number] = Field(default_factory=dict)
    """Seconds by phase of the start."""
    journal: tuple[str, ...] = ()
    """Lines that hold the engine's milestones and its own numbers."""
    replaced: tuple[str, ...] = ()
    """Units that gave way."""
    throughput: dict[str, Any] | None = None
    """What a benchmark measured later."""


def read_records(found: Mapping[str, Section]) -> tuple[Record | Unknown, ...] | Unknown:
    """The entries, newest first; one that cannot be read is Unknown, with its file and reason.

    + found: section ``records`` says whether there is a folder; ``record:UNIT/FILE`` are entries
    """
    folder = found.get("records", MISSING)
    if folder.rc == 3:  # noqa: PLR2004 - the script's word for "no such folder"
        return ()
    if folder.rc != 0:
        return Unknown(unknown=folder.text.strip() or "the records were not read")
    entries = [
        _entry(name.removeprefix(PREFIX), section)
        for name, section in found.items()
        if name.startswith(PREFIX)
    ]
    return tuple(sorted(entries, key=_newest_first))


def records_from_json(value: Any) -> tuple[Record | Unknown, ...] | Unknown:
    """The entries again, from what the fact printed.

    + value: of one box; anything else than such a list is Unknown

    >>> records_from_json(None)
    Unknown(unknown='the box told nothing of its records')
    """
    if isinstance(value, Mapping) and isinstance(value.get("unknown"), str):
        return Unknown(unknown=value["unknown"])
    if not isinstance(value, (list, tuple)):
        return Unknown(unknown="the box told nothing of its records")
    return tuple(sorted((_typed(one, "an entry") for one in value), key=_newest_first))


def _entry(name: str, section: Section) -> Record | Unknown:
    if section.rc != 0:
        return Unknown(unknown=f"{name}: {section.text.strip() or 'not read'}")
    try:
        value = json.loads(section.text, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError):
        return Unknown(unknown=f"{name}: is not whole")
    return _typed(value, name)


def _finite(text: str) -> float:
    """A number that JSON can hold again."""
    value = float(text)
    if not isfinite(value):
        raise ValueError(text)
    return value


def _typed(value: Any, name: str) -> Record | Unknown:
    if isinstance(value, Mapping) and isinstance(value.get("unknown"), str):
        return Unknown(unknown=value["unknown"])
    if isinstance(value, Mapping) and value.get("format", FORMAT) != FORMAT:
        return Unknown(unknown=f"{name}: is of a format that this version does not know")
    try:
        return Record.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        return Unknown(unknown=f"{name}: {where + ': ' if where else ''}{first['msg']}")


def _newest_first(entry: Record | Unknown) -> tuple[float, str]:
    """Where an entry stands in the order; what could not be read comes last."""
    if isinstance(entry, Unknown):
        return float("inf"), entry.unknown
    return -entry.ready, entry.invocation
