"""Processes that hold memory of a GPU, and the systemd unit that each belongs to."""

import re
from collections.abc import Iterable, Sequence

from facts.hardware.cells import mebibytes, number, unknown
from inventory.base import Unknown
from inventory.common.cgroup import origin
from inventory.common.smi import APPS, NO_PID, cells, is_hidden
from inventory.hardware import GpuProcess


def unit_of(cgroup: Iterable[str]) -> str | Unknown | None:
    """The unit that the system manager keeps a process in; None where it is outside any unit.

    + cgroup: lines of its /proc/PID/cgroup
    """
    found = origin(cgroup)
    return Unknown(unknown=found.unknown) if found.unknown else found.unit


def parse_processes(apps: Sequence[str], cgroups: Sequence[str] = ()) -> tuple[GpuProcess, ...]:
    """Read ``--query-compute-apps=gpu_uuid,pid,used_memory,process_name``.

    + apps: rows without header and units; the name comes last and may hold commas
    + cgroups: ``pid<TAB>line of /proc/<pid>/cgroup``

    A process that another PID namespace hides is [Not Found]: its pid is not one of this box's
    processes, so its unit is unknown, whatever process has that number here.
    """
    told: dict[int, list[str]] = {}
    for line in cgroups:
        pid, _, path = line.partition("\t")
        key = number(pid)
        if isinstance(key, int):
            told.setdefault(key, []).append(path)
    found = []
    for line in apps:
        row = cells(line, APPS)
        if row:
            found.append(_process(row, told))
    return tuple(found)


def _process(row: Sequence[str], told: dict[int, list[str]]) -> GpuProcess:
    uuid, pid_cell, memory, name = row
    pid = number(pid_cell)
    if isinstance(pid, int) and pid in NO_PID:
        pid = unknown(f"the driver says {pid_cell}")
    unit: str | Unknown | None
    if isinstance(pid, Unknown):
        unit = pid
    elif is_hidden(name):
        unit = unknown(name)
    elif pid not in told:
        unit = unknown(f"no process {pid} in /proc")
    else:
        unit = unit_of(told[pid])
    return GpuProcess(
        gpu=uuid if re.fullmatch(r"(GPU|MIG)-[0-9A-Za-z/-]+", uuid) else unknown(uuid),
        pid=pid,
        memory=mebibytes(memory),
        name=name,
        unit=unit,
    )
