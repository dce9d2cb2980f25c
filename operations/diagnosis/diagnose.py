"""From a journal to a diagnosis."""

from __future__ import annotations

import re
import signal

from operations.diagnosis.candidates import Candidate, candidates, first_of_its_kind, is_echo
from operations.diagnosis.engine import engine_numbers
from operations.diagnosis.facts import Facts
from operations.diagnosis.journal import QUIET, Journal, Line, read_journal
from operations.diagnosis.phases import phases_of
from operations.diagnosis.result import UNKNOWN, Diagnosis, Quote
from operations.diagnosis.rule import Numbers, Rank, Scene, filled
from operations.diagnosis.rules.serving import ALWAYS, CANARY
from operations.diagnosis.settings import settings
from operations.diagnosis.silence import Hang, hang
from operations.diagnosis.starts import Start, last_chain, restarts, starts
from operations.diagnosis.tracebacks import tracebacks

_NOTHING = Facts()
_BEFORE, _AFTER = 2.0, 10.0
"""Seconds around a start in which a kernel line may belong to it."""
_GPU_TROUBLE = re.compile(
    r"CUDA error|died unexpectedly|GPU is lost|No CUDA GPUs|number of available GPUs|NVML"
)
_DEADLY = re.compile(
    r"died unexpectedly \(exit code: -|engine core exited unexpectedly|EngineDeadError|"
    r"EngineCore encountered a fatal error|AsyncLLM output_handler failed"
)
_STOPPED = (
    re.compile(r"KeyboardInterrupt: terminated|KeyboardInterrupt$"),
    re.compile(r"State 'stop-sigterm' timed out"),
)
_START_TIMEOUT = re.compile(r"[Ss]tart operation timed out")
MOST_ECHOES, MOST_CONTEXT = 12, 10


def from_text(
    journal_text: str | bytes, kernel_text: str | bytes = "", facts: Facts = _NOTHING
) -> Diagnosis | None:
    """Read and diagnose in one step.

    + journal_text: what ``journalctl`` printed about the unit, of one start at best
    + kernel_text: what ``journalctl -k`` or ``dmesg -T`` printed, in the same output format
    + facts: what else is known
    """
    return diagnose(read_journal(journal_text), kernel_text, facts)


