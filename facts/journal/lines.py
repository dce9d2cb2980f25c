"""A journal as typed lines: who wrote each one, when, how loud, and from where in the engine."""

import re
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from facts.journal.formats import Entry, entry
from inventory.common.engine_log import logged, prefix_of, uncoloured

QUIET_LEVELS = frozenset({"INFO", "DEBUG"})
"""Levels that never carry a cause."""

_RANK = re.compile(r"(?:TP|rank=|VllmWorker-|Worker-|Worker_)(\d{1,4})")
_SYSTEMD_TEXT = re.compile(
    r"[\w@.\-\\:]{1,200}\.service: |(?:Started|Starting|Stopped|Stopping|Failed to start) \S"
)
_KERNEL_TEXT = re.compile(
    r"NVRM: |pcieport |Memory cgroup out of memory|Out of memory: Killed|oom-kill:"
)
_LINE_MAX = 48 * 1024
"""Bytes at which journald cuts a line. The rest becomes entries of their own
(journald.conf(5), LineMax=)."""
_CUT = re.compile(r"\[48(?:\.0)?K blob data\]")
"""How a line that was cut inside a character is shown."""
_JOURNALD = "systemd-journald"
_META = re.compile(r"-- (?:Boot |No entries|Journal begins|Logs begin|Reboot)")


class Line(NamedTuple):
    """One line of the journal."""

    no: int
    """Counted from 1 in the text that was read."""
    time: float | None
    """Seconds since the epoch; of unknown year where the format has none."""
    role: str
    """``systemd``, ``kernel``, ``APIServer``, ``EngineCore``, ``Worker``, or empty."""
    process: str
    """As the engine names it, e.g. ``Worker_TP2``; the identifier where it does not."""
    pid: int | None
    rank: int | None
    """Of a worker, where its name says so."""
    level: str
    """Empty for what did not go through a logger: tracebacks, warnings, other libraries."""
    where: str
    """Source file and line of the log call, e.g. ``core.py:1510``."""
    text: str
    invocation: str = ""

    @property
    def source(self) -> str:
        """The source file of the log call, without folders and line number."""
        return self.where.rpartition(":")[0].rpartition("/")[2]


@dataclass(frozen=True)
class Journal:
    """Lines of one unit, oldest first, with kernel lines among them if they were asked for."""

    lines: tuple[Line, ...] = ()

    @property
    def unit(self) -> str:
        """The unit that systemd speaks of most; empty where it says nothing."""
        named = Counter(
            match[1]
            for line in self.lines
            if line.role == "systemd"
            and (match := re.match(r"(?:\w+ )?([\w@.\-\\:]+\.service)\b", line.text))
        )
        return named.most_common(1)[0][0] if named else ""


