"""What the switch is asked to do: read from JSON, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from operations.remote.switch.waiting.target import Target
from operations.remote.switch.waiting.wait import Expectation

SAME_START = ("argv", "commit", "engine")
"""What two starts share whose phases take alike: weights, arguments, and with them the caches of
compiled kernels."""

SILENCE_SECONDS = 240.0
"""A start that was seen before may be silent for as long as one that compiles anew: caches can be
gone."""


@dataclass(frozen=True)
class Former:
    """A service that gives way, and comes back where the new one does not become ready.

    + target: how it is asked
    + timeout: seconds in which it must answer again
    + text: unit file to put back first; None where its file is still its own
    """

    target: Target
    timeout: float
    text: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As :func:`former` reads it."""
        return {**vars(self.target), "timeout": self.timeout, "text": self.text}


@dataclass(frozen=True)
class Request:
    """One switch.

    + new: what should serve
    + replaces: what it takes over from
    + gpus: UUIDs that the new one uses; empty on the CPU
    + release: seconds in which their memory must come back
    + expect: of the new one's start
    + tools, reasoning: parsers that the smoke test exercises
    + warm: folder of the weights, or None where the page cache is left alone
    + rollback: whether what served before comes back after a failure
    + about: what the record keeps of the desired state
    """

    new: Target
    replaces: tuple[Former, ...]
    gpus: frozenset[str]
    release: float
    expect: Expectation
    tools: bool
    reasoning: bool
    warm: Path | None
    rollback: bool
    about: Mapping[str, Any]


def former(plain: Mapping[str, Any]) -> Former:
    """A service that gives way, from JSON."""
    return Former(target(plain), float(plain["timeout"]), plain.get("text"))


def target(plain: Mapping[str, Any]) -> Target:
    """A service, from JSON."""
    length = plain.get("max_model_len")
    return Target(plain["unit"], plain["url"], plain["model"], length)


def read_request(plain: Mapping[str, Any], last: Mapping[str, Any]) -> Request:
    """The request, from JSON.

    + last: the record of the last start of this service that became ready; empty without one
    + raises: KeyError, TypeError, ValueError for a request of another version
    """
    wait, about = plain["wait"], plain["about"]
    alike = all(last.get(key) == about.get(key) for key in SAME_START)
    expect = Expectation(
        timeout=float(wait["timeout"]),
        milestones=tuple((str(a), str(b), str(c)) for a, b, c in wait["milestones"]),
        before=last.get("phases", {}),
        patience={str(key): float(value) for key, value in wait["patience"].items()},
        patience_floor=SILENCE_SECONDS if alike else inf,
    )
    return Request(
        new=target(plain["service"]),
        replaces=tuple(former(one) for one in plain["replaces"]),
        gpus=frozenset(plain["gpus"]),
        release=float(plain["release"]),
        expect=expect,
        tools=bool(plain["smoke"]["tools"]),
        reasoning=bool(plain["smoke"]["reasoning"]),
        warm=Path(plain["warm"]) if plain["warm"] else None,
        rollback=bool(plain["rollback"]),
        about=about,
    )
