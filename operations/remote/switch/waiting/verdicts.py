"""What a start has come to, from what was seen of it. Pure: nothing is asked or read here."""

import signal
from collections.abc import Sequence
from typing import NamedTuple

from inventory.common.engine_log import most_heartbeats
from inventory.common.start_phases import ANSWER
from inventory.common.systemd import span
from operations.remote.switch.waiting.state import UnitMoment

EXITED = 1
"""CLD_EXITED; 2 and 3 are an end by a signal, without and with a core dump."""

# systemd.exec(5), "Process Exit Codes": the process failed before the program's own first step.
_BEFORE_EXEC = {
    200: "CHDIR: its working directory cannot be entered",
    203: "EXEC: its program does not exist or cannot be executed",
    208: "STDIN: its standard input cannot be opened",
    209: "STDOUT: its standard output cannot be opened",
    216: "GROUP: its group does not exist",
    217: "USER: its user does not exist",
    225: "NETWORK: its network namespace cannot be set up",
    226: "NAMESPACE: its view of the file system cannot be set up",
    227: "NO_NEW_PRIVILEGES: privileges cannot be given up",
    228: "SECCOMP: its system call filter cannot be set up",
    233: "RUNTIME_DIRECTORY: it cannot be made",
    238: "STATE_DIRECTORY: it cannot be made",
    239: "CACHE_DIRECTORY: it cannot be made",
    240: "LOGS_DIRECTORY: it cannot be made",
    242: "NUMA_POLICY: it cannot be set",
    243: "CREDENTIALS: they cannot be set up",
}
_RESULTS = {
    "timeout": "systemd ended it, since it took longer than TimeoutStartSec",
    "oom-kill": "the kernel's OOM killer ended one of its processes",
    "watchdog": "systemd ended it, since it missed its watchdog",
    "resources": "systemd lacked the resources to start it",
    "protocol": "it did not keep to the protocol of its unit's type",
}
_RESTARTS = frozenset({"auto-restart", "auto-restart-queued"})


class StartVerdict(NamedTuple):
    """How a start ended: kind as in :class:`SwitchError`, and a sentence."""

    kind: str
    sentence: str


class Exit(NamedTuple):
    """What the journal says about the end of a start.

    + asked: somebody asked systemd to stop the unit while it ran
    + over: systemd has said its last about this start
    + how: of the main process, e.g. ``exited`` and ``1``; empty where it did not say
    """

    asked: bool = False
    over: bool = False
    how: str = ""


def ending(code: int, status: int) -> str:
    """How a main process ended, in words.

    >>> ending(1, 203), ending(2, 9)
    ('exit status 203 (EXEC: its program does not exist or cannot be executed)', 'SIGKILL')
    """
    if code > EXITED:
        try:
            return signal.Signals(status).name
        except ValueError:
            return f"signal {status}"
    if code == 0:
        return "a command before its main process failed"
    if status in _BEFORE_EXEC:
        return f"exit status {status} ({_BEFORE_EXEC[status]})"
    try:
        return f"exit status {status} (128 + {signal.Signals(status - 128).name})"
    except ValueError:
        return f"exit status {status}"


def of_unit(
    now: UnitMoment, first: UnitMoment, end: Exit, *, fell: bool = False
) -> StartVerdict | None:
    """The verdict that the unit alone allows; None while it may still come up.

    + first: as it was when the wait began
    + end: what the journal of the start that is waited for says
    + fell: the start before this one ended before it was ready, and systemd restarted it
    """
    another = bool(now.invocation) and now.invocation != first.invocation
    down = not now.is_running and now.active != "activating"
    if (end.asked and down) or (another and now.restarts <= first.restarts):
        return StartVerdict(
            "stopped", "somebody stopped or restarted the unit while it was starting"
        )
    if now.active == "failed":
        return _failed(now)
    if now.sub in _RESTARTS:
        return _again(now, now.restarts)
    if another:
        return _again(now, now.restarts - 1, first, end)
    if fell:
        return _looping(now, "its last start ended before it was ready")
    return _leaving(now) if now.active == "deactivating" and now.code == 0 else _gone(now, end)


def _leaving(now: UnitMoment) -> StartVerdict:
    """Of a unit that goes down while its main process still runs."""
    if now.result == "success":
        return StartVerdict("stopped", "somebody stops the unit while it is starting")
    reason = _RESULTS.get(now.result, "a command that belongs to its start failed")
    return StartVerdict("crashed", f"the start failed: {reason}; {_then(now)}")


