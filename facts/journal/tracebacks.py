"""Tracebacks, put together again from lines that other processes' lines interrupt."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from facts.journal.lines import Line

_BEGIN = re.compile(r"\s*(?:\+ Exception Group )?Traceback \(most recent call last\):")
_FRAME = re.compile(r'\s+File "(?P<file>[^"]*)", line (?P<line>\d+)(?:, in (?P<function>.*))?')
_LINK = re.compile(
    r"During handling of the above exception|The above exception was the direct cause"
)
_MARKS = re.compile(r"[\s^~]*|\s+\[Previous line repeated .*")
_CONTINUES = re.compile(r"\s|- |For |Search for |CUDA kernel errors|Compile with |\[type=")
_FATAL_LOGGERS = re.compile(r"(?:\w*executor|core)\.py")
"""Where the engine logs the traceback that ends it (vLLM 0.32.0 v1/executor, v1/engine)."""
_IGNORED = re.compile(r"Exception ignored in|Exception in thread|Error saving model info")


@dataclass
class Frame:
    """One call of a traceback.

    + line: the journal line of its source text; None where that is missing
    """

    file: str
    function: str
    line: Line | None = None


@dataclass
class Raised:
    """One exception of a chain.

    + line: the journal line with its type and message
    + more: further lines of its message
    """

    frames: list[Frame] = field(default_factory=list)
    line: Line | None = None
    more: list[Line] = field(default_factory=list)

    @property
    def subject(self) -> Line | None:
        """The line that says what went wrong: a bare assertion says it only in its source."""
        last = self.frames[-1].line if self.frames else None
        bare = self.line is not None and self.line.text.strip() in {"AssertionError", "Exception"}
        return last if bare and last is not None else self.line


@dataclass
class Traceback:
    """A chain of exceptions as one process printed it; the last one surfaced.

    + head: the line just before it, by the same writer
    + logged: source file of the logger that printed it; empty for what went to stderr
    + body: its lines that quote source code: a message in them was not printed by anybody
    """

    head: Line | None
    logged: str
    begin: Line
    chain: list[Raised] = field(default_factory=list)
    body: set[Line] = field(default_factory=set)

    @property
    def fatal(self) -> bool:
        """Whether it ended its process, by where it was printed."""
        if self.head is not None and _IGNORED.search(self.head.text):
            return False
        return not self.logged or _FATAL_LOGGERS.fullmatch(self.logged) is not None

    @property
    def surfaced(self) -> Raised | None:
        """The last exception that has a line."""
        return next((raised for raised in reversed(self.chain) if raised.line), None)

    @property
    def calls(self) -> str:
        """Files, functions and source lines, for patterns to search in."""
        return "\n".join(
            f"{frame.file} {frame.function} {frame.line.text if frame.line else ''}"
            for raised in self.chain
            for frame in raised.frames
        )


@dataclass
class _Stream:
    """The lines of one writer: a process, and a log call if there is one."""

    before: Line | None = None
    current: Traceback | None = None
    state: str = "idle"
    linked: bool = False


def tracebacks(lines: Iterable[Line]) -> tuple[Traceback, ...]:
    """All tracebacks in the lines, in the order in which they begin.

    A process's lines stay in order, but those of several processes are mixed line by line.
    """
    streams: dict[tuple[int | None, str, str], _Stream] = {}
    heads: dict[int | None, Line] = {}
    found: list[Traceback] = []
    for line in lines:
        if line.role in {"systemd", "kernel"}:
            continue
        # What reached the journal without a process id is one stream only if it was not logged.
        writer = line.process if line.pid is None else ""
        stream = streams.setdefault((line.pid, writer, line.where), _Stream())
        if _BEGIN.fullmatch(line.text):
            if stream.current is None or not stream.linked:
                stream.current = Traceback(heads.get(line.pid), line.source, line)
                found.append(stream.current)
            stream.current.chain.append(Raised())
            stream.state, stream.linked = "frames", False
        elif stream.current is not None and stream.state != "idle":
            _take(stream, line)
        heads[line.pid] = line
    return tuple(found)


def _take(stream: _Stream, line: Line) -> None:
    """Add one line to the traceback that its writer is printing."""
    assert stream.current is not None  # noqa: S101  (the caller saw it; for the type checker)
    raised = stream.current.chain[-1]
    if stream.state == "frames" and (not line.text or line.text[0].isspace()):
        stream.current.body.add(line)
        frame = _FRAME.fullmatch(line.text)
        if frame:
            raised.frames.append(Frame(frame["file"], frame["function"] or ""))
        elif not _MARKS.fullmatch(line.text) and raised.frames and not raised.frames[-1].line:
            raised.frames[-1].line = line
    elif stream.state == "frames":
        raised.line, stream.state = line, "said"
    elif _LINK.match(line.text.strip()):
        stream.linked = True
    elif line.text.strip() and not stream.linked:
        # A logger repeats its prefix, so every further line is part; stderr is anybody's.
        if line.where or _CONTINUES.match(line.text):
            raised.more.append(line)
        else:
            stream.state = "idle"
