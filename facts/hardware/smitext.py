"""The texts of nvidia-smi that are not tables of fields: errors and versions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from facts.hardware.cells import bus_id, unknown
from inventory.base import NOT_ASKED, Unknown

Failure = Literal[
    "none", "no-tool", "no-module", "mismatch", "no-devices", "lost-device", "hung", "unknown"
]

_DEVICE_HANDLE = re.compile(
    r"Unable to determine the device handle for (?:GPU ?)?([0-9A-Fa-f]{1,8}:[0-9A-Fa-f:.]+?):? "
)
# rc 9, 18: gputil#26, gputil#55. rc 255 with "No supported GPUs": dra-driver-nvidia-gpu#1008.
# 124 and 137 are timeout(1), 127 the shell.
_BY_TEXT: tuple[tuple[str, Failure], ...] = (
    ("couldn't communicate with the NVIDIA driver", "no-module"),
    ("Driver/library version mismatch", "mismatch"),
    ("No supported GPUs were found", "no-devices"),
    ("No devices were found", "no-devices"),
    ("Unable to determine the device handle", "lost-device"),
)
_BY_STATUS: dict[int, Failure] = {
    9: "no-module",
    18: "mismatch",
    124: "hung",
    127: "no-tool",
    137: "hung",
}


def failure(rc: int | None, lines: Sequence[str]) -> Failure:
    """Why nvidia-smi gave no rows. Its errors are on standard output."""
    text = "\n".join(lines)
    for words, kind in _BY_TEXT:
        if words in text:
            return kind
    if rc == 0:
        return "none"
    return "unknown" if rc is None else _BY_STATUS.get(rc, "unknown")


def lost_bus_ids(lines: Sequence[str]) -> tuple[str, ...]:
    """The cards that an error names, among rows or instead of them."""
    found = []
    for line in lines:
        match = _DEVICE_HANDLE.search(line + " ")
        address = bus_id(match.group(1)) if match else None
        if isinstance(address, str):
            found.append(address)
    return tuple(found)


@dataclass(frozen=True)
class Versions:
    """``nvidia-smi --version``. CUDA is the highest that the driver supports, no toolkit."""

    driver: str | Unknown = NOT_ASKED
    cuda: str | Unknown = NOT_ASKED


def parse_versions(lines: Sequence[str]) -> Versions:
    """Read the versions under their old and their new labels.

    Driver 610 renames the labels and leaves a sentence under the old ones, so only a value in
    the shape of a version counts.
    """
    driver: str | Unknown = NOT_ASKED
    cuda: str | Unknown = NOT_ASKED
    for line in lines:
        label, _, value = line.partition(":")
        label, value = label.strip().lower(), value.strip()
        if label in ("driver version", "kmd version"):
            driver = _version(value, r"[0-9]+(\.[0-9]+){1,2}", driver)
        elif label in ("cuda version", "cuda umd version"):
            cuda = _version(value, r"[0-9]+\.[0-9]+", cuda)
    return Versions(driver, cuda)


def _version(value: str, shape: str, before: str | Unknown) -> str | Unknown:
    if re.fullmatch(shape, value):
        return value
    return before if isinstance(before, str) else unknown(value)
