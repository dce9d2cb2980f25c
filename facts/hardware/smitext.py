"""The texts of nvidia-smi that are not tables of fields: errors, lists, versions, links."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from facts.hardware.cells import NOT_ASKED, bus_id, mebibytes, plain, unknown, word
from inventory.base import Unknown

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
class ListedSlice:
    """A MIG device in ``nvidia-smi -L``."""

    number: int
    profile: str
    uuid: str


@dataclass(frozen=True)
class Listed:
    """A GPU in ``nvidia-smi -L``."""

    index: int
    name: str
    uuid: str
    slices: tuple[ListedSlice, ...] = ()


_LIST_GPU = re.compile(r"GPU ([0-9]{1,4}): (.*) \(UUID: (GPU-[0-9A-Za-z-]+)\)")
_LIST_MIG = re.compile(
    r"\s+MIG (\S+)\s+Device\s+([0-9]{1,4}): \(UUID: (MIG-[0-9A-Za-z/-]+)\)"
)  # old drivers print MIG-GPU-<uuid>/<gi>/<ci>: ray-project/ray#41020


def parse_list(lines: Sequence[str]) -> tuple[Listed, ...]:
    """Read ``nvidia-smi -L``: GPUs with their MIG devices."""
    gpus: list[Listed] = []
    for line in lines:
        if match := _LIST_GPU.fullmatch(line.rstrip()):
            gpus.append(Listed(int(match.group(1)), match.group(2), match.group(3)))
        elif gpus and (match := _LIST_MIG.fullmatch(line.rstrip())):
            last = gpus[-1]
            part = ListedSlice(int(match.group(2)), match.group(1), match.group(3))
            gpus[-1] = Listed(last.index, last.name, last.uuid, (*last.slices, part))
    return tuple(gpus)


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


@dataclass(frozen=True)
class TableRow:
    """A GPU in the table that a plain ``nvidia-smi`` draws."""

    index: int
    name: str
    bus_id: str | Unknown
    memory_used: int | Unknown
    memory_total: int | Unknown


_TABLE_FIRST = re.compile(
    r"\|\s+([0-9]{1,4})\s+(.+?)\s+(?:On|Off|N/A)\s+\|\s+([0-9A-Fa-f:.]+)\s+\S+\s*\|.*\|"
)


def parse_table(lines: Sequence[str]) -> tuple[TableRow, ...]:
    """Read what people paste: name, address and memory from the drawn table."""
    rows: list[TableRow] = []
    first: re.Match[str] | None = None
    for line in lines:
        if first is None:
            first = _TABLE_FIRST.fullmatch(line.strip())
            continue
        cells = line.strip().strip("|").split("|")
        used, slash, total = cells[1].partition("/") if len(cells) > 1 else ("", "", "")
        rows.append(
            TableRow(
                index=int(first.group(1)),
                name=first.group(2),
                bus_id=bus_id(first.group(3)),
                memory_used=mebibytes(used),
                memory_total=mebibytes(total) if slash else unknown(used),
            )
        )
        first = None
    return tuple(rows)


def parse_nvlink(lines: Sequence[str]) -> dict[str, int | Unknown]:
    """Active NVLinks of each GPU, by UUID, from ``nvidia-smi nvlink -s``.

    Only links with a speed count. A card without NVLink, or with all links down, has none; a
    card in MIG mode does not tell.
    """
    found: dict[str, int | Unknown] = {}
    uuid = ""
    for line in lines:
        if match := _LIST_GPU.fullmatch(line.rstrip()):
            uuid = match.group(3)
            found[uuid] = 0
        elif uuid and re.fullmatch(r"\s*Link [0-9]+: [0-9.]+ GB/s\s*", line):
            before = found[uuid]
            found[uuid] = before + 1 if isinstance(before, int) else before
        elif uuid and "not supported" in line:
            found[uuid] = unknown(line)
    return found


def table_versions(lines: Sequence[str]) -> Versions:
    """The versions in the drawn table's header, under old and new labels."""
    text = plain("\n".join(lines))
    driver = re.search(r"(?:Driver|KMD) Version: +([0-9.]+)", text)
    cuda = re.search(r"CUDA (?:UMD )?Version: +([0-9]+\.[0-9]+)", text)
    return Versions(
        word(driver.group(1)) if driver else NOT_ASKED,
        word(cuda.group(1)) if cuda else NOT_ASKED,
    )