def read_journal(text: str | bytes, invocation: str = "") -> Journal:
    """Read what ``journalctl`` printed. Any text gives a journal, if only one of plain lines.

    + text: in any of its output formats (see :mod:`facts.journal.formats`)
    + invocation: keep only this start's lines, where the format names it (json)

    >>> journal = read_journal(
    ...     "2026-11-24T21:03:20+0000 box vllm[7]: "
    ...     "(Worker_TP1 pid=7) ERROR 11-24 21:03:20 [a.py:3] torn"
    ... )
    >>> journal.lines[0].process, journal.lines[0].rank, journal.lines[0].text
    ('Worker_TP1', 1, 'torn')
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    lines: list[Line] = []
    headed = False
    cut: dict[tuple[str, int | None], Line] = {}
    for no, raw in enumerate(text.split("\n"), 1):
        whole = uncoloured(raw.rstrip("\r"))
        if not whole or (whole.startswith("--") and _META.match(whole)):
            continue
        found = entry(whole)
        if found is None:
            lines.append(_headless(no, whole, lines[-1] if lines else None, headed=headed))
            continue
        headed = True
        if invocation and found.invocation not in {"", invocation}:
            continue
        writer = (found.ident, found.pid)
        if writer in cut:
            lines.append(_rest(no, found, cut.pop(writer)))
        elif "\n" in found.text:
            lines.extend(_line(no, found._replace(text=part)) for part in found.text.split("\n"))
        else:
            lines.append(_line(no, found))
        if _was_cut(found.text):
            cut[writer] = lines[-1]
    return Journal(_named(lines))


def _was_cut(text: str) -> bool:
    """Whether journald ended the entry, and not the program that wrote it."""
    if len(text) <= _LINE_MAX // 4 and not _CUT.fullmatch(text):
        return False
    return len(text.encode("utf-8", "replace")) == _LINE_MAX or _CUT.fullmatch(text) is not None


def _rest(no: int, found: Entry, before: Line) -> Line:
    """What follows a line that was cut: of the same writer and as loud as its beginning."""
    return before._replace(no=no, time=found.time, text=found.text)


def _headless(no: int, text: str, before: Line | None, *, headed: bool) -> Line:
    """A line without a head: of ``cat`` output, or the continuation of the entry above it.

    + headed: the text has heads, so that a line without one continues an entry
    """
    line = _line(no, Entry(None, "", None, text))
    if line.role or line.level or before is None:
        return line
    inside = headed and text.startswith(" ")  # journalctl indents the further lines of an entry
    return line._replace(
        time=before.time,
        role=before.role if inside else "",
        pid=before.pid if inside else None,
        process=before.process if inside else "",
        text=text.strip() if inside else text,
    )


def _line(no: int, found: Entry) -> Line:
    """One entry, with the engine's own prefix read off it."""
    role, name, pid, text = _writer(found)
    level = where = ""
    time = found.time
    told = None if role in {"systemd", "kernel"} else logged(text)
    if told:
        level, where, text = told.level, told.where, told.text
        if time is None and told.stamp:
            time = _stamp(told.stamp)
    rank = _RANK.search(name)
    return Line(
        no=no,
        time=time,
        role=role,
        process=name,
        pid=pid,
        rank=int(rank[1]) if rank and role == "Worker" else None,
        level=level,
        where=where,
        text=text,
        invocation=found.invocation,
    )


def _writer(found: Entry) -> tuple[str, str, int | None, str]:
    """Role, name and process id of the writer, and the text after the engine's prefix."""
    text = found.text
    if found.ident == "kernel" or (not found.ident and _KERNEL_TEXT.match(text)):
        return "kernel", "kernel", None, text
    if found.ident in {"systemd", "(systemd)", _JOURNALD} or (
        not found.ident and _SYSTEMD_TEXT.match(text)
    ):
        return "systemd", "systemd", found.pid, text
    prefix = prefix_of(text)
    if prefix is None:
        return "", found.ident, found.pid, text
    return _role(prefix.name), prefix.name, prefix.pid, prefix.rest


def _role(name: str) -> str:
    lowered = name.lower()
    if "worker" in lowered:
        return "Worker"
    if "engine" in lowered:
        return "EngineCore"
    return "APIServer" if "api" in lowered else ""


def _stamp(stamp: str) -> float | None:
    """The engine's own time, which has no year."""
    try:
        return datetime.strptime(f"2024-{stamp}+0000", "%Y-%m-%d %H:%M:%S%z").timestamp()
    except (ValueError, OverflowError):
        return None


def _named(lines: list[Line]) -> tuple[Line, ...]:
    """Lines that did not go through a logger get the name that their process used elsewhere."""
    known: dict[int, Line] = {}
    for line in lines:
        if line.pid is None or line.role in {"", "systemd", "kernel"}:
            continue
        # A worker is "Worker" until it knows its rank: the later, longer name is the better one.
        if line.pid not in known or len(line.process) >= len(known[line.pid].process):
            known[line.pid] = line
    return tuple(_with_name(line, known) for line in lines)


def _with_name(line: Line, known: dict[int, Line]) -> Line:
    same = known.get(line.pid) if line.pid is not None and not line.role else None
    if same is None:
        return line
    return line._replace(role=same.role, process=same.process, rank=same.rank)
