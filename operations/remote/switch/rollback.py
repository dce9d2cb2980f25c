"""The way back: the service that failed is ended, the old ones serve again."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from inventory.common import paths
from inventory.common.files import write_whole
from inventory.common.switch import OldService, SwitchRequest, WayBack
from operations.remote.switch import systemd
from operations.remote.switch.errors import SwitchError
from operations.remote.switch.gpu_memory.release import release
from operations.remote.switch.waiting.expectation import Expectation
from operations.remote.switch.waiting.wait import wait


def go_back(
    request: SwitchRequest,
    old: Sequence[OldService],
    expect: Expectation,
    say: Callable[[str], None],
) -> WayBack:
    """End the new service and start the old ones.

    + old: from :func:`old_services.survey`; at least one
    + expect: of the new one's start
    """
    began = time.monotonic()
    new = request.new.unit
    names = ", ".join(one.unit for one in old)
    say(f"rollback: {new} is ended, {names} comes back")
    try:
        # It never served: nothing to drain, and while it loads it would ignore SIGTERM.
        systemd.kill(new)
        systemd.control("stop", "--", new)
        if request.gpus:
            release(request.gpus, frozenset([new]), request.release_seconds, say)
    except Exception as error:  # an engine that finds its memory taken says so itself
        say(f"rollback: {error}; trying all the same")
    ends = [_bring_back(one, expect, say) for one in old]
    sentences = "; ".join(end.sentence for end in ends)
    say(f"rollback: {sentences}, after {time.monotonic() - began:.1f} s")
    return WayBack(all(end.ok for end in ends), sentences)


def _bring_back(one: OldService, expect: Expectation, say: Callable[[str], None]) -> WayBack:
    unit = one.unit
    try:
        if one.text is not None:
            write_whole(Path(paths.UNITS, unit), one.text)
            systemd.control("daemon-reload")
        systemd.start(unit)
        wait(one, replace(expect, timeout=one.timeout, before={}), say)
    except SwitchError as error:
        return WayBack(False, f"{unit} does not answer: {error.sentence}")
    except Exception as error:  # the others have to come back too
        return WayBack(False, f"{unit} was not seen to answer: {type(error).__name__}: {error}")
    return WayBack(True, f"{unit} answers again")
