"""What ran on this box: one file for each start that became ready, and the last good unit files.

Runs on the box, standard library only. The switch saves; a benchmark adds its figures later. By
hand::

    python -m operations.remote.switch.record last vllm-minimax-m25.service
    python -m operations.remote.switch.record amend vllm-minimax-m25.service INVOCATION < more.json
    python -m operations.remote.switch.record save vllm-minimax-m25.service < entry.json
    python -m operations.remote.switch.record keep-good vllm-minimax-m25.service

Files are written beside their place and renamed, so that a reader sees a whole entry or none. An
entry that cannot be read is passed over: it never stops a switch.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from inventory.common.files import write_whole as write

STATE = Path("/var/lib/boxwright")
UNITS = Path("/etc/systemd/system")
FORMAT = 1
KEPT = 50
"""Starts of one unit."""
DRAFT_SECONDS = 3600
"""A draft that is older was left by a writer that was killed."""

_UNIT = re.compile(r"[A-Za-z0-9_][\w@.:\\-]{0,250}\.service", re.ASCII)
_FILE = re.compile(r"([0-9]{1,18})-[0-9a-f]{8}\.json")
_OWN = frozenset({"format", "unit", "invocation"})
"""What tells an entry from the others, and so is never amended."""


def save(unit: str, entry: Mapping[str, Any], root: Path = STATE) -> Path:
    """Keep one start that became ready; the oldest beyond :data:`KEPT` go.

    + unit: with its ending
    + entry: at least ``ready`` (seconds since the epoch) and ``invocation``; no secrets in it
    + returns: the file
    + raises: ValueError, KeyError, TypeError, OverflowError for an entry that is none; OSError
      where it cannot be written
    """
    folder = _folder(unit, root)
    name = f"{int(entry['ready'])}-{entry['invocation'][:8]}.json"
    if not _FILE.fullmatch(name):
        raise ValueError(f"{name!r} is no time and InvocationID")
    path = folder / name
    write(path, _text({**entry, "format": FORMAT, "unit": unit}))
    _tidy(folder)
    return path


def last(unit: str, root: Path = STATE) -> dict[str, Any] | None:
    """The newest readable entry of a unit; None where there is none."""
    return next((entry for _, entry in _entries(unit, root)), None)


def entries(unit: str, root: Path = STATE) -> list[dict[str, Any]]:
    """The readable entries of a unit, newest first."""
    return [entry for _, entry in _entries(unit, root)]


def amend(unit: str, invocation: str, more: Mapping[str, Any], root: Path = STATE) -> bool:
    """Add to the entry of a start what was measured later.

    + invocation: InvocationID of that start
    + more: keys with their values, e.g. ``throughput``; a key that is there is replaced
    + returns: whether there is such an entry
    """
    for path, entry in _entries(unit, root):
        if entry["invocation"] == invocation:
            added = {key: value for key, value in more.items() if key not in _OWN}
            write(path, _text({**entry, **added}))
            return True
    return False


def keep_good(unit: str, root: Path = STATE, units: Path = UNITS) -> None:
    """Keep the unit's file as the one that was ready last. What is no UTF-8 in it is replaced:
    systemd passes over such lines too.

    + raises: OSError where it cannot be read or written
    """
    place = _good(unit, root)
    source = units / unit
    write(place, source.read_text("utf-8", "replace"), source.stat().st_mode & 0o777)


def good_text(unit: str, root: Path = STATE) -> str | None:
    """The unit file of the last start that was ready; None where none was kept."""
    try:
        return _good(unit, root).read_text("utf-8", "replace") or None
    except OSError:
        return None


def _folder(unit: str, root: Path) -> Path:
    return root / "record" / _checked(unit)


def _good(unit: str, root: Path) -> Path:
    return root / "good" / _checked(unit)


def _checked(unit: str) -> str:
    """The unit's name, which becomes part of a path."""
    if not _UNIT.fullmatch(unit):
        raise ValueError(f"{unit!r} is no name of a service")
    return unit


def _entries(unit: str, root: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Readable entries, newest first."""
    for path in _files(_folder(unit, root)):
        try:
            entry = json.loads(path.read_text())
        except (OSError, ValueError, RecursionError):
            continue
        if _is_entry(entry):
            yield path, entry


def _is_entry(entry: Any) -> bool:
    """Whether it has what its readers rely on."""
    if not isinstance(entry, dict) or entry.get("format") != FORMAT:
        return False
    phases = entry.get("phases", {})
    return isinstance(entry.get("invocation"), str) and (
        isinstance(phases, dict)
        and all(isinstance(seconds, (int, float)) for seconds in phases.values())
    )


def _files(folder: Path) -> list[Path]:
    """Files of entries, newest first, by the time in their names."""
    try:
        found = [path for path in folder.iterdir() if _FILE.fullmatch(path.name)]
    except OSError:
        return []
    return sorted(
        (path for path in found if path.is_file()),
        key=lambda path: (int(path.name.partition("-")[0]), path.name),
        reverse=True,
    )


def _tidy(folder: Path) -> None:
    """Drop the oldest entries, and drafts whose writer was killed. No room is no failure."""
    old = time.time() - DRAFT_SECONDS
    with contextlib.suppress(OSError):
        drafts = [path for path in folder.glob(".*") if path.stat().st_mtime < old]
        for path in [*_files(folder)[KEPT:], *drafts]:
            path.unlink(missing_ok=True)


def _text(entry: Mapping[str, Any]) -> str:
    """As it is stored: ASCII, so that no reader's locale matters; never NaN, which is not JSON."""
    return json.dumps(entry, indent=1, allow_nan=False) + "\n"


def main() -> int:
    """Parse the arguments and do one of the four."""
    parser = argparse.ArgumentParser(description="What ran on this box.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("last", "save", "amend", "keep-good"):
        command = commands.add_parser(name)
        command.add_argument("unit")
        if name == "amend":
            command.add_argument("invocation")
    arguments = parser.parse_args()
    try:
        return _run(arguments)
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        print(f"record: {type(error).__name__}: {error}", file=sys.stderr)
        return 1


def _run(arguments: argparse.Namespace) -> int:
    unit: str = arguments.unit
    if arguments.command == "save":
        print(save(unit, json.load(sys.stdin)))
        return 0
    if arguments.command == "amend":
        return 0 if amend(unit, arguments.invocation, json.load(sys.stdin)) else 1
    if arguments.command == "keep-good":
        keep_good(unit)
        return 0
    entry = last(unit)
    if entry is not None:
        print(_text(entry), end="")
    return 0 if entry is not None else 1


if __name__ == "__main__":
    sys.exit(main())