def _gone(now: UnitMoment, end: Exit) -> StartVerdict | None:
    """Of a unit whose main process is gone without a failure; None where it is not gone."""
    gone = now.active in {"inactive", "deactivating"} or now.sub == "exited"
    if not gone or now.job:
        return None
    # systemd forgets a unit that is not enabled, and ended well, together with how it ended.
    forgotten = now.code == 0 and end.over
    if now.code == 0 and not forgotten:
        return StartVerdict("stopped", f"the unit is not started ({now.load})")
    if forgotten or (now.code, now.status) == (EXITED, 0):
        return StartVerdict("exited-0", f"{_EXITED_0}; {_then(now)}")
    return StartVerdict("crashed", f"its main process ended: {_how(now)}; {_then(now)}")


_EXITED_0 = (
    "its main process exited with status 0 while starting: the engine died and its server hid it "
    "(vllm-project/vllm#48966)"
)


def _failed(now: UnitMoment) -> StartVerdict:
    spent = now.restart != "no" and 0 < now.burst <= now.restarts + 1
    if now.result == "start-limit-hit" or spent:
        return StartVerdict(
            "start-limit",
            f"its main process ended: {_how(now)}; it used up the {now.burst} starts that systemd "
            f"allows{_interval(now)}, and is not started again",
        )
    return StartVerdict("crashed", f"its main process ended: {_how(now)}; {_then(now)}")


def _again(
    now: UnitMoment, before: int, first: UnitMoment | None = None, end: Exit | None = None
) -> StartVerdict:
    """Of a unit that systemd starts again, or has started again.

    + before: restarts before the start that ended
    + first: where another start runs already, the one that ended
    """
    if first is None:
        how, well = _how(now), now.code == EXITED and now.status == 0
    else:
        how = end.how if end and end.how else "it ended before it was ready"
        well = bool(end and end.over and not end.how) and before == first.restarts
    if well and before == 0:
        return StartVerdict("exited-0", f"{_EXITED_0}; {_then(now)}")
    if first is not None or before > 0:
        return _looping(now, how)
    return StartVerdict("crashed", f"its main process ended: {how}; {_then(now)}")


def _looping(now: UnitMoment, how: str) -> StartVerdict:
    restarts = now.restarts
    return StartVerdict(
        "crash-looping",
        f"it crashes and is started again: {how}; systemd has restarted it "
        f"{'once' if restarts == 1 else f'{restarts} times'}; {_then(now)}",
    )


def _how(now: UnitMoment) -> str:
    """How the start ended, with systemd's reason where it had one of its own."""
    if now.result == "start-limit-hit" and now.code == 0:
        return "it was not started at all"
    said = ending(now.code, now.status)
    return f"{said} ({_RESULTS[now.result]})" if now.result in _RESULTS else said


def _then(now: UnitMoment) -> str:
    """What systemd does next, and how many starts are used up."""
    used = now.restarts + 1
    limit = f"start {used} of the {now.burst} it allows{_interval(now)}" if now.burst else ""
    if now.sub in _RESTARTS:
        next_step = f"systemd tries again after {span(now.pause)}"
    elif now.is_running or now.active == "activating":
        next_step = "systemd has started it again"
    else:
        return "systemd does not start it again"
    return f"{next_step} ({limit})" if limit else next_step


def _interval(now: UnitMoment) -> str:
    return f" in {span(now.interval)}" if now.interval else ""


def of_silence(
    phase: str, silent: float, allowed: float, heartbeats: int, *, compiling: bool
) -> StartVerdict | None:
    """Whether a start hangs.

    + silent: seconds since the journal last showed progress
    + heartbeats: of the engine since then: minutes in which a worker gave no answer
    """
    if heartbeats >= most_heartbeats(compiling=compiling):
        return StartVerdict(
            "hung",
            f"it hangs in phase {phase}: for {heartbeats} minutes a worker has not answered",
        )
    if silent <= allowed:
        return None
    if phase == ANSWER:
        return StartVerdict(
            "hung", f"its server says that it is up, and has not answered for {span(silent)}"
        )
    return StartVerdict(
        "hung",
        f"it hangs in phase {phase}: nothing new in its journal for {span(silent)}, and "
        f"{span(allowed)} are allowed",
    )


def of_models(
    model: str, length: int | None, served: Sequence[tuple[str, int | None]]
) -> StartVerdict | None:
    """Whether an endpoint serves something else than it should.

    + length: the declared context length
    + served: names and context lengths that it told
    """
    names = dict(served)
    if model not in names:
        others = ", ".join(names) or "no model"
        return StartVerdict("wrong-model", f"it answers, but for {others} and not for {model}")
    if length is not None and names[model] not in {None, length}:
        return StartVerdict(
            "wrong-length",
            f"it answers for {model} with a context of {names[model]} tokens, and {length} are "
            "declared",
        )
    return None
