"""Asks the endpoint again and again, in a thread: nobody waits for a server that says nothing."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from inventory.common.models import models
from inventory.common.switch import Target
from operations.remote import http
from operations.remote.switch.waiting.listener import Owner, endpoint, listening, owners, reached

_INTERVAL = 0.15
TIMEOUT = 2.0
"""Seconds for one answer; a server that is busy with its first requests takes a while."""


@dataclass(frozen=True)
class Round:
    """What one round found out.

    + at: its end, by the monotonic clock
    + rounds: how many there were, this one included
    + owners: processes that hold these sockets, if they can be told
    + health: status of ``/health``; None while nothing answers
    + models: served names with their context length, of ``/v1/models``
    + status: of ``/v1/models``
    """

    at: float = 0.0
    rounds: int = 0
    owners: tuple[Owner, ...] = ()
    health: int | None = None
    status: int | None = None
    models: tuple[tuple[str, int | None], ...] = ()


class Probe:
    """Rounds until it is closed. `round` is the latest one.

    + target: whose listener and whose name is looked for
    """

    def __init__(self, target: Target) -> None:
        self.round = Round()
        self._target = target
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="probe", daemon=True)

    def __enter__(self) -> Probe:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # It may be waiting for an answer. It is a daemon: nobody waits for it.
        self._ends.set()

    def _run(self) -> None:
        while not self._ends.is_set():
            self.round = look(self._target, self.round.rounds)
            self._ends.wait(_INTERVAL)


def look(target: Target, rounds: int = 0) -> Round:
    """One round.

    + rounds: how many there were before
    """
    addresses, port = endpoint(target.url)
    found = reached(listening(), addresses, port)
    if not found:
        return Round(at=time.monotonic(), rounds=rounds + 1)
    holders = tuple(owner for one in found for owner in owners(one.inode, target.unit))
    if any(not owner.ours for owner in holders):
        return Round(time.monotonic(), rounds + 1, holders)
    health, _ = http.get(f"{target.url}/health", TIMEOUT)
    status, text = None, b""
    if health is not None:
        status, text = http.get(f"{target.url}/v1/models", TIMEOUT)
    return Round(
        at=time.monotonic(),
        rounds=rounds + 1,
        owners=holders,
        health=health,
        status=status,
        models=models(text),
    )
