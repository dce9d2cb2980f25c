"""Starts that became ready, as the box recorded them."""

import json
from collections.abc import Mapping
from typing import Any

from facts.sections import ABSENT, MISSING, Section
from inventory.base import Unknown
from inventory.common.record import FORMAT, StartRecord
from inventory.common.wire import WireError

PREFIX = "record:"
"""Of the sections that hold one entry each: ``record:UNIT/FILE``."""


def read_records(found: Mapping[str, Section]) -> tuple[StartRecord | Unknown, ...] | Unknown:
    """The entries, newest first; one that cannot be read is Unknown, with its file and reason.

    + found: section ``records`` says whether there is a folder; ``record:UNIT/FILE`` are entries
    """
    folder = found.get("records", MISSING)
    if folder.rc == ABSENT:
        return ()
    if folder.rc != 0:
        return Unknown(unknown=folder.text.strip() or "the records were not read")
    entries = [
        _entry(name.removeprefix(PREFIX), section)
        for name, section in found.items()
        if name.startswith(PREFIX)
    ]
    return tuple(sorted(entries, key=_newest_first))


def records_from_json(value: Any) -> tuple[StartRecord | Unknown, ...] | Unknown:
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


def _entry(name: str, section: Section) -> StartRecord | Unknown:
    if section.rc != 0:
        return Unknown(unknown=f"{name}: {section.text.strip() or 'not read'}")
    try:
        value = json.loads(section.text)
    except (ValueError, RecursionError):
        return Unknown(unknown=f"{name}: is not whole")
    return _typed(value, name)


def _typed(value: Any, name: str) -> StartRecord | Unknown:
    if isinstance(value, Mapping) and isinstance(value.get("unknown"), str):
        return Unknown(unknown=value["unknown"])
    if isinstance(value, Mapping) and value.get("format", FORMAT) != FORMAT:
        return Unknown(unknown=f"{name}: is of a format that this version does not know")
    try:
        return StartRecord.from_json(value)
    except WireError as error:
        return Unknown(unknown=f"{name}: {error}")


def _newest_first(entry: StartRecord | Unknown) -> tuple[float, str]:
    """Where an entry stands in the order; what could not be read comes last."""
    if isinstance(entry, Unknown):
        return float("inf"), entry.unknown
    return -entry.ready, entry.invocation
