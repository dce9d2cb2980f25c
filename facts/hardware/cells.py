"""Single values as the tools print them. A cell that is not the expected shape is Unknown.

Nothing here raises: the text comes from a machine.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from inventory.base import NOT_ASKED, Unknown
from inventory.common.smi import whole
from inventory.common.units import KIB, MIB

_T = TypeVar("_T")

_FIELD = re.compile(r"([a-z][a-z0-9_.]*)(?: \[[^\],]*\])?")
_BUS_ID = re.compile(r"([0-9A-Fa-f]{1,8}):([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})\.([0-7])")
_REASON_LENGTH = 160


def unknown(word: str) -> Unknown:
    """The box's word as the reason, e.g. ``[N/A]``."""
    text = " ".join(word.split())[:_REASON_LENGTH]
    return Unknown(unknown=text or "empty")


def read(told: Mapping[str, str], key: str, by: Callable[[str], _T]) -> _T | Unknown:
    """One of the values that were told, read by one of the functions below."""
    return by(told[key]) if key in told else NOT_ASKED


def word(cell: str) -> str | Unknown:
    """A word, unless it stands for an absent value.

    Absent values come in brackets ([N/A], [Not Supported], [Unknown Error]), bare in XML and
    in some columns, or as an empty cell.
    """
    text = cell.strip()
    if not text or text.startswith("[") or text.upper() in _ABSENT:
        return unknown(cell)
    return text


_ABSENT = {
    "N/A",
    "ERR!",
    "UNKNOWN ERROR",
    "NOT SUPPORTED",
    "INSUFFICIENT PERMISSIONS",
    "REQUESTED FUNCTIONALITY HAS BEEN DEPRECATED",
}


def number(cell: str) -> int | Unknown:
    """A whole number, not negative."""
    found = whole(cell.strip())
    return unknown(cell) if found is None else found


def mebibytes(cell: str) -> int | Unknown:
    """Bytes from ``81559``, ``81559 MiB`` or ``96434 MB``.

    amd-smi writes MB and means MiB: ROCm/amdsmi docs/how-to/amdsmi-cli-tool.md.
    """
    match = re.fullmatch(r"([0-9]{1,12})(?: ?Mi?B)?", cell.strip())
    return int(match.group(1)) * MIB if match else unknown(cell)


def kibibytes(cell: str) -> int | Unknown:
    """Bytes from ``528003912 kB``, which the kernel writes for KiB."""
    match = re.fullmatch(r"([0-9]{1,15}) kB", cell.strip())
    return int(match.group(1)) * KIB if match else unknown(cell)


def flag(cell: str) -> bool | Unknown:
    """Enabled, Disabled, Yes, No."""
    known = {"enabled": True, "disabled": False, "yes": True, "no": False}
    return known.get(cell.strip().lower(), unknown(cell))


def bus_id(cell: str) -> str | Unknown:
    """A PCI address as sysfs writes it: nvidia-smi's ``0000000F:01:00.0`` is ``000f:01:00.0``."""
    match = _BUS_ID.fullmatch(cell.strip())
    if match is None:
        return unknown(cell)
    domain, bus, device, function = match.groups()
    return f"{int(domain, 16):04x}:{bus}:{device}.{function}".lower()


def bus_order(address: str | Unknown) -> tuple[int, ...]:
    """A key that sorts addresses in PCI bus order; unknown ones come last."""
    match = None if isinstance(address, Unknown) else _BUS_ID.fullmatch(address)
    if match is None:
        return (1 << 32,)
    return tuple(int(part, 16) for part in match.groups())


@dataclass(frozen=True)
class Table:
    """Rows by column name, and the lines that are not rows.

    + rows: one mapping a line; the cells are as printed, stripped of blanks
    + strays: lines with another number of cells: an error among the rows, or instead of them
    """

    rows: tuple[dict[str, str], ...] = ()
    strays: tuple[str, ...] = ()


def table(lines: Sequence[str], columns: Sequence[str] = ()) -> Table:
    """Read rows by the header where there is one, else by ``columns``.

    + lines: the tool's output
    + columns: names of the fields in the order in which they were asked for

    Names and commands may hold commas, so a row may have more cells than columns where the
    last column is a name: the rest of the row is that name.
    """
    rows: list[dict[str, str]] = []
    strays: list[str] = []
    names = tuple(columns)
    for line in lines:
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split(",")]
        header = [_FIELD.fullmatch(cell) for cell in cells]
        if len(cells) > 1 and all(header):
            names = tuple(match.group(1) for match in header if match)
            continue
        last_is_name = bool(names) and names[-1].endswith("name")
        if names and len(cells) > len(names) and last_is_name:
            head = line.split(",", len(names) - 1)
            cells = [cell.strip() for cell in head]
        if not names or len(cells) != len(names):
            strays.append(line.strip())
            continue
        rows.append(dict(zip(names, cells, strict=True)))
    return Table(tuple(rows), tuple(strays))
