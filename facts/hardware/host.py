"""The host around the GPUs: memory, virtualisation, IOMMU, numactl."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from facts.hardware.cells import kibibytes, number, read, unknown
from facts.sections import MISSING, Section
from inventory.base import NOT_ASKED, Unknown

# systemd-detect-virt(1): what it calls virtual machines, as opposed to containers.
_MACHINES = frozenset(
    {"kvm", "amazon", "qemu", "bochs", "xen", "uml", "vmware", "oracle", "microsoft", "zvm"}
    | {"parallels", "bhyve", "qnx", "acrn", "powervm", "apple", "sre", "google", "vm-other"}
)
_NO_NUMACTL = 127


@dataclass(frozen=True)
class Host:
    """Memory in bytes.

    + available: MemAvailable, or the free huge pages where the host sets huge pages aside:
      that is what a GPU without memory of its own can take. Swap is left out.
    """

    memory_total: int | Unknown = NOT_ASKED
    memory_available: int | Unknown = NOT_ASKED
    huge_free: int | Unknown | None = None
    virtual_machine: bool | Unknown = NOT_ASKED
    iommu_groups: int | Unknown = NOT_ASKED

    @property
    def unified_available(self) -> int | Unknown:
        """What a GPU that shares the host's memory can take."""
        return self.memory_available if self.huge_free is None else self.huge_free


def parse_host(lines: Sequence[str]) -> Host:
    """Read /proc/meminfo lines and the probe's own ``key<TAB>value`` lines."""
    memory: dict[str, str] = {}
    told: dict[str, str] = {}
    for line in lines:
        if match := re.fullmatch(r"(\w+):\s*(.*)", line.strip()):
            memory[match.group(1)] = match.group(2)
        else:
            key, tab, value = line.partition("\t")
            told[key if tab else "virt"] = value if tab else key
    return Host(
        memory_total=read(memory, "MemTotal", kibibytes),
        memory_available=read(memory, "MemAvailable", kibibytes),
        huge_free=_huge(memory),
        virtual_machine=read(told, "virt", _virtual),
        iommu_groups=read(told, "iommu_groups", number),
    )


def _huge(memory: dict[str, str]) -> int | Unknown | None:
    total = number(memory.get("HugePages_Total", ""))
    if isinstance(total, Unknown) or total == 0:
        return None
    pages = number(memory.get("HugePages_Free", ""))
    size = kibibytes(memory.get("Hugepagesize", ""))
    if isinstance(pages, Unknown) or isinstance(size, Unknown):
        return unknown("huge pages are set aside, and their free number is not told")
    return pages * size


def _virtual(word: str) -> bool | Unknown:
    """A container's name says nothing about the machine below it."""
    name = word.strip()
    if name in _MACHINES:
        return True
    return False if name == "none" else unknown(name)


def numactl_exists(section: Section) -> bool | Unknown:
    """Whether the numactl command is there."""
    return NOT_ASKED if section.rc is None else section.rc != _NO_NUMACTL


def bindable(section: Section = MISSING) -> tuple[int, ...] | Unknown:
    """The nodes on which strict binding was tried and worked. Empty on a box of one node."""
    if section.rc != 0:
        return unknown("no numactl" if section.rc == _NO_NUMACTL else "not asked")
    nodes = []
    for line in section.lines:
        node, _, status = line.partition("\t")
        key = number(node)
        if isinstance(key, int) and status.strip() == "0":
            nodes.append(key)
    return tuple(nodes)
