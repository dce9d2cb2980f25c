"""Faults that the local Hub commits on request, as values, and the book that counts them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

Kind = Literal[
    "status",
    "html",
    "drop",
    "hang",
    "cut",
    "reset",
    "corrupt",
    "short",
    "trickle",
    "stall",
    "norange",
]
BODY_KINDS: frozenset[str] = frozenset(
    {"cut", "reset", "corrupt", "short", "trickle", "stall", "norange"}
)
"""Kinds that change how a file is sent. They match GET requests for files only."""


@dataclass(frozen=True)
class Fault:
    """One way to misbehave, and when.

    + kind: ``status`` answers with ``status`` and ``headers``; ``html`` is a captive portal
      (200 with a login page); ``drop`` closes the connection without an answer; ``hang``
      never answers; ``cut`` ends the connection (FIN) after ``at`` bytes of the body, ``reset``
      breaks it (RST) there; ``corrupt`` flips one byte of the body; ``short`` sends a
      well-formed answer of ``at`` bytes; ``trickle`` goes on at ``rate`` from there; ``stall``
      goes silent there; ``norange`` answers a Range request with 200 and the whole file
    + where: the origin, ``hub`` or ``cdn``; ``*`` for both
    + path: a glob over the file's path in the repository, or the name of a call of the Hub's
      API: ``info``, ``tree``, ``paths-info``, ``refs``, ``whoami``, ``other``
    + repo: a glob over the repository's id
    + method: GET, HEAD or POST; ``*`` for all
    + times: how many requests are hit; 0 for every one
    + after: how many matching requests pass before the first hit
    + status, headers: the answer of ``status``
    + at: bytes of this answer's body before the fault
    + rate: bytes per second of ``trickle``
    + seconds: how long ``hang`` and ``stall`` last before the answer goes on; 0 for ever

    Example: the second shard answers 503 once, then is served.

    >>> Fault("status", "cdn", "*-00002-of-*", status=503).hits("cdn", "o/n", "GET", "w-00002-of-3")
    True
    """

    kind: Kind
    where: Literal["hub", "cdn", "*"] = "cdn"
    path: str = "*"
    repo: str = "*"
    method: str = "*"
    times: int = 1
    after: int = 0
    status: int = 503
    headers: Mapping[str, str] = field(default_factory=dict)
    at: int = 0
    rate: int = 100
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"kind is {self.kind!r}; one of {', '.join(get_args(Kind))}")
        if self.where not in {"hub", "cdn", "*"}:
            raise ValueError(f"where is {self.where!r}; one of hub, cdn, *")

    def hits(self, where: str, repo: str, method: str, path: str) -> bool:
        """Whether a request is one that this fault is for."""
        if self.kind in BODY_KINDS and method != "GET":
            return False
        return (
            self.where in {where, "*"}
            and self.method in {method, "*"}
            and fnmatchcase(repo, self.repo)
            and fnmatchcase(path, self.path)
        )


@dataclass
class _Counted:
    fault: Fault
    seen: int = 0
    hit: int = 0


class FaultBook:
    """The faults in force, oldest first. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[_Counted] = []

    def inject(self, fault: Fault) -> None:
        """Put a fault into force, behind those already there."""
        with self._lock:
            self._entries.append(_Counted(fault))

    def clear(self) -> None:
        """Behave again."""
        with self._lock:
            self._entries.clear()

    def take(self, where: str, repo: str, method: str, path: str) -> Fault | None:
        """The fault for this request, counted as used. The oldest that matches wins."""
        with self._lock:
            for entry in self._entries:
                fault = entry.fault
                if not fault.hits(where, repo, method, path):
                    continue
                if fault.times and entry.hit >= fault.times:
                    continue
                entry.seen += 1
                if entry.seen <= fault.after:
                    continue
                entry.hit += 1
                return fault
        return None

    def to_json(self) -> list[dict[str, Any]]:
        """Every fault with the number of requests that it has hit so far."""
        with self._lock:
            return [asdict(entry.fault) | {"hit": entry.hit} for entry in self._entries]
