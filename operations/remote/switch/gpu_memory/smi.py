"""What nvidia-smi says of the memory and the processes of some GPUs, where it can be believed.

One reading is two calls, side by side: memory of every card, and the processes on them. On one H200
(driver 580) that took 0.03 s, one after the other 0.05 s, and the XML that has both 0.12 s.
"""

import os
import re
import subprocess
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from inventory.common import smi
from inventory.common.smi import idle_limit
from inventory.common.units import MIB

CARDS = ("index", "mig.mode.current", "uuid", "pstate", "memory.used", "memory.total", "name")
"""The name comes last: nothing is quoted, and it may hold commas."""

PLACES = (
    "/usr/local/nvidia/bin:/usr/lib/wsl/lib:/run/nvidia/driver/usr/bin:/run/current-system/sw/bin"
)
"""Where nvidia-smi is on machines that do not have it on the PATH."""

_LAST_WORDS = 160
_REAP = 1.0


@dataclass(frozen=True)
class GpuReading:
    """One GPU.

    + index: nvidia-smi's number, for people only
    + used: MiB; None where it is not known, with the reason in `why`
    + total: MiB; 0 where it is not known
    + mig: cut into slices, so that processes may be listed under a slice's UUID
    """

    uuid: str
    index: int | None = None
    used: int | None = None
    why: str = ""
    mig: bool = False
    total: int = 0

    @property
    def is_idle(self) -> bool:
        """Whether no more is known to be used than an idle card may show."""
        return self.used is not None and self.used * MIB <= idle_limit(self.total * MIB)

    @property
    def label(self) -> str:
        """``GPU 3 (GPU-1b2c3d4e)``, or the whole UUID where it has no number."""
        return self.uuid if self.index is None else f"GPU {self.index} ({self.uuid[:12]})"


@dataclass(frozen=True)
class ProcessRow:
    """One row of the processes: one process on one card.

    + gpu: UUID, or the driver's word for not telling
    + pid: None where the driver does not tell
    + mib: None where the driver does not tell; it is a holder all the same
    """

    gpu: str
    pid: int | None
    mib: int | None
    name: str


@dataclass(frozen=True)
class ToolOutput:
    """What one call printed.

    + status: None where it was not run, or did not end in time
    """

    status: int | None
    text: str


def ask(limit: float) -> tuple[ToolOutput, ToolOutput]:
    """Memory of the cards, and the processes on them.

    + limit: seconds; without persistence mode a call may take half a minute (AgentBaker#2829)
    """
    deadline = time.monotonic() + limit
    calls = []
    try:
        for query in ("gpu=" + ",".join(CARDS), "compute-apps=" + ",".join(smi.APPS)):
            calls.append(
                subprocess.Popen(
                    ["nvidia-smi", f"--query-{query}", "--format=csv,noheader,nounits"],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, "PATH": f"{os.environ.get('PATH', os.defpath)}:{PLACES}"},
                    text=True,
                    errors="replace",
                )
            )
    except OSError as error:
        silent = ToolOutput(None, f"it cannot be run ({error.strerror})")
        return silent, silent
    return _collect(calls[0], deadline, limit), _collect(calls[1], deadline, limit)


def _collect(call: subprocess.Popen[str], deadline: float, limit: float) -> ToolOutput:
    try:
        text, _ = call.communicate(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        call.kill()
        # A call that is stuck inside the driver outlives even that: it is not waited for.
        with suppress(subprocess.TimeoutExpired):
            call.wait(_REAP)
        if call.stdout:
            call.stdout.close()
        return ToolOutput(None, f"no answer within {limit:.0f} s")
    return ToolOutput(call.returncode, text)


def complaint(answer: ToolOutput) -> str:
    """Why there is no good answer, for people: the status and the tool's first words."""
    said = " ".join(" ".join(answer.text.split("\n\n")[0].split()).split())[:_LAST_WORDS]
    if answer.status is None:
        return f"nvidia-smi: {said}"
    return f"nvidia-smi ended with status {answer.status}: {said or 'it said nothing'}"


def parse_cards(answer: ToolOutput, gpus: Iterable[str]) -> dict[str, GpuReading]:
    """One card for each of these UUIDs.

    Rows count whatever the exit status: another card that is lost spoils the status, not the
    rows. A card without a row does not answer. What is unknown is never a number: a dead card
    prints "0 MiB used" beside a state that it cannot tell.
    """
    rows: dict[str, GpuReading] = {}
    strays = []
    for line in answer.text.splitlines() if answer.status is not None else ():
        row = dict(zip(CARDS, smi.cells(line, CARDS) or (), strict=False))
        if row.get("uuid", "").startswith("GPU-"):
            rows.setdefault(row["uuid"], _card(row))
        elif line.strip():
            strays.append(line.strip())
    why = complaint(answer)
    if rows or answer.status == 0:
        why = f"nvidia-smi has no row for it{': ' + strays[0][:_LAST_WORDS] if strays else ''}"
    return {uuid: rows.get(uuid, GpuReading(uuid, why=why)) for uuid in gpus}


def _card(row: Mapping[str, str]) -> GpuReading:
    used, pstate = row["memory.used"], row["pstate"]
    count = smi.whole(used, 9)
    why = "" if count is not None else f"memory.used is {used or 'empty'}"
    if smi.is_absent(used) and smi.is_integrated(row["name"]):
        # It has no memory of its own: what it holds is its processes' alone.
        count, why = 0, ""
    if not re.fullmatch(r"P[0-9]{1,2}", pstate) and not smi.is_absent(pstate):
        count, why = None, f"pstate is {pstate or 'empty'}"
    mig = smi.mig(row["mig.mode.current"])
    if mig is not False:
        word = row["mig.mode.current"] or "unknown"
        count, why = None, f"MIG is {word}: the whole card's memory tells nothing"
    index, total = smi.whole(row["index"], 4), smi.whole(row["memory.total"], 9) or 0
    return GpuReading(row["uuid"], index, count, why, mig is True, total)


def parse_apps(text: str) -> tuple[ProcessRow, ...]:
    """One process a line. No line is lost: one of another shape is a process without a name."""
    found = []
    for line in text.splitlines():
        if line.strip():
            stray = ("?", "", "", line.strip()[:_LAST_WORDS])
            gpu, pid, mib, name = smi.cells(line, smi.APPS) or stray
            number = smi.whole(pid, 10)
            number = None if number in smi.NO_PID else number
            found.append(ProcessRow(gpu, number, smi.whole(mib, 9), name))
    return tuple(found)


def on_cards(
    processes: Iterable[ProcessRow], cards: Mapping[str, GpuReading]
) -> tuple[ProcessRow, ...]:
    """The processes that are, or may be, on one of these cards."""
    mig = any(card.mig for card in cards.values())
    return tuple(
        process
        for process in processes
        if process.gpu in cards
        or (mig and process.gpu.startswith("MIG-"))
        or not process.gpu.startswith(("GPU-", "MIG-"))
    )
