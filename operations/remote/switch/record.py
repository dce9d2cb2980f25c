"""What ran on this box: one file for each start that became ready, and the last good unit files.

Runs on the box, standard library only. The switch saves; a benchmark adds its figures later. By
hand::

    python -m operations.remote.switch.record last vllm-minimax-m25.service
    python -m operations.remote.switch.record save vllm-minimax-m25.service < record.json
    python -m operations.remote.switch.record amend vllm-minimax-m25.service INVOCATION < more.json

A reader sees a whole record or none. A record that cannot be read is passed over: it never stops a
switch. The forms are those of inventory/common: record.py, and throughput.py for what is added.
"""

import argparse
import contextlib
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from inventory.common import paths
from inventory.common.files import DRAFT, write_whole
from inventory.common.record import FILE_NAME, FORMAT, StartRecord
from inventory.common.throughput import Measurement

RECORDS = Path(paths.RECORD)
GOOD_UNITS = Path(paths.GOOD)

KEPT = 50
"""Starts of one unit."""
DRAFT_SECONDS = 3600
"""A draft that is older was left by a writer that was killed."""

_UNIT = re.compile(r"[A-Za-z0-9_][\w@.:\\-]{0,250}\.service", re.ASCII)


def save(start: StartRecord, root: Path = RECORDS) -> Path:
    """Keep one start that became ready; the oldest beyond :data:`KEPT` go.

    + start: no secrets in it
    + root: folder of the records
    + returns: the file
    + raises: ValueError where its unit, time or InvocationID names no file, or a number is not
      finite; OSError where it cannot be written
    """
    folder = root / _checked(start.unit)
    if not re.fullmatch(FILE_NAME, start.file_name):
        raise ValueError(f"{start.file_name!r} does not hold a time and an InvocationID")
    path = folder / start.file_name
    write_whole(path, _text(start.to_json()))
    _tidy(folder)
    return path


def last(unit: str, root: Path = RECORDS) -> StartRecord | None:
    """The newest readable record of a unit."""
    return next((start for _, _, start in _readable(unit, root)), None)


def starts(unit: str, root: Path = RECORDS) -> list[StartRecord]:
    """The readable records of a unit, newest first."""
    return [start for _, _, start in _readable(unit, root)]


def amend(
    unit: str, invocation: str, throughput: Measurement, root: Path = RECORDS
) -> StartRecord | None:
    """Add to the record of a start what was measured later, in place of what was measured before.

    + invocation: InvocationID of that start
    + returns: the record; None if that start has no record
    """
    for path, stored, start in _readable(unit, root):
        if start.invocation == invocation:
            # What a later version noted stays.
            write_whole(path, _text({**stored, "throughput": throughput.to_json()}))
            return replace(start, throughput=throughput)
    return None


def keep_good(unit: str, root: Path = GOOD_UNITS, units: Path = Path(paths.UNITS)) -> None:
    """Keep the unit's file as the one that was ready last. Bytes that are not UTF-8 are replaced:
    systemd passes over such lines too.

    + raises: OSError where it cannot be read or written
    """
    place, source = root / _checked(unit), units / unit
    write_whole(place, source.read_text("utf-8", "replace"), source.stat().st_mode & 0o777)


def good_text(unit: str, root: Path = GOOD_UNITS) -> str | None:
    """The unit file of the last start that was ready; None where none was kept."""
    try:
        return (root / _checked(unit)).read_text("utf-8", "replace") or None
    except OSError:
        return None


def _checked(unit: str) -> str:
    """The unit's name, which becomes part of a path."""
    if not _UNIT.fullmatch(unit):
        raise ValueError(f"{unit!r} is not the name of a service")
    return unit


def _readable(unit: str, root: Path) -> Iterator[tuple[Path, dict[str, Any], StartRecord]]:
    """File, content and record, newest first."""
    for path in _files(root / _checked(unit)):
        try:
            stored = json.loads(path.read_text())
            start = StartRecord.from_json(stored)
        except (OSError, ValueError, RecursionError):
            continue
        yield path, stored, start


def _files(folder: Path) -> list[Path]:
    """Files of records, newest first, by the time in their names."""
    try:
        found = [path for path in folder.iterdir() if re.fullmatch(FILE_NAME, path.name)]
    except OSError:
        return []
    return sorted(
        (path for path in found if path.is_file()),
        key=lambda path: (int(path.name.partition("-")[0]), path.name),
        reverse=True,
    )


def _tidy(folder: Path) -> None:
    """Drop the oldest records, and drafts whose writer was killed. A full disk is not a failure."""
    old = time.time() - DRAFT_SECONDS
    with contextlib.suppress(OSError):
        drafts = [path for path in folder.glob(f"{DRAFT}*") if path.stat().st_mtime < old]
        for path in [*_files(folder)[KEPT:], *drafts]:
            path.unlink(missing_ok=True)


def _text(content: Mapping[str, Any]) -> str:
    """As it is stored: ASCII, so that no reader's locale matters; never NaN, which is not JSON."""
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def main() -> int:
    """Parse the arguments and do one of the three."""
    parser = argparse.ArgumentParser(description="What ran on this box.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("last", "save", "amend"):
        command = commands.add_parser(name)
        command.add_argument("unit")
        if name == "amend":
            command.add_argument("invocation")
    arguments = parser.parse_args()
    try:
        return _run(arguments)
    except (OSError, ValueError, TypeError) as error:
        print(f"record: {type(error).__name__}: {error}", file=sys.stderr)
        return 1


def _run(arguments: argparse.Namespace) -> int:
    unit: str = arguments.unit
    if arguments.command == "save":
        given = {**json.load(sys.stdin), "unit": unit, "format": FORMAT}
        print(save(StartRecord.from_json(given)))
        return 0
    if arguments.command == "amend":
        more = Measurement.from_json(json.load(sys.stdin))
        found = amend(unit, arguments.invocation, more)
    elif found := last(unit):
        print(_text(found.to_json()), end="")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