def diagnose(
    journal: Journal, kernel: str | bytes = "", facts: Facts = _NOTHING
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
        found = _diagnose_start(_scene(start, chain[nth + 1 :], said, facts))
        if found is not None and found.known:
            return found
        unknown = unknown or found
    return unknown


def _scene(start: Start, later: tuple[Start, ...], kernel: tuple[Line, ...], facts: Facts) -> Scene:
    """One start with everything that rules look at."""
    first = 0 if start.ready is None else start.ready + 1
    last = len(start.lines)
    if start.stop is not None:
        # systemd's own impatience is a cause, somebody's wish is none.
        last = start.stop + bool(_START_TIMEOUT.search(start.lines[start.stop].text))
    window = start.lines[first:last]
    return Scene(
        start=start,
        settings=settings(start.lines),
        engine=engine_numbers(start.lines),
        facts=facts,
        window=window + tuple(line for line in kernel if _belongs(line, start)),
        traces=tracebacks(window),
        later=later,
    )


def _belongs(line: Line, start: Start) -> bool:
    """Whether a line of the kernel's own log is about this start."""
    if line.time is None or start.began is None or start.last is None:
        return any(_GPU_TROUBLE.search(other.text) for other in start.lines)
    return start.began - _BEFORE <= line.time <= start.last + _AFTER


def _diagnose_start(scene: Scene) -> Diagnosis | None:
    found = candidates(scene)
    if not _failed(scene):
        found = [candidate for candidate in found if candidate.rank == Rank.HOST.value]
    certain = found and found[0].rank < Rank.LOSS.value
    stuck = None if certain else hang(scene, _heard_until(scene))
    if stuck is not None:
        return _of_hang(scene, stuck)
    if found:
        return _of_candidate(scene, found)
    return _stopped_early(scene) or _silent_end(scene)


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
    if any(_DEADLY.search(line.text) and line.level not in QUIET for line in scene.window):
        return True
    if scene.serving:
        return False
    # Nothing of systemd's is there: an error on stderr counts if nothing came after it.
    said = [line for line in scene.window if line.role not in {"systemd", "kernel"}]
    errors = [line for line in said if not line.level and re.search(r"\S+: error: ", line.text)]
    errors += [trace.begin for trace in scene.traces if trace.fatal and not trace.logged]
    going_on = [line.no for line in said if line.level in QUIET]
    return any(error.no > max(going_on, default=0) for error in errors)


def _heard_until(scene: Scene) -> float | None:
    """Up to when the start is known to have said nothing more."""
    start = scene.start
    if start.stop is not None:
        return start.lines[start.stop].time
    if start.ended is not None:
        return start.lines[start.ended].time
    return scene.facts.now if scene.facts.now is not None else start.last


def _of_candidate(scene: Scene, found: list[Candidate]) -> Diagnosis:
    chosen = first_of_its_kind(found)
    others = [candidate for candidate in found if candidate is not chosen]
    rule, evidence = chosen.rule, chosen.evidence
    if rule is None or evidence is None:
        return _of_unknown(scene, chosen, others)
    numbers = rule.figures(evidence)
    next_step = filled(rule.next_step, evidence, numbers)
    return Diagnosis(
        cause=rule.cause,
        title=rule.title,
        line=Quote.of(chosen.line),
        why=filled(rule.why, evidence, numbers),
        next_step=next_step,
        numbers=_ended(scene, numbers),
        same=tuple(
            Quote.of(other.line)
            for other in others
            if other.rule is not None
            and other.rule.cause == rule.cause
            and other.line.process != chosen.line.process
            and not is_echo(other)
        ),
        echoes=_echoes(others),
        **_circumstances(scene),
        source=rule.source,
    )


def _of_unknown(scene: Scene, chosen: Candidate, others: list[Candidate]) -> Diagnosis:
    """No rule knows it: the first real error, with what stands around it."""
    serving = scene.serving
    return Diagnosis(
        cause="H21" if serving else UNKNOWN,
        title="the engine died while it was serving" if serving else "no known cause",
        line=Quote.of(chosen.line),
        why="an exception in the engine ended it, and the server exited as if all were well"
        if serving
        else "this error is not in the catalogue; it is the first one of the process that failed "
        "first, and what follows it echoes it",
        next_step=f"look for the text of this line in vLLM's issues, and try another version; "
        f"{CANARY}; {ALWAYS}"
        if serving
        else "look for the text of this line in vLLM's issues; the lines around it are shown",
        numbers=_ended(scene, {}),
        echoes=_echoes(others),
        context=_context(scene, chosen),
        **_circumstances(scene),
    )


def _of_hang(scene: Scene, stuck: Hang) -> Diagnosis:
    numbers: Numbers = {"silent_minutes": stuck.seconds // 60}
    if scene.engine.nccl:
        numbers["nccl"] = scene.engine.nccl
    if stuck.waits:
        numbers["shm_broadcast_messages"] = stuck.waits
    return Diagnosis(
        cause=stuck.cause,
        title=stuck.title,
        line=Quote.of(stuck.line),
        why=f"{stuck.why} (nothing but this for {stuck.seconds // 60} minutes)",
        next_step=stuck.next_step,
        numbers=numbers,
        **_circumstances(scene),
        source=stuck.source,
    )


def _stopped_early(scene: Scene) -> Diagnosis | None:
    start = scene.start
    if start.stop is None or scene.serving:
        return None
    after = start.lines[start.stop :]
    said = [line for pattern in _STOPPED for line in after if pattern.search(line.text)]
    return Diagnosis(
        cause="S4-stop-while-loading",
        title="it was stopped before it was ready",
        line=Quote.of((*said, after[0])[0]),
        why="somebody stopped the unit, or another unit's Conflicts= did; a traceback that follows "
        "is harmless",
        next_step="start it again; while the engine is being built it ignores SIGTERM, so a stop "
        "then lasts until TimeoutStopSec",
        **_circumstances(scene),
        source="vLLM 0.32.0 launchers/api_server/entry.py:171",
    )


def _silent_end(scene: Scene) -> Diagnosis | None:
    """The main process is gone, and nothing says why."""
    start = scene.start
    if start.ended is None or (start.stop is not None and start.stop < start.ended):
        return None
    return Diagnosis(
        cause="H25" if scene.serving and start.exit_status == 0 else UNKNOWN,
        title="it ended without a word",
        line=Quote.of(start.lines[start.ended]),
        why="no line of the engine says why it ended",
        next_step="journalctl -k around that second names the OOM killer, coredumpctl a crash; "
        f"{ALWAYS}",
        numbers=_ended(scene, {}),
        context=tuple(Quote.of(line) for line in scene.window[-MOST_CONTEXT:]),
        **_circumstances(scene),
    )


def _ended(scene: Scene, numbers: Numbers) -> Numbers:
    """The numbers, with how the main process ended."""
    start = scene.start
    ended: Numbers = {}
    if start.exit_status is not None:
        ended["exit_status"] = start.exit_status
    if start.signal is not None:
        ended["signal"] = start.signal
    return {**ended, **numbers}


def _circumstances(scene: Scene) -> dict[str, object]:
    start = scene.start
    current = phases_of(start).current
    count = restarts((start, *scene.later))
    ending = ""
    if start.exit_status is not None:
        ending = f"the main process exited with status {start.exit_status}"
    elif start.signal is not None:
        names = {number.value: number.name for number in signal.Signals}
        ending = f"the main process was ended by {names.get(start.signal, start.signal)}"
    if ending and count:
        ending += f", systemd restarted it (counter {count})"
    return {
        "phase": "serving" if scene.serving else (current.title if current else ""),
        "ending": ending,
        "attempt": start.nth + 1,
        "recovered": any(later.ready is not None for later in scene.later),
    }


def _echoes(others: list[Candidate]) -> tuple[Quote, ...]:
    """Each echo once, however many processes print it."""
    unique: dict[str, Quote] = {}
    for other in sorted(others, key=lambda candidate: candidate.line.no):
        if is_echo(other):
            quote = Quote.of(other.line)
            unique.setdefault(quote.text, quote)
    return tuple(unique.values())[:MOST_ECHOES]


def _context(scene: Scene, chosen: Candidate) -> tuple[Quote, ...]:
    """The last calls of the traceback and every exception of its chain; else the lines before."""
    if chosen.trace is None:
        near = [line for line in scene.window if line.no < chosen.line.no and line.level != "INFO"]
        return tuple(Quote.of(line) for line in near[-MOST_CONTEXT:])
    last = chosen.trace.chain[-1]
    calls = [frame.line for frame in last.frames if frame.line is not None][-5:]
    raised = [one.line for one in chosen.trace.chain if one.line is not None]
    lines = sorted({*calls, *raised, *last.more[:3]}, key=lambda line: line.no)
    return tuple(Quote.of(line) for line in lines if line != chosen.line)[-MOST_CONTEXT:]
