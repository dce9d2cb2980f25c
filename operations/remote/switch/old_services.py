"""The old services: seen before they are stopped, and remembered until the switch is over.

A switch that is killed between stop and start leaves a box that serves nothing: the next one
finds here what there is to go back to.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from inventory.common import paths
from inventory.common.files import write_whole
from inventory.common.models import models
from inventory.common.switch import OldService, SwitchRequest, UnfinishedSwitch
from operations.remote import http, systemctl
from operations.remote.switch import record, systemd

_ANSWER_SECONDS = 3.0
"""A service under load answers late, and serves all the same."""


def survey(request: SwitchRequest) -> tuple[OldService, ...]:
    """The services to go back to: those that serve now, and those that an unfinished switch
    stopped.

    Last good is what was last seen to be ready: a start that boxwright noted, or one that answers
    now. The new unit itself counts where it serves from an earlier text of its file.
    """
    found = [serving for one in request.replaces if (serving := _serving(one))]
    new = request.new
    text = record.good_text(new.unit)
    file = Path(paths.UNITS, new.unit)
    if text is not None and file.exists() and text != file.read_text():
        own = _serving(OldService(**vars(new), timeout=request.start_seconds, text=text))
        if own and not systemd.runs_from_file(new.unit):
            found.append(own)
    seen = {one.unit for one in found}
    left = [one for one in unfinished() if one.unit not in seen and _exists(one)]
    # Going back to the new one as it is would be no way back.
    return (*found, *(one for one in left if one.unit != new.unit or one.text))


def _serving(one: OldService) -> OldService | None:
    """The service under the name by which it answers; None where it serves nobody."""
    if not systemd.is_active(one.unit):
        return None
    status, text = http.get(f"{one.url}/v1/models", _ANSWER_SECONDS)
    names = [name for name, _ in models(text)]
    if names and one.model not in names:
        # Set up by hand, under another name than the declared one.
        return replace(one, model=names[0], max_model_len=None)
    start = systemctl.show(one.unit, "InvocationID").get("InvocationID")
    return one if status is not None or is_noted(one.unit, start) else None


def is_noted(unit: str, invocation: str | None) -> bool:
    """Whether this very start was seen to answer."""
    noted = Path(paths.READY, unit)
    return noted.exists() and noted.read_text().strip() == invocation


def _exists(one: OldService) -> bool:
    return systemctl.show(one.unit, "LoadState").get("LoadState") == "loaded"


def unfinished() -> tuple[OldService, ...]:
    """What a switch that did not end had stopped."""
    try:
        note = json.loads(Path(paths.PENDING).read_text())
        if isinstance(note, dict) and "from" in note:
            # An earlier version wrote this word. It may have been killed in the middle of a switch.
            note["old"] = note.pop("from")
        return UnfinishedSwitch.from_json(note).old
    except (OSError, ValueError, RecursionError):
        return ()


def remember(new: str, old: Iterable[OldService]) -> None:
    """Note what is about to be stopped, before it is."""
    note = UnfinishedSwitch(new, tuple(old))
    write_whole(Path(paths.PENDING), json.dumps(note.to_json()), mode=0o600)


def forget() -> None:
    """The switch is over, one way or the other."""
    Path(paths.PENDING).unlink(missing_ok=True)
