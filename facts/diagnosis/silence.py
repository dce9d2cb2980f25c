"""A start that neither fails nor goes on: told by what it said last, and how long ago."""

from typing import NamedTuple

from facts.diagnosis.rule import Scene
from facts.diagnosis.rules.nccl import P2P_REMEDY, P2P_SOURCE, P2P_WHY
from facts.journal.lines import Line
from inventory.common.engine_log import (
    COMPILES,
    HEARTBEAT,
    HEARTBEATS,
    IDLE_LINE,
    NCCL_LINE,
    PERCENT,
    most_heartbeats,
)
from inventory.common.start_phases import (
    COMPILED,
    LOADED,
    LOADING_PATIENCE,
    NCCL_PATIENCE,
    OTHER_PATIENCE,
    STARTS_LOADING,
)


class Hang(NamedTuple):
    """A start that hangs, and since which line."""

    cause: str
    title: str
    line: Line
    why: str
    next_step: str
    seconds: int
    waits: int
    source: str


def hang(scene: Scene, until: float | None) -> Hang | None:
    """Whether the start hangs.

    + until: seconds since the epoch up to which nothing more was heard; None where not known
    """
    lines = [line for line in scene.window if _speaks(line)]
    if not lines:
        return None
    progress = [line for line in lines if not line.text.startswith(HEARTBEAT)]
    last = progress[-1] if progress else lines[0]
    trailing = [line for line in lines if line.text.startswith(HEARTBEAT) and line.no >= last.no]
    silent = 0.0
    if until is not None and last.time is not None:
        silent = until - last.time
    if scene.serving:
        return _while_serving(trailing, silent)
    if _waits_too_long(lines, trailing):
        return _stuck(scene, trailing[0], lines, round(silent), len(trailing))
    patience = _patience(last, lines)
    if trailing or silent < patience:
        return None
    return _stuck(scene, last, lines, round(silent), 0)


def _speaks(line: Line) -> bool:
    """Lines by which the engine shows that it is alive."""
    if line.role in {"systemd", "kernel"} or IDLE_LINE.search(line.text):
        return False
    return bool(line.level) or line.pid is not None or PERCENT.search(line.text) is not None


def _patience(last: Line, lines: list[Line]) -> float:
    if NCCL_LINE.match(last.text):
        return NCCL_PATIENCE
    return OTHER_PATIENCE if any(LOADED.match(line.text) for line in lines) else LOADING_PATIENCE


def _waits_too_long(lines: list[Line], trailing: list[Line]) -> bool:
    compiling = any(COMPILES.match(line.text) for line in lines) and not any(
        COMPILED.match(line.text) for line in lines
    )
    return len(trailing) >= most_heartbeats(compiling=compiling)


def _while_serving(trailing: list[Line], silent: float) -> Hang | None:
    if len(trailing) < HEARTBEATS:
        return None
    return Hang(
        "H22",
        "the engine hangs while /health says 200",
        trailing[0],
        "a worker has not answered for minutes: a kernel or a collective of the ranks hangs",
        "restart the service; ask for one token from time to time instead of /health; if it comes "
        "back, look at NCCL (peer-to-peer, NCCL_P2P_LEVEL) and at journalctl -k",
        round(silent),
        len(trailing),
        "vllm-project/vllm#36451, #39863, #43122",
    )


def _stuck(scene: Scene, line: Line, lines: list[Line], seconds: int, waits: int) -> Hang:
    """Name a hang by the phase in which it stands."""
    several = scene.settings.world > 1
    loaded = any(LOADED.match(other.text) for other in lines)
    loading = any(STARTS_LOADING.match(other.text) for other in lines) and not loaded
    if several and not loading and (loaded or NCCL_LINE.match(line.text)):
        where = "the first collective never ends" if loaded else "NCCL never gets connected"
        return Hang("H11", where, line, P2P_WHY, P2P_REMEDY, seconds, waits, P2P_SOURCE)
    what = "while it loads the weights" if loading else "during its start"
    return Hang(
        "H22",
        f"the engine hangs {what}",
        line,
        "it neither fails nor goes on: a disk or network file system that does not answer, a "
        "process that was stopped, or a deadlock",
        "look at what it waits for: ps -o pid,stat,wchan:30 of the unit's processes (D means the "
        "disk), dmesg, py-spy dump --pid PID; then restart the service",
        seconds,
        waits,
        "vllm-project/vllm#36451",
    )
