"""The way back: the service that failed is ended, what served before serves again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from operations.remote.switch.files import write
from operations.remote.switch.gpu_memory.release import release
from operations.remote.switch.record import UNITS
from operations.remote.switch.request import Former, Request
from operations.remote.switch.systemd import control, kill, start
from operations.remote.switch.verdict import SwitchError
from operations.remote.switch.waiting.wait import wait


def go_back(
    request: Request, formers: Sequence[Former], say: Callable[[str], None]
) -> tuple[bool, str]:
    """End the new service and start what served before.

    + formers: from :func:`formers.survey`; at least one
    + returns: whether all of them answer again, and a sentence
    """
    began = time.monotonic()
    new = request.new.unit
    names = ", ".join(one.target.unit for one in formers)
    say(f"rollback: {new} is ended, {names} comes back")
    # It never served: nothing to drain, and while it loads it would ignore SIGTERM for a minute.
    kill(new)
    try:
        control("stop", "--", new)
        if request.gpus:
            release(request.gpus, frozenset([new]), request.release, say)
    except Exception as error:  # an engine that finds its memory taken says so itself
        say(f"rollback: {error}; trying all the same")
    said = [_bring_back(request, one, say) for one in formers]
    ok = all(good for good, _ in said)
    sentences = "; ".join(sentence for _, sentence in said)
    say(f"rollback: {sentences}, after {time.monotonic() - began:.1f} s")
    return ok, sentences


def _bring_back(request: Request, one: Former, say: Callable[[str], None]) -> tuple[bool, str]:
    unit = one.target.unit
    try:
        if one.text is not None:
            write(UNITS / unit, one.text)
            control("daemon-reload")
        start(unit)
        wait(one.target, replace(request.expect, timeout=one.timeout, before={}), say)
    except SwitchError as error:
        return False, f"{unit} does not answer: {error.sentence}"
    except Exception as error:  # the others have to come back too
        return False, f"{unit} was not seen to answer: {type(error).__name__}: {error}"
    return True, f"{unit} answers again"
