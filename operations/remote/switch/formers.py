"""What served before a switch: seen before it is stopped, and remembered until it is over.

A switch that is killed between stop and start leaves a box that serves nothing: the next one
finds here what there is to go back to.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from inventory.common.models import models
from operations.remote.switch import record
from operations.remote.switch.files import write
from operations.remote.switch.request import Former, Request, former
from operations.remote.switch.systemd import is_active, runs_from_file
from operations.remote.switch.waiting.probe import ask
from operations.remote.systemctl import show

PENDING = record.STATE / "switch.json"
READY = record.STATE / "ready"

ANSWER_SECONDS = 3.0
"""A service under load answers late, and serves all the same."""


def survey(request: Request) -> tuple[Former, ...]:
    """The services to go back to: those that serve now, and those that an unfinished switch
    stopped.

    Last good is what was last seen to be ready: a start that boxwright noted, or one that answers
    now. The new unit itself counts where it serves from an earlier text of its file.
    """
    found = [serving for one in request.replaces if (serving := _serving(one))]
    text = record.good_text(request.new.unit)
    file = record.UNITS / request.new.unit
    if text is not None and file.exists() and text != file.read_text():
        own = _serving(Former(request.new, request.expect.timeout, text))
        if own and not runs_from_file(request.new.unit):
            found.append(own)
    seen = {one.target.unit for one in found}
    left = [one for one in unfinished() if one.target.unit not in seen and _exists(one)]
    # Going back to the new one as it is would be no way back.
    return (*found, *(one for one in left if one.target.unit != request.new.unit or one.text))


def _serving(one: Former) -> Former | None:
    """The service under the name by which it answers; None where it serves nobody."""
    if not is_active(one.target.unit):
        return None
    status, text = ask(f"{one.target.url}/v1/models", ANSWER_SECONDS)
    names = [name for name, _ in models(text)]
    if names and one.target.model not in names:
        # Set up by hand, under another name than the declared one.
        return replace(one, target=replace(one.target, model=names[0], max_model_len=None))
    start = show(one.target.unit, "InvocationID").get("InvocationID")
    return one if status is not None or is_noted(one.target.unit, start) else None


def is_noted(unit: str, invocation: str | None) -> bool:
    """Whether this very start was seen to answer."""
    noted = READY / unit
    return noted.exists() and noted.read_text().strip() == invocation


def _exists(one: Former) -> bool:
    return show(one.target.unit, "LoadState").get("LoadState") == "loaded"


def unfinished() -> tuple[Former, ...]:
    """What a switch that did not end had stopped."""
    try:
        return tuple(former(one) for one in json.loads(PENDING.read_text())["from"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ()


def remember(new: str, before: Iterable[Former]) -> None:
    """Note what is about to be stopped, before it is."""
    plain = {"to": new, "from": [one.to_json() for one in before]}
    write(PENDING, json.dumps(plain), mode=0o600)


def forget() -> None:
    """The switch is over, one way or the other."""
    PENDING.unlink(missing_ok=True)
