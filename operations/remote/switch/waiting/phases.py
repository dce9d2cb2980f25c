"""The phases of a start while it goes on: which one it is in, how long, and what is left.

The same rules as facts/journal/phases.py applies to a whole journal, told line by line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from operations.remote.switch.waiting.journal import Entry

UP = "Application startup complete."
"""The server's own line that it is up."""
DEFAULT = (("server", re.escape(UP), "first"),)
"""The milestones of a start of which nothing is known: it is one phase."""
MOST_LINES = 200
HEARTBEAT = "No available shared memory broadcast block found in"
"""A worker has not answered for a minute: it compiles, or it hangs."""

_PREFIX = re.compile(r"\([A-Za-z][\w .=\-]{0,60}? pid=\d{1,10}\) ?")
_LOGGED = re.compile(
    r"INFO \d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)? \[[^\]\n]{1,200}:\d+\] ?(.*)", re.S
)
_UVICORN = re.compile(r"INFO: {2,}(.*)", re.S)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PERCENT = re.compile(r"(\d{1,3})% ?(?:\||Completed)")
_IDLE = re.compile(r"Engine \d+: Avg prompt throughput|\" [1-5]\d\d(?: |$)")
"""Lines about requests, or about their absence."""
_COMPILES = re.compile(r"Starting torch\.compile|Using cache directory: .* torch\.compile")
_COMPILED = re.compile(r"torch\.compile (?:took|takes) .* in total")
_NUMBERS = re.compile(
    r"Checkpoint size: |Loading weights took |Model loading took |torch\.compile (?:took|takes) "
    r"|Available KV cache memory: |KV cache size: |Maximum concurrency for |# \w+ blocks: "
    r"|JIT kernel warmup finished|Graph capturing finished|CUDA graph pool memory: "
    r"|init engine \(|Free memory on device .*on startup\. |block scales refined from "
    r"|Compiling a graph for compile range |Directly load AOT compilation from path "
    rf"|vLLM is using nccl==|{HEARTBEAT}"
)
_SECRET = re.compile(r"('[\w-]*(?:api_key|token|password|secret)': )(\[[^\]]*\]|'[^']*')")


class Ended(NamedTuple):
    """A phase that ended.

    + at: by the monotonic clock, in seconds
    """

    phase: str
    at: float


def information(text: str) -> str | None:
    """The message of a line at level INFO, without the engine's prefix; None for other lines.

    >>> information("(EngineCore pid=7) INFO 11-24 21:03:20 [core.py:3] Graph capturing finished")
    'Graph capturing finished'
    """
    text = _COLOUR.sub("", text)
    prefix = _PREFIX.match(text)
    text = text[prefix.end() :] if prefix else text
    found = _LOGGED.fullmatch(text) or _UVICORN.fullmatch(text)
    return found[1] if found else None


class Track:
    """One start, told by its journal.

    + milestones: phase, pattern of the line that ends it, and whether the first or the last such
      line counts
    + started: of the main process, by the monotonic clock
    + before: seconds by phase of an earlier start; it also tells which phases this service has
    """

    def __init__(
        self,
        milestones: Sequence[tuple[str, str, str]],
        started: float,
        before: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        self.before = before
        self.milestones = [
            (phase, re.compile(pattern), which) for phase, pattern, which in milestones or DEFAULT
        ]
        self.order = [phase for phase, _, _ in self.milestones]
        self.started = started
        self.progress = started
        """When the start last showed that it goes on."""
        self.heartbeats = 0
        """Since then."""
        self.is_told = False
        """Whether the journal holds anything of it: without, silence means nothing."""
        self.is_compiling = False
        self.percent: int | None = None
        """Of the phase that is under way."""
        self._ends: dict[str, float] = {}
        self._kept: list[str] = []

    def take(self, entry: Entry) -> Ended | None:
        """Take in the next line.

        + returns: the phase that ends with it; a later rank may end it once more
        """
        self.is_told = True
        text = information(entry.text)
        if entry.by_systemd:
            self._keep(entry)
            return None
        self._beat(entry, text)
        if text is None:
            if not self._kept:
                self._keep(entry)
            return None
        ended = None
        for phase, pattern, which in self.milestones:
            if pattern.match(text) and (which == "last" or phase not in self._ends):
                self._ends[phase] = entry.monotonic
                self.percent = None
                ended = Ended(phase, entry.monotonic)
        if ended or not self._kept or _NUMBERS.search(text):
            self._keep(entry)
        return ended

    def _beat(self, entry: Entry, text: str | None) -> None:
        if text is not None and text.startswith(HEARTBEAT):
            self.heartbeats += 1
            return
        if _IDLE.search(entry.text):
            return
        self.progress = max(self.progress, entry.monotonic)
        self.heartbeats = 0
        percent = _PERCENT.findall(entry.text)
        if percent:
            self.percent = min(100, int(percent[-1]))
        if text is not None and _COMPILES.match(text):
            self.is_compiling = True
        if text is not None and _COMPILED.match(text):
            self.is_compiling = False

    def _keep(self, entry: Entry) -> None:
        self._kept.append(_SECRET.sub(r"\1'***'", entry.line()))

    @property
    def lines(self) -> tuple[str, ...]:
        """What is worth keeping of the journal: the ends of phases, and the engine's numbers."""
        half = MOST_LINES // 2
        if len(self._kept) <= MOST_LINES:
            return tuple(self._kept)
        return (*self._kept[:half], *self._kept[-half:])

    @property
    def is_up(self) -> bool:
        """Whether the last milestone was seen: the server says that it is up."""
        return self.order[-1] in self._ends

    @property
    def up_at(self) -> float | None:
        """When it was."""
        return self._ends[self.order[-1]] if self.is_up else None

    @property
    def phase(self) -> str:
        """The one that is under way; the last one where all have ended."""
        reached = [number for number, name in enumerate(self.order) if name in self._ends]
        later = self.order[max(reached, default=-1) + 1 :] or self.order[-1:]
        return next((name for name in later if name in self.before), later[0])

    @property
    def since(self) -> float:
        """When it began, by the monotonic clock."""
        return max(self._ends.values(), default=self.started)

    def seconds(self, until: float) -> dict[str, float]:
        """Seconds by phase. They follow each other without a gap; a phase that printed nothing is
        missing, and its time is in the next one.

        + until: when the service answered; the last phase ends there
        """
        parts: dict[str, float] = {}
        at = self.started
        for name in self.order:
            if name in self._ends:
                reached = min(max(at, self._ends[name]), until)
                parts[name] = reached - at
                at = reached
        last = self.order[-1]
        parts[last] = parts.get(last, 0.0) + max(0.0, until - at)
        return parts

    def spent(self, phase: str) -> float:
        """Seconds of a phase that has ended."""
        return self.seconds(self._ends[phase])[phase]

    def left(self, now: float) -> float | None:
        """Seconds until it answers, if each phase takes as long as it did the last time.

        + returns: None where nothing comparable is known
        """
        if not self.before.keys() & set(self.order):
            return None
        phase = self.phase
        later = self.order[self.order.index(phase) + 1 :]
        rest = max(0.0, self.before.get(phase, 0.0) - (now - self.since))
        return rest + sum(self.before.get(name, 0.0) for name in later)
