"""A diagnosis put into words: from a known cause, an unknown error, a hang, a stop, or silence."""

import re
import signal

from facts.diagnosis.candidates import Candidate, first_of_its_kind, is_echo
from facts.diagnosis.result import UNKNOWN, Diagnosis, Quote
from facts.diagnosis.rule import Numbers, Rank, Scene, filled
from facts.diagnosis.rules.serving import ALWAYS, CANARY
from facts.diagnosis.silence import Hang
from facts.journal.phases import phases_of
from facts.journal.starts import restarts

_STOPPED = (
    re.compile(r"KeyboardInterrupt: terminated|KeyboardInterrupt$"),
    re.compile(r"State 'stop-sigterm' timed out"),
)
MOST_ECHOES, MOST_CONTEXT = 12, 10


def of_candidate(scene: Scene, found: list[Candidate]) -> Diagnosis:
    """The first candidate is the cause; the others are the same of other ranks, or echoes."""
    chosen = first_of_its_kind(found)
    others = [candidate for candidate in found if candidate is not chosen]
    rule, evidence = chosen.rule, chosen.evidence
    if rule is None or evidence is None:
        return _of_unknown(scene, chosen, others)
    numbers = rule.figures(evidence)
    next_step = filled(rule.next_step, evidence, numbers)
    if chosen.rank >= Rank.LOSS.value:
        next_step += _dropped(scene)
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
        else "look for the text of this line in vLLM's issues; the lines around it are shown"
        + _dropped(scene),
        numbers=_ended(scene, {}),
        echoes=_echoes(others),
        context=_context(scene, chosen),
        **_circumstances(scene),
    )


def of_hang(scene: Scene, stuck: Hang) -> Diagnosis:
    """It neither fails nor goes on."""
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


def of_an_early_stop(scene: Scene) -> Diagnosis | None:
    """Somebody stopped it before it was ready; None where nobody did."""
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


def of_a_silent_end(scene: Scene) -> Diagnosis | None:
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
        f"{ALWAYS}{_dropped(scene)}",
        numbers=_ended(scene, {}),
        context=tuple(Quote.of(line) for line in scene.window[-MOST_CONTEXT:]),
        **_circumstances(scene),
    )


def _dropped(scene: Scene) -> str:
    """What is said where lines are missing, and nothing in the others names a cause."""
    count = scene.start.suppressed
    if not count:
        return ""
    return (
        f"; journald dropped {count} lines of this start, and the cause may be among them: "
        "LogRateLimitIntervalSec=0 in the unit keeps them"
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
