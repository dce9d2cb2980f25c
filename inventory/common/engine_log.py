"""What the engine's log lines look like, and what some of them say.

Texts: vLLM 0.32.0, and 0.19.1 where they differ.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

UP = re.compile(r"Application startup complete\.|Uvicorn running on ")
"""The server's own lines that it is up."""
HEARTBEAT = "No available shared memory broadcast block found in"
"""Begins the line that says each minute: a worker gives no answer. It compiles, or it hangs."""
HEARTBEATS, HEARTBEATS_WHILE_COMPILING = 5, 20
"""So many heartbeats with no other line in between are a hang. Cold compiling of a large model
takes minutes (healthy starts with three heartbeats were recorded)."""
IDLE_LINE = re.compile(r"Engine \d+: Avg prompt throughput|\" [1-5]\d\d(?: |$)")
"""Lines about requests, or about their absence."""
PERCENT = re.compile(r"(\d{1,3})% ?(?:\||Completed)")
"""A bar of progress."""
COMPILES = re.compile(r"Starting torch\.compile|Using cache directory: .* torch\.compile")
COMPILED_COLD = re.compile(r"Compiling a graph for compile range |saved AOT compiled function to ")
COMPILED_WARM = re.compile(
    r"Directly load AOT compilation from path |Directly load the compiled graph"
)
"""Whether compiled code came from the cache: vLLM 0.32.0 compilation/backends.py, decorators.py."""
NCCL_LINE = re.compile(r"vLLM is using nccl==(\S{1,40})")
"""NCCL's first line, with its version."""


def most_heartbeats(*, compiling: bool) -> int:
    """Heartbeats that are a hang."""
    return HEARTBEATS_WHILE_COMPILING if compiling else HEARTBEATS


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PROCESS = re.compile(r"\(([A-Za-z][\w .=\-]{0,60}?) pid=(\d{1,10})\) ?(.*)", re.DOTALL)
_LOGGED = re.compile(
    r"(DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL) (\d\d-\d\d \d\d:\d\d:\d\d)(?:[.,]\d+)?"
    r" \[([^\]\n]{1,200}:\d+)\] ?(.*)",
    re.DOTALL,
)
_UVICORN = re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL): {2,}(.*)", re.DOTALL)


class Prefix(NamedTuple):
    """Who wrote a line, as its prefix says.

    + name: e.g. ``EngineCore``, ``Worker_TP2``
    + rest: of the line, behind the prefix
    """

    name: str
    pid: int
    rest: str


class Logged(NamedTuple):
    """A line that went through a logger.

    + stamp: the engine's own time, without a year; may be empty
    + where: source file and line of the log call, e.g. ``core.py:1510``; empty for uvicorn's
    """

    level: str
    stamp: str
    where: str
    text: str


def uncoloured(text: str) -> str:
    """The text without the terminal's colours."""
    return _COLOUR.sub("", text) if "\x1b" in text else text


def prefix_of(text: str) -> Prefix | None:
    """The prefix of a line; None for a line without one.

    >>> prefix_of("(EngineCore pid=7) INFO up")
    Prefix(name='EngineCore', pid=7, rest='INFO up')
    """
    found = None
    # A worker that learns its rank puts the longer name behind the first one (0.17 to 0.19).
    while (match := _PROCESS.fullmatch(text)) and (not found or int(match[2]) == found.pid):
        found = Prefix(match[1].strip(), int(match[2]), match[3])
        text = found.rest
    return found


def logged(text: str) -> Logged | None:
    """A line behind its prefix, taken apart; None for what did not go through a logger.

    >>> logged("WARN 11-24 21:03:20 [core.py:3] slow")
    Logged(level='WARNING', stamp='11-24 21:03:20', where='core.py:3', text='slow')
    """
    if match := _LOGGED.fullmatch(text):
        return Logged("WARNING" if match[1] == "WARN" else match[1], match[2], match[3], match[4])
    if match := _UVICORN.fullmatch(text):
        return Logged(match[1], "", "", match[2])
    return None


def information(text: str) -> str | None:
    """The message of a whole line at level INFO; None for other lines.

    >>> information("(EngineCore pid=7) INFO 11-24 21:03:20 [core.py:3] Graph capturing finished")
    'Graph capturing finished'
    """
    text = uncoloured(text)
    prefix = prefix_of(text)
    line = logged(prefix.rest if prefix else text)
    return line.text if line and line.level == "INFO" else None


class Figures(NamedTuple):
    """A line that holds some of the engine's own numbers.

    + names: one for each number of the pattern; empty for one that is not kept
    + choose: which of two ranks' numbers decides
    """

    pattern: re.Pattern[str]
    names: tuple[str, ...]
    choose: Callable[[float, float], float]


def _last(_: float, new: float) -> float:
    return new


_NUMBER = r"(-?[0-9][0-9,]{0,17}(?:\.[0-9]{1,12})?)"


def _figures(pattern: str, *names: str, choose: Callable[[float, float], float] = max) -> Figures:
    return Figures(re.compile(pattern.replace("<N>", _NUMBER)), names, choose)


FIGURES = (
    _figures(r"Checkpoint size: <N> GiB\. Available RAM: <N> GiB", "checkpoint_gib", "ram_gib"),
    _figures(r"Loading weights took <N> seconds", "weights_s"),
    _figures(
        r"Model loading took <N> (?:GiB|GB)(?: memory)?(?: and <N> seconds)?",
        "model_gib_per_rank",
        "model_load_s",
    ),
    _figures(r"torch\.compile (?:took|takes) <N> s in total", "compile_s"),
    _figures(r"Available KV cache memory: <N> GiB", "kv_cache_gib", choose=min),
    _figures(r"KV cache size: <N> tokens", "kv_cache_tokens", choose=_last),
    _figures(
        r"Maximum concurrency for [\d,]+ tokens per request: <N>x", "max_concurrency", choose=_last
    ),
    _figures(r"JIT kernel warmup finished in <N>s", "jit_warmup_s"),
    _figures(r"Graph capturing finished in <N> secs?, took <N> GiB", "capture_s", "cudagraph_gib"),
    _figures(r"init engine \(profile, create kv cache, warmup model\) took <N> s", "init_engine_s"),
    _figures(
        r"Free memory on device (?:\S+ )?\(<N>/<N> GiB\) on startup\. "
        r"Desired GPU memory utilization is \(<N>, <N> GiB\)",
        *("free_gib", "total_gib", "util", ""),
        choose=min,
    ),
    _figures(
        r"Actual usage is <N> GiB for consumed memory \(weights \+ non-torch\), "
        r"<N> GiB for peak activation",
        "consumed_gib",
        "peak_activation_gib",
    ),
    _figures(r"FP8 MoE block scales refined from \[.*?\] to \[<N>, ", "refined_block", choose=min),
)
"""The lines with numbers, in the form of vLLM 0.32.0 and in the two-line form of 0.19 and before.
"""
_TOLD = re.compile(
    "|".join(
        (
            *(one.pattern.pattern for one in FIGURES),
            *(one.pattern for one in (COMPILED_COLD, COMPILED_WARM, NCCL_LINE)),
            r"# \w+ blocks: |CUDA graph pool memory: ",
            HEARTBEAT,
        )
    )
)


def holds_numbers(text: str) -> bool:
    """Whether a message at level INFO tells numbers of the engine, or where compiled code came
    from: what a record of the start keeps."""
    return _TOLD.search(text) is not None
