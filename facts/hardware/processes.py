"""Processes that hold memory of a GPU, and the systemd unit that each belongs to."""

from __future__ import annotations

import re
from collections.abc import Sequence

from facts.hardware.cells import mebibytes, number, unknown
from facts.reading.cgroups import unit_of
from inventory.base import Unknown
from inventory.common.smi import APPS, NO_PID, cells, is_hidden
from inventory.hardware import GpuProcess


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
