"""The starts in a journal: where each begins, whether it became ready, how it ended.

A unit that crashes and is restarted writes one start after another. Starts that systemd's own
restart connects are one chain: the same configuration, tried again. A cause is looked for in the
last chain, and there in the first start that shows one, since later starts can suffer from
what the first one left (a GPU that fell off the bus is missing in the next start).
"""

import re
from dataclasses import dataclass
from functools import cached_property

from facts.journal.lines import Journal, Line
from inventory.common.engine_log import UP

_BEGINS = re.compile(r"(?P<verb>Starting|Started) (?P<what>\S.*)")
_STRANGER = re.compile(
    r"\S+\.(?:scope|slice|timer|socket|target|mount|path|device)\b|(?:User )?Session "
)
_EXITED = re.compile(
    r"Main process exited, code=(?P<code>exited|killed|dumped), status=(?P<status>\d+)"
)
_RESULT = re.compile(r"Failed with result '(?P<result>[\w-]+)'")
_RESTARTS = re.compile(r"Scheduled restart job, restart counter is at (\d+)")
_DROPPED = re.compile(r"Suppressed (\d{1,12}) messages from \S+")
_STOPS = re.compile(r"Stopping \S")
_START_TIMEOUT = re.compile(r"[Ss]tart operation timed out")
_OWN_STOP = "[shutdown] API server: shutdown triggered"


@dataclass(frozen=True)
class Start:
    """One start of the unit.

    + lines: its lines, oldest first, up to where the next one begins
    + nth: its place in the journal, from 0
    + chained: systemd started it again on its own, after the one before it
    """

    lines: tuple[Line, ...]
    nth: int = 0
    chained: bool = False

    @cached_property
    def began(self) -> float | None:
        """Seconds since the epoch of its first line that has a time."""
        return next((line.time for line in self.lines if line.time is not None), None)

    @cached_property
    def last(self) -> float | None:
        """Seconds since the epoch of its last line that has a time."""
        return next((line.time for line in reversed(self.lines) if line.time is not None), None)

    @cached_property
    def ready(self) -> int | None:
        """Index of the line by which the server says that it is up."""
        for index, line in enumerate(self.lines):
            if line.role not in {"systemd", "kernel"} and UP.match(line.text):
                return index
        return None

    @cached_property
    def stop(self) -> int | None:
        """Index of the first sign that somebody asked it to stop, or systemd lost patience."""
        for index, line in enumerate(self.lines):
            if line.role == "systemd":
                if _STOPS.match(line.text) or _START_TIMEOUT.search(line.text):
                    return index
            elif line.text.startswith(_OWN_STOP):
                return index
        return None

    @cached_property
    def timed_out(self) -> Line | None:
        """systemd's line that the start took longer than TimeoutStartSec."""
        return self._systemd(_START_TIMEOUT)

    @cached_property
    def exit_line(self) -> Line | None:
        """systemd's line on how the main process ended, where it did not end well."""
        return self._systemd(_EXITED)

    @cached_property
    def exit_status(self) -> int | None:
        """Of the main process: 0 also where systemd only says that the unit was deactivated."""
        match = _EXITED.search(self.exit_line.text) if self.exit_line else None
        if match:
            return int(match["status"]) if match["code"] == "exited" else None
        done = self._systemd(re.compile("Deactivated successfully"))
        return 0 if done is not None else None

    @cached_property
    def signal(self) -> int | None:
        """The signal that ended the main process."""
        match = _EXITED.search(self.exit_line.text) if self.exit_line else None
        return int(match["status"]) if match and match["code"] != "exited" else None

    @cached_property
    def result(self) -> str:
        """systemd's word for the failure, e.g. ``exit-code``, ``oom-kill``, ``timeout``."""
        line = self._systemd(_RESULT)
        match = _RESULT.search(line.text) if line else None
        return match["result"] if match else ""

    @cached_property
    def ended(self) -> int | None:
        """Index of the first line by which systemd says that the main process is gone."""
        for index, line in enumerate(self.lines):
            if line.role == "systemd" and (
                _EXITED.search(line.text)
                or _RESULT.search(line.text)
                or "Deactivated successfully" in line.text
            ):
                return index
        return None

    @cached_property
    def suppressed(self) -> int:
        """Messages that journald dropped because they came too fast; it says so later on."""
        said = (_DROPPED.fullmatch(line.text) for line in self.lines if line.role == "systemd")
        return sum(int(match[1]) for match in said if match)

    @cached_property
    def pids(self) -> frozenset[int]:
        """Processes of the unit that wrote something."""
        return frozenset(
            line.pid
            for line in self.lines
            if line.pid is not None and line.role not in {"systemd", "kernel"}
        )

    def _systemd(self, pattern: re.Pattern[str]) -> Line | None:
        for line in self.lines:
            if line.role == "systemd" and pattern.search(line.text):
                return line
        return None


def starts(journal: Journal) -> tuple[Start, ...]:
    """Cut a journal into starts. Lines before the first start belong to none of them.

    + returns: at least one start; without any line that says "Started", all lines are one
    """
    unit = journal.unit
    cuts: list[tuple[int, bool]] = []
    starting = restart = False
    for index, line in enumerate(journal.lines):
        if line.role != "systemd":
            continue
        if _RESTARTS.search(line.text):
            restart = True
        match = _BEGINS.match(line.text)
        if match is None or _of_another(match["what"], unit):
            continue
        if match["verb"] == "Started" and starting:
            starting = False
            continue
        cuts.append((index, restart and bool(cuts)))
        starting, restart = match["verb"] == "Starting", False
    if not cuts:
        return (Start(journal.lines),)
    ends = [index for index, _ in cuts[1:]] + [len(journal.lines)]
    return tuple(
        Start(journal.lines[begin:end], nth, chained)
        for nth, ((begin, chained), end) in enumerate(zip(cuts, ends, strict=True))
    )


def last_chain(found: tuple[Start, ...]) -> tuple[Start, ...]:
    """The starts since somebody last started the unit by hand."""
    first = max((start.nth for start in found if not start.chained), default=0)
    return found[first:]


def restarts(found: tuple[Start, ...]) -> int:
    """systemd's restart counter as last seen; 0 where it never restarted."""
    counts = [
        int(match[1])
        for start in found
        for line in start.lines
        if line.role == "systemd" and (match := _RESTARTS.search(line.text))
    ]
    return max(counts, default=0)


def _of_another(what: str, unit: str) -> bool:
    """Whether a "Started …" is about something else than the unit."""
    if _STRANGER.match(what):
        return True
    named = re.match(r"([\w@.\-\\:]+\.service)\b", what)
    return bool(named and unit and named[1] != unit)
