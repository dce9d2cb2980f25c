"""What nvidia-smi says of the memory and the processes of some GPUs, as far as it can be believed.

One reading is two calls, side by side: memory of every card, and the processes on them. On one H200
(driver 580) that took 0.03 s, one after the other 0.05 s, and the XML that has both 0.12 s.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

CARDS = ("index", "mig.mode.current", "uuid", "pstate", "memory.used", "name")
APPS = ("gpu_uuid", "pid", "used_memory", "process_name")
"""Names come last: nothing is quoted, and they may hold commas."""

PLACES = (
    "/usr/local/nvidia/bin:/usr/lib/wsl/lib:/run/nvidia/driver/usr/bin:/run/current-system/sw/bin"
)
"""Where nvidia-smi is on machines that do not have it on the PATH."""

NO_PID = (0, 0xFFFFFFFF)
"""Numbers that drivers 535.43 to 535.86 print for lack of one (nvitop#75)."""

_ABSENT = ("[N/A]", "N/A", "[Not Supported]", "Not Supported")
_INTEGRATED = re.compile(r"\b(GB10|Thor|Orin|N1X)\b")
_LAST_WORDS = 160
_REAP = 1.0


@dataclass(frozen=True)
class Card:
    """One GPU.

    + index: nvidia-smi's number, for people only
    + used: MiB; None where it is not known, with the reason in `why`
    + mig: cut into slices, so that processes may be listed under a slice's UUID
    """

    uuid: str
    index: int | None = None
    used: int | None = None
    why: str = ""
    mig: bool = False

    @property
    def label(self) -> str:
        """``GPU 3 (GPU-1b2c3d4e)``, or the whole UUID where it has no number."""
        return self.uuid if self.index is None else f"GPU {self.index} ({self.uuid[:12]})"


@dataclass(frozen=True)
class Process:
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
class Answer:
    """What one call printed.

    + status: None where it was not run, or did not end in time
    """

    status: int | None
    text: str


def ask(limit: float) -> tuple[Answer, Answer]:
    """Memory of the cards, and the processes on them.

    + limit: seconds; without persistence mode a call may take half a minute (AgentBaker#2829)
    """
    deadline = time.monotonic() + limit
    calls = []
    try:
        for query in ("gpu=" + ",".join(CARDS), "compute-apps=" + ",".join(APPS)):
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
        silent = Answer(None, f"it cannot be run ({error.strerror})")
        return silent, silent
    return _collect(calls[0], deadline, limit), _collect(calls[1], deadline, limit)


def _collect(call: subprocess.Popen[str], deadline: float, limit: float) -> Answer:
    try:
        text, _ = call.communicate(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        call.kill()
        # A call that is stuck inside the driver outlives even that: it is not waited for.
        with suppress(subprocess.TimeoutExpired):
            call.wait(_REAP)
        if call.stdout:
            call.stdout.close()
        return Answer(None, f"no answer within {limit:.0f} s")
    return Answer(call.returncode, text)


def complaint(answer: Answer) -> str:
    """Why there is no good answer, for people: the status and the tool's first words."""
    said = " ".join(" ".join(answer.text.split("\n\n")[0].split()).split())[:_LAST_WORDS]
    if answer.status is None:
        return f"nvidia-smi: {said}"
    return f"nvidia-smi ended with status {answer.status}: {said or 'it said nothing'}"


def parse_cards(answer: Answer, gpus: Iterable[str]) -> dict[str, Card]:
    """One card for each of these UUIDs.

    Rows count whatever the exit status: another card that is lost spoils the status, not the
    rows. A card without a row does not answer. What is unknown is never a number: a dead card
    prints "0 MiB used" beside a state that it cannot tell.
    """
    rows: dict[str, Card] = {}
    strays = []
    for line in answer.text.splitlines() if answer.status is not None else ():
        cells = [cell.strip() for cell in line.split(",", len(CARDS) - 1)]
        row = dict(zip(CARDS, cells, strict=False))
        if len(cells) == len(CARDS) and row["uuid"].startswith("GPU-"):
            rows.setdefault(row["uuid"], _card(row))
        elif line.strip():
            strays.append(line.strip())
    why = complaint(answer)
    if rows or answer.status == 0:
        why = f"nvidia-smi has no row for it{': ' + strays[0][:_LAST_WORDS] if strays else ''}"
    return {uuid: rows.get(uuid, Card(uuid, why=why)) for uuid in gpus}


def _card(row: Mapping[str, str]) -> Card:
    used = row["memory.used"]
    count = int(used) if re.fullmatch(r"[0-9]{1,9}", used) else None
    why = "" if count is not None else f"memory.used is {used or 'empty'}"
    if count is None and used in _ABSENT and _INTEGRATED.search(row["name"]):
        # It has no memory of its own: what it holds is its processes' alone.
        count, why = 0, ""
    if not re.fullmatch(r"P[0-9]{1,2}", row["pstate"]) and row["pstate"] not in _ABSENT:
        count, why = None, f"pstate is {row['pstate'] or 'empty'}"
    mig = row["mig.mode.current"]
    if mig not in ("Disabled", *_ABSENT):
        count, why = None, f"MIG is {mig or 'unknown'}: the whole card's memory tells nothing"
    index = row["index"]
    number = int(index) if re.fullmatch(r"[0-9]{1,4}", index) else None
    return Card(row["uuid"], number, count, why, mig == "Enabled")


def parse_apps(text: str) -> tuple[Process, ...]:
    """One process a line. No line is lost: one of another shape is a process without a name."""
    found = []
    for line in text.splitlines():
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split(",", len(APPS) - 1)]
        gpu, pid, mib, name = (
            cells if len(cells) == len(APPS) else ("?", "", "", line.strip()[:_LAST_WORDS])
        )
        number = int(pid) if re.fullmatch(r"[0-9]{1,10}", pid) else None
        found.append(
            Process(
                gpu=gpu,
                pid=None if number in NO_PID else number,
                mib=int(mib) if re.fullmatch(r"[0-9]{1,9}", mib) else None,
                name=name,
            )
        )
    return tuple(found)


def on_cards(processes: Iterable[Process], cards: Mapping[str, Card]) -> tuple[Process, ...]:
    """The processes that are, or may be, on one of these cards."""
    mig = any(card.mig for card in cards.values())
    return tuple(
        process
        for process in processes
        if process.gpu in cards
        or (mig and process.gpu.startswith("MIG-"))
        or not process.gpu.startswith(("GPU-", "MIG-"))
    )
