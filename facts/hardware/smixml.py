"""MIG devices and their memory in ``nvidia-smi -q -x``, the only text that has it.

Read tag by tag, not with an XML parser: the text may be cut off, it may have been thinned to
the tags that are named here, and it comes from outside.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from facts.hardware.cells import NOT_ASKED, bus_id, mebibytes, number
from inventory.base import Unknown

_TAG = re.compile(r"<(/?)([a-z_0-9]+)([^<>]*)>([^<]*)")


@dataclass(frozen=True)
class XmlSlice:
    """A MIG device, by its number on its GPU."""

    number: int | Unknown
    memory_total: int | Unknown


@dataclass(frozen=True)
class XmlGpu:
    """A GPU and its MIG devices."""

    bus_id: str | Unknown
    memory_total: int | Unknown
    slices: tuple[XmlSlice, ...]


def parse_xml(text: str) -> tuple[XmlGpu, ...]:
    """Read the memory of each GPU and of each MIG device.

    ``fb_memory_usage`` stands once under the GPU and once under each of its MIG devices: the
    first one in the text is not the GPU's.
    """
    gpus: list[XmlGpu] = []
    where: list[str] = []
    address: str | Unknown = NOT_ASKED
    total: int | Unknown = NOT_ASKED
    slices: list[XmlSlice] = []
    for closing, tag, attributes, value in _TAG.findall(text):
        if closing:
            if tag == "gpu" and "gpu" in where:
                gpus.append(XmlGpu(address, total, tuple(slices)))
            if tag in where:
                del where[_last(where, tag) :]
            continue
        if tag == "gpu":
            where, total, slices = [], NOT_ASKED, []
            quoted = re.search(r'id="([^"]*)"', attributes)
            address = bus_id(quoted.group(1)) if quoted else NOT_ASKED
        elif tag == "mig_device":
            slices.append(XmlSlice(NOT_ASKED, NOT_ASKED))
        elif tag == "index" and slices and where[-1:] == ["mig_device"]:
            slices[-1] = XmlSlice(number(value), slices[-1].memory_total)
        elif tag == "total" and where[-1:] == ["fb_memory_usage"]:
            if "mig_device" in where:
                slices[-1] = XmlSlice(slices[-1].number, mebibytes(value))
            else:
                total = mebibytes(value)
        if not value.strip():
            where.append(tag)
    return tuple(gpus)


def _last(where: list[str], tag: str) -> int:
    return len(where) - 1 - where[::-1].index(tag)
