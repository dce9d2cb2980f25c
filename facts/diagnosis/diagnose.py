"""From a journal to a diagnosis."""

import re

from facts.diagnosis.candidates import candidates
from facts.diagnosis.result import Diagnosis
from facts.diagnosis.rule import Hints, Rank, Scene
from facts.diagnosis.silence import hang
from facts.diagnosis.verdicts import (
    of_a_silent_end,
    of_an_early_stop,
    of_candidate,
    of_hang,
)
from facts.journal.lines import QUIET_LEVELS, Journal, Line, read_journal
from facts.journal.numbers import engine_numbers
from facts.journal.settings import settings
from facts.journal.starts import Start, last_chain, starts
from facts.journal.tracebacks import tracebacks

_NOTHING = Hints()
_BEFORE, _AFTER = 2.0, 10.0
"""Seconds around a start in which a kernel line may belong to it."""
_GPU_TROUBLE = re.compile(
    r"CUDA error|died unexpectedly|GPU is lost|No CUDA GPUs|number of available GPUs|NVML"
)
_DEADLY = re.compile(
    r"died unexpectedly \(exit code: -|engine core exited unexpectedly|EngineDeadError|"
    r"EngineCore encountered a fatal error|AsyncLLM output_handler failed"
)


def from_text(
    journal_text: str | bytes, kernel_text: str | bytes = "", hints: Hints = _NOTHING
) -> Diagnosis | None:
    """Read and diagnose in one step.

    + journal_text: what ``journalctl`` printed about the unit, of one start at best
    + kernel_text: what ``journalctl -k`` or ``dmesg -T`` printed, in the same output format
    + hints: what else is known
    """
    return diagnose(read_journal(journal_text), kernel_text, hints)


def diagnose(
    journal: Journal, kernel: str | bytes = "", hints: Hints = _NOTHING
) -> Diagnosis | None:
    """Why the last chain of starts in a journal failed.

    + returns: None for a start that is ready, still under way, or was stopped while serving

    >>> diagnose(read_journal("INFO:     Application startup complete.")) is None
    True
    """
    said = tuple(
        line._replace(role="kernel", process="kernel") for line in read_journal(kernel).lines
    )
    chain = last_chain(starts(journal))
    unknown: Diagnosis | None = None
    for nth, start in enumerate(chain):
        found = _diagnose_start(_scene(start, chain[nth + 1 :], said, hints))
        if found is not None and found.known:
            return found
        unknown = unknown or found
    return unknown


def _scene(start: Start, later: tuple[Start, ...], kernel: tuple[Line, ...], hints: Hints) -> Scene:
    """One start with everything that rules look at."""
    first = 0 if start.ready is None else start.ready + 1
    last = len(start.lines)
    if start.stop is not None:
        # systemd's own time-out is a cause. That somebody stopped it is not.
        last = start.stop + (start.lines[start.stop] is start.timed_out)
    window = start.lines[first:last]
    return Scene(
        start=start,
        settings=settings(start.lines),
        engine=engine_numbers(start.lines),
        hints=hints,
        window=window + tuple(line for line in kernel if _belongs(line, start)),
        traces=tracebacks(window),
        later=later,
    )


def _belongs(line: Line, start: Start) -> bool:
    """Whether a line of the kernel's own log is about this start."""
    if line.time is None or start.began is None or start.last is None:
        return any(_GPU_TROUBLE.search(other.text) for other in start.lines)
    # A clock that was set back makes the last line the earlier one.
    first, last = sorted((start.began, start.last))
    return first - _BEFORE <= line.time <= last + _AFTER


def _diagnose_start(scene: Scene) -> Diagnosis | None:
    found = candidates(scene)
    if not _failed(scene):
        found = [candidate for candidate in found if candidate.rank == Rank.HOST.value]
    certain = found and found[0].rank < Rank.LOSS.value
    # A start that ended on its own did not hang; one that was stopped, or still runs, may have.
    may_hang = not certain and (scene.start.ended is None or scene.start.stop is not None)
    stuck = hang(scene, _heard_until(scene)) if may_hang else None
    if stuck is not None:
        return of_hang(scene, stuck)
    if found:
        return of_candidate(scene, found)
    return of_an_early_stop(scene) or of_a_silent_end(scene)


def _failed(scene: Scene) -> bool:
    """Whether the start shows that it came to a bad end, before anybody asked it to stop."""
    start = scene.start
    end = len(start.lines) if start.stop is None else start.stop + 1
    if start.ended is not None and start.ended < end:
        return True
    if start.timed_out is not None and start.timed_out in scene.window:
        return True
    if any(trace.fatal and trace.logged for trace in scene.traces):
        return True
    if any(_DEADLY.search(line.text) and line.level not in QUIET_LEVELS for line in scene.window):
        return True
    if scene.serving:
        return False
    # Nothing of systemd's is there: an error on stderr counts if nothing came after it.
    said = [line for line in scene.window if line.role not in {"systemd", "kernel"}]
    errors = [line for line in said if not line.level and ": error: " in line.text]
    errors += [trace.begin for trace in scene.traces if trace.fatal and not trace.logged]
    going_on = [line.no for line in said if line.level in QUIET_LEVELS]
    return any(error.no > max(going_on, default=0) for error in errors)


def _heard_until(scene: Scene) -> float | None:
    """Up to when the start is known to have said nothing more."""
    start = scene.start
    if start.stop is not None:
        return start.lines[start.stop].time
    return scene.hints.now if scene.hints.now is not None else start.last
