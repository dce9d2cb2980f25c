"""Who holds a GPU: process, unit or container, since when, and how much.

Command lines are not shown: they may carry keys.
"""

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inventory.common.cgroup import ProcessOrigin, origin
from inventory.common.smi import is_hidden
from inventory.common.units import GIB, MIB, gibibytes
from operations.remote.switch.gpu_memory.smi import GpuReading, ProcessRow

_START_FIELD = 22  # proc(5): starttime
_DAY = 86400
_INTERPRETER = re.compile(r"(python[0-9.]*|perl|ruby|node|bash|sh)")


@dataclass(frozen=True)
class Holder:
    """A process and what it holds.

    + held: (UUID of the card or the driver's word, MiB or None), one a card
    + origin: None where the process is not in /proc
    + ticks: start in clock ticks since boot: tells two processes of one pid apart
    + started: seconds since the epoch
    """

    pid: int | None
    name: str
    held: tuple[tuple[str, int | None], ...]
    origin: ProcessOrigin | None = None
    ticks: int | None = None
    started: float | None = None

    @property
    def key(self) -> tuple[int | None, int | None, str]:
        """The same process in the next reading."""
        return self.pid, self.ticks, "" if self.pid else self.name

    @property
    def unit(self) -> str | None:
        return self.origin.unit if self.origin else None

    @property
    def is_hidden(self) -> bool:
        """The driver tells of a process that this system does not show."""
        return self.origin is None


def start_ticks(stat: str) -> int | None:
    """Start of a process in clock ticks since boot, from its /proc/PID/stat."""
    # The command, field 2, stands in parentheses and may hold any character.
    fields = stat.rpartition(")")[2].split()
    text = fields[_START_FIELD - 3] if len(fields) > _START_FIELD - 3 else ""
    return int(text) if re.fullmatch(r"[0-9]{1,20}", text) else None


def since(started: float, now: float) -> str:
    """``since 14:02:11, 3 min ago``; with the date where it was another day."""
    ago = max(0.0, now - started)
    for size, word in ((_DAY, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if ago >= size or word == "s":
            count = f"{ago // size:.0f} {word}"
            break
    then, today = time.localtime(started), time.localtime(now)
    same = then[:3] == today[:3]
    return f"since {time.strftime('%H:%M:%S' if same else '%Y-%m-%d %H:%M:%S', then)}, {count} ago"


def title(name: str, words: Sequence[str]) -> str:
    """A process's name for people: an interpreter with what it runs, and no other argument.

    + name: as the driver tells it
    + words: its command line
    """
    base = name.rsplit("/", 1)[-1] or name
    if not _INTERPRETER.fullmatch(base):
        return base
    for at, word in enumerate(words[1:], 1):
        if word == "-m" and at + 1 < len(words):
            return f"{base} -m {words[at + 1]}"
        if word in ("-c", "-e"):
            break
        if word and not word.startswith("-"):
            return f"{base} {word.rsplit('/', 1)[-1]}"
    return base


def amount(mib: int | None) -> str:
    """Memory for people."""
    if mib is None:
        return "an unknown amount"
    return f"{mib} MiB" if mib * MIB < GIB else gibibytes(mib * MIB)


def phrase(holder: Holder, cards: Mapping[str, GpuReading], now: float) -> str:
    """One holder in words.

    + now: seconds since the epoch

    >>> uuid = "GPU-1b2c3d4e-…"
    >>> hold = Holder(412, "python3 train.py", ((uuid, 61440),), ProcessOrigin(None, "in no unit"))
    >>> phrase(hold, {uuid: GpuReading(uuid, 4)}, 0)
    'python3 train.py (pid 412, in no unit) holds 60.0 GiB of GPU 4 (GPU-1b2c3d4e)'
    """
    about = [f"pid {holder.pid}" if holder.pid is not None else "pid not told by the driver"]
    if holder.origin is not None:
        about.append(holder.origin.words)
    elif holder.pid is not None:
        about.append("not in /proc: of another pid namespace, or just gone")
    if holder.started is not None:
        about.append(since(holder.started, now))
    held = ", ".join(
        f"{amount(mib)} of {cards[gpu].label if gpu in cards else gpu}" for gpu, mib in holder.held
    )
    return f"{holder.name} ({', '.join(about)}) holds {held}"


def identify(processes: Iterable[ProcessRow], proc: Path = Path("/proc")) -> tuple[Holder, ...]:
    """What /proc tells of these processes; one holder a process, whatever it holds."""
    rows: dict[tuple[int | None, str], list[ProcessRow]] = {}
    for process in processes:
        rows.setdefault((process.pid, "" if process.pid else process.name), []).append(process)
    return tuple(_holder(pid, of, proc) for (pid, _), of in rows.items())


def _holder(pid: int | None, of: Sequence[ProcessRow], proc: Path) -> Holder:
    name, held = of[0].name, tuple((process.gpu, process.mib) for process in of)
    if pid is None or is_hidden(name):
        # [Not Found]: the number belongs to another pid namespace.
        return Holder(pid, "a process without a name" if is_hidden(name) else name, held)
    try:
        ticks = start_ticks((proc / str(pid) / "stat").read_text(errors="replace"))
        where = origin((proc / str(pid) / "cgroup").read_text(errors="replace").splitlines())
        words = (proc / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return Holder(pid, name, held)
    started = None
    if ticks is not None:
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        started = time.time() - age
    return Holder(pid, title(name, words), held, where, ticks, started)
