"""What ran on a box: its starts that became ready, with their measures."""

import secrets
from collections.abc import Mapping

from pyinfra.api import StringCommand

from facts.box import Probed
from facts.privilege import read_as_root
from facts.query import framed
from facts.reading.records import PREFIX, read_records
from facts.sections import Section
from inventory.base import Unknown
from inventory.common.paths import RECORD
from inventory.common.record import FILE_NAME, StartRecord

READ_STARTS = 10
"""Starts of each unit that one read brings: each is some ten KiB."""

MOST_BYTES = 1 << 20
"""Of one entry: a file that is larger is not one of ours, and reads as damaged."""


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
    return framed(variables, "records.sh")
