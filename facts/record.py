"""What ran on a box: its starts that became ready, with their measures."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Mapping
from importlib.resources import files

from pyinfra.api import StringCommand

from facts.box import Probed
from facts.privilege import read_as_root
from facts.reading.records import PREFIX, read_records
from facts.sections import Section
from inventory.base import Unknown
from inventory.common.paths import RECORD
from inventory.common.record import FILE_NAME, StartRecord

READ_STARTS = 10
"""Starts of each unit that one read brings: each is some ten KiB."""

MOST_BYTES = 1 << 20
"""Of one entry: a file that is larger is not one of ours, and reads as damaged."""

_READ = r"""
there() { [ -e "$RECORDS" ] || return 3; ls -- "$RECORDS" >/dev/null; }
newest() { ls -- "$1" | grep -Ex "$FILE_NAME" | sort -rn | head -n "$NEWEST"; }
sec records there
for folder in "$RECORDS"/*/; do
  of=${folder%/}; of=${of##*/}
  case $of in *[!A-Za-z0-9@._:-]*) continue ;; esac
  [ -z "$UNIT" ] || [ "$UNIT" = "$of" ] || continue
  for file in $(newest "$folder"); do
    sec "$PREFIX$of/$file" head -c "$MOST" -- "$folder$file"
  done
done
echo "@@$NONCE end 0"
exit 0
"""


class Records(Probed[tuple[StartRecord | Unknown, ...] | Unknown]):
    """Returns the recorded starts of each service, newest first. An entry that cannot be read is
    ``{"unknown": reason}`` in its place.

    .. code:: python

        [{"service": "vllm-minimax-m25", "ready": 1795554412.0, "seconds": {"load": 75.2, …}, …}]
    """

    def command(self, unit: str = "", newest: int = READ_STARTS) -> StringCommand:
        """Read the records.

        + unit: of this unit only, with its ending
        + newest: so many of each unit
        """
        self.nonce = secrets.token_hex(4)
        return read_as_root(script(self.nonce, unit, int(newest)), self.nonce)

    def read(self, found: Mapping[str, Section]) -> tuple[StartRecord | Unknown, ...] | Unknown:
        """The record sections."""
        return read_records(found)


def script(nonce: str, unit: str = "", newest: int = READ_STARTS, records: str = RECORD) -> str:
    """The read as POSIX sh.

    + nonce: token that marks the frame lines
    + unit: of this unit only; empty for all
    + newest: so many of each unit
    + records: folder of the records on the box
    """
    variables = {
        "NONCE": nonce,
        "UNIT": unit,
        "NEWEST": str(newest),
        "RECORDS": records,
        "FILE_NAME": FILE_NAME,
        "PREFIX": PREFIX,
        "MOST": str(MOST_BYTES),
    }
    assignments = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
    frame = files("facts.probe").joinpath("frame.sh").read_text()
    return "\n".join((*assignments, frame, _READ.strip()))
