"""MIG devices: ``nvidia-smi -L`` names them, and their memory stands in ``nvidia-smi -q -x`` alone.

The XML is read tag by tag, not with an XML parser: the text may be cut off or thinned to the tags
that are named here, and it comes from outside.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from facts.hardware.cells import bus_id, mebibytes, number
from inventory.base import NOT_ASKED, Unknown

_LIST_GPU = re.compile(r"GPU [0-9]{1,4}: .* \(UUID: (GPU-[0-9A-Za-z-]+)\)")
_LIST_MIG = re.compile(
    r"\s+MIG (\S+)\s+Device\s+([0-9]{1,4}): \(UUID: (MIG-[0-9A-Za-z/-]+)\)"
)  # old drivers print MIG-GPU-<uuid>/<gi>/<ci>: ray-project/ray#41020
_TAG = re.compile(r"<(/?)([a-z_0-9]+)([^<>]*)>([^<]*)")


@dataclass(frozen=True)
class ListedSlice:
    """A MIG device in ``nvidia-smi -L``, by its number on its GPU."""

    number: int
    profile: str
    uuid: str


def parse_list(lines: Sequence[str]) -> dict[str, tuple[ListedSlice, ...]]:
    """Read ``nvidia-smi -L``: UUID of each GPU -> its MIG devices."""
    gpus: dict[str, tuple[ListedSlice, ...]] = {}
    last = ""
    for line in lines:
        if match := _LIST_GPU.fullmatch(line.rstrip()):
            last = match.group(1)
            gpus[last] = ()
        elif last and (match := _LIST_MIG.fullmatch(line.rstrip())):
            part = ListedSlice(int(match.group(2)), match.group(1), match.group(3))
            gpus[last] = (*gpus[last], part)
    return gpus


def parse_memory(text: str) -> dict[tuple[str | Unknown, int], int | Unknown]:
    """Read ``nvidia-smi -q -x``: bus id of a GPU, number of a MIG device -> its memory in bytes.

    ``fb_memory_usage`` stands once under the GPU and once under each of its MIG devices: the
    first one in the text is not the GPU's.
    """
    found: dict[tuple[str | Unknown, int], int | Unknown] = {}
    where: list[str] = []
    address: str | Unknown = NOT_ASKED
    index: int | Unknown = NOT_ASKED
    memory: int | Unknown = NOT_ASKED
    for closing, tag, attributes, value in _TAG.findall(text):
        if closing:
            if tag in where:
                if tag == "mig_device" and isinstance(index, int):
                    found[address, index] = memory
                del where[len(where) - 1 - where[::-1].index(tag) :]
            continue
        if tag == "gpu":
            where = []
            quoted = re.search(r'id="([^"]*)"', attributes)
            address = bus_id(quoted.group(1)) if quoted else NOT_ASKED
        elif tag == "mig_device":
            index = memory = NOT_ASKED
        elif tag == "index" and where[-1:] == ["mig_device"]:
            index = number(value)
        elif tag == "total" and where[-1:] == ["fb_memory_usage"] and "mig_device" in where:
            memory = mebibytes(value)
        if not value.strip():
            where.append(tag)
    return found
