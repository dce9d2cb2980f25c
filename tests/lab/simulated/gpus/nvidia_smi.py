"""``nvidia-smi`` of a simulated box: the calls that a probe and an operator make.

Answers ``--query-gpu``, ``--query-compute-apps``, ``--help-query-gpu``, ``topo -m``,
``topo -p2p r``, ``-L``, ``--version`` and the plain table. Texts go to standard
output, errors too, as with the real one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from .books import Books, Holder
from .description import BOOKS, MIB, Box, read_box, root
from .fields import KNOWN, Reading, answer, unit
from .modes import fail, read_mode
from .table import table
from .topology import matrix, peers

APPS = ("gpu_uuid", "pid", "used_memory", "process_name", "gpu_name", "gpu_bus_id", "timestamp")
APPS_ALIASES = {"used_gpu_memory": "used_memory", "name": "process_name"}
BAD_FIELD = 2


def main(arguments: list[str] | None = None) -> int:
    """Answer one call. Returns the exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    box = read_box()
    if box is None:
        print("No devices were found")
        return 6
    mode = read_mode()
    status = fail(mode, box, words)
    if status is not None:
        return status
    lost = int(mode["gpu"]) if mode.get("mode") == "lost" else None
    try:
        return _answer(*_chosen(_Smi(box, lost), words))
    except BrokenPipeError:
        return 1


class _Smi:
    """The cards as they are at this call."""

    def __init__(self, box: Box, lost: int | None) -> None:
        self.box = box
        self.lost = lost
        self.chosen = range(len(box.gpus))
        self.holders: list[Holder] = Books(root() / BOOKS, box.release_seconds).holders()

    def readings(self) -> list[Reading]:
        """Every card that answers."""
        return [
            Reading(self.box, gpu, index, _mib(self.holders, gpu.uuid))
            for index, gpu in enumerate(self.box.gpus)
            if index != self.lost and index in self.chosen
        ]

    def end(self) -> int:
        """Tell of the lost card, if there is one. Returns the exit status."""
        if self.lost is None or self.lost not in self.chosen:
            return 0
        bus_id = self.box.gpus[self.lost].bus_id.upper()
        print(f"Unable to determine the device handle for GPU{bus_id}: Unknown Error")
        return 15

    def processes(self) -> list[tuple[Reading, Holder, str]]:
        """The living processes on each card that answers."""
        return [
            (reading, holder, process_name(holder.pid))
            for reading in self.readings()
            for holder in self.holders
            if holder.gpu == reading.gpu.uuid and holder.alive
        ]


def _chosen(smi: _Smi, words: list[str]) -> tuple[_Smi, list[str]]:
    """Take ``-i CARD`` or ``--id=CARD`` out of a call: it narrows the answer to one card."""
    rest = list(words)
    for place, word in enumerate(words):
        card = word.removeprefix("--id=") if word.startswith("--id=") else None
        if word == "-i":
            card = words[place + 1]
            del rest[place : place + 2]
        elif card is not None:
            del rest[place]
        if card is not None:
            found = smi.box.visible(card)
            smi.chosen = range(0)
            if found:
                index = smi.box.gpus.index(found[0])
                smi.chosen = range(index, index + 1)
    return smi, rest


def _answer(smi: _Smi, words: Sequence[str]) -> int:
    line = " ".join(words)
    if line.startswith("--query-gpu="):
        return _query_gpu(smi, words)
    if line.startswith("--query-compute-apps="):
        return _query_apps(smi, words)
    match list(words):
        case ["topo", "-m"]:
            sys.stdout.write(matrix(smi.box))
        case ["topo", "-p2p", "r"]:
            sys.stdout.write(peers(smi.box))
        case ["-L" | "--list-gpus"]:
            for reading in smi.readings():
                print(f"GPU {reading.index}: {reading.gpu.name} (UUID: {reading.gpu.uuid})")
            return smi.end()
        case ["--version"]:
            print(f"NVIDIA-SMI version  : {smi.box.driver}")
            print(f"NVML version        : {smi.box.driver.rpartition('.')[0]}")
            print(f"DRIVER version      : {smi.box.driver}")
            print(f"CUDA Version        : {smi.box.cuda}")
        case ["--help-query-gpu"]:
            print('List of valid properties to query for the switch "--query-gpu":\n')
            for field in sorted(KNOWN.difference(smi.box.unknown_fields)):
                print(f'"{field}"')
        case []:
            rows = [(r.index, h.pid, name, h.size // MIB) for r, h, name in smi.processes()]
            sys.stdout.write(table(smi.readings(), rows))
            return smi.end()
        case _:
            print("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n")
            return 1
    return 0


def _query_gpu(smi: _Smi, words: Sequence[str]) -> int:
    fields = words[0].partition("=")[2].split(",")
    for field in fields:
        if field not in KNOWN or field in smi.box.unknown_fields:
            print(f'Field "{field}" is not a valid field to query.\n')
            return BAD_FIELD
    units, header = _format(words)
    if header:
        print(", ".join(f"{field} [{unit(field)}]" if unit(field) else field for field in fields))
    for reading in smi.readings():
        print(", ".join(answer(field, reading, units) for field in fields))
    return smi.end()


def _query_apps(smi: _Smi, words: Sequence[str]) -> int:
    fields = words[0].partition("=")[2].split(",")
    names = [APPS_ALIASES.get(field, field) for field in fields]
    for field, name in zip(fields, names, strict=True):
        if name not in APPS:
            print(f'Field "{field}" is not a valid field to query.\n')
            return BAD_FIELD
    units, header = _format(words)
    if header:
        print(", ".join("used_gpu_memory [MiB]" if n == "used_memory" else n for n in names))
    for reading, holder, process in smi.processes():
        cells = {
            "pid": str(holder.pid),
            "used_memory": f"{holder.size // MIB}{' MiB' if units else ''}",
            "process_name": process,
        }
        print(", ".join(cells.get(name) or answer(name, reading, False) for name in names))
    return 0


def _format(words: Sequence[str]) -> tuple[bool, bool]:
    """Whether the format asks for units, and for a header."""
    options = next((w.partition("=")[2] for w in words if w.startswith("--format=")), "csv")
    parts = options.split(",")
    return "nounits" not in parts, "noheader" not in parts


def _mib(holders: Sequence[Holder], gpu: str) -> int:
    return sum(holder.size for holder in holders if holder.gpu == gpu) // MIB


def process_name(pid: int) -> str:
    """The first word of a process's command line, as NVML reports it."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        words = []
    name = words[0].decode(errors="replace") if words else ""
    # Newer drivers print ? for commas.
    return name.replace(",", "?") or "[Not Found]"
