"""The comma-separated answers of nvidia-smi and hl-smi, which quote nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_FIELD = re.compile(r"([a-z][a-z0-9_.]*)(?: \[[^\],]*\])?")


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
