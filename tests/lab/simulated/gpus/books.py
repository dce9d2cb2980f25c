"""Who holds how much memory of which simulated GPU: one small file for each pair of both.

A holder counts while its process lives; process ids are told apart by their start time. The
memory of a process that is gone comes back after a while, as on a real card, whose driver
takes the memory back after the exit is seen.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

MINIMUM_FIELDS = 20
"""Fields of /proc/<pid>/stat after the command, up to the start time."""


@dataclass(frozen=True)
class Holder:
    """Memory of one card held by one process.

    + size: bytes
    + alive: False while the memory of an ended process is on its way back
    """

    gpu: str
    pid: int
    size: int
    alive: bool


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None if it is gone or a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    words = text[text.rindex(")") + 1 :].split()
    if len(words) < MINIMUM_FIELDS or words[0] in "ZX":
        return None
    return int(words[MINIMUM_FIELDS - 1])


class Books:
    """The books of one box.

    + folder: where the files are; it must exist (GPUs that are not there hold nothing)
    + release_seconds: how long memory stays taken after its process is gone
    """

    def __init__(self, folder: Path, release_seconds: float) -> None:
        self.folder = folder
        self.release_seconds = release_seconds

    def hold(self, gpu: str, size: int, pid: int | None = None, beating: bool = False) -> None:
        """Note that a process holds this much of a card now. Replaces its earlier figure.

        + size: bytes
        + pid: None for the caller
        + beating: the caller will call :meth:`beat` ten times a second, so that the time of its
          end is known. Otherwise the end is dated when somebody first looks.
        """
        holder = pid or os.getpid()
        entry = {"start": start_time(holder), "size": size, "beating": beating}
        path = self.folder / f"{gpu}.{holder}"
        temporary = self.folder / f".{gpu}.{holder}.{os.getpid()}"
        temporary.write_text(json.dumps(entry))
        # Others read it whatever the umask of the unit is.
        temporary.chmod(0o644)
        temporary.replace(path)

    def beat(self, gpu: str) -> None:
        """Say that the caller is still there."""
        (self.folder / f"{gpu}.{os.getpid()}").touch()

    def drop(self, gpu: str, pid: int | None = None) -> None:
        """Give a card's memory back at once, as a process that frees it does."""
        (self.folder / f"{gpu}.{pid or os.getpid()}").unlink(missing_ok=True)

    def holders(self) -> list[Holder]:
        """Every holder, ordered by card and process; forgets those whose memory came back."""
        found = []
        for path in sorted(self.folder.glob("GPU-*.*")):
            gpu, _, pid = path.name.partition(".")
            if not pid.isdigit():
                continue
            try:
                entry = json.loads(path.read_text())
                ended = self._ended(path, entry, int(pid))
            except (FileNotFoundError, ValueError):
                continue
            if ended is None or time.time() - ended < self.release_seconds:
                found.append(Holder(gpu, int(pid), entry["size"], ended is None))
            else:
                self._forget(path)
        return found

    def used(self, gpu: str) -> int:
        """Bytes of a card that somebody holds."""
        return sum(holder.size for holder in self.holders() if holder.gpu == gpu)

    def _ended(self, path: Path, entry: dict[str, int], pid: int) -> float | None:
        """When the holder ended; None while it lives."""
        start = start_time(pid)
        if start is not None and start == entry["start"]:
            return None
        if entry["beating"]:
            return path.stat().st_mtime
        stamp = path.with_name(f"{path.name}.ended")
        try:
            stamp.touch(exist_ok=False)
        except FileExistsError:
            return stamp.stat().st_mtime
        return time.time()

    def _forget(self, path: Path) -> None:
        for name in (path, path.with_name(f"{path.name}.ended")):
            try:
                name.unlink(missing_ok=True)
            except PermissionError:
                # Another user's file in a sticky folder: it counts as nothing all the same.
                continue
