"""What was asked of the local Hub: one record for each request, for tests to count."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Request:
    """One request and what came of it.

    + number: position since the start; the first is 1
    + where: ``hub`` or ``cdn``
    + repo: the repository's id, empty for calls that name none
    + path: the file's path in the repository, or the name of the API call (see Fault.path)
    + target: path of the URL as it was sent, without the query
    + range: the Range header, None where none came
    + authorized: whether an Authorization header came; its value is never kept
    + status: of the answer; 0 where none was sent (yet)
    + sent: bytes of the body that were sent
    + fault: kind of the fault that hit it
    + done: whether the answer is over
    """

    number: int
    where: str
    method: str
    repo: str
    path: str
    target: str
    range: str | None
    authorized: bool
    status: int = 0
    sent: int = 0
    fault: str | None = None
    done: bool = False


class RequestLog:
    """All requests since the start or the last ``clear``. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 1
        self._requests: dict[int, Request] = {}

    def open(self, **fields: Any) -> int:
        """Record that a request came. Returns its number."""
        with self._lock:
            number = self._next
            self._next += 1
            self._requests[number] = Request(number=number, **fields)
            return number

    def update(self, number: int, **fields: Any) -> None:
        """Record what came of it."""
        with self._lock:
            if number in self._requests:
                self._requests[number] = replace(self._requests[number], **fields)

    def clear(self) -> None:
        """Forget the requests, also those under way."""
        with self._lock:
            self._requests.clear()

    def all(self) -> tuple[Request, ...]:
        """The requests, oldest first."""
        with self._lock:
            return tuple(self._requests.values())

    def to_json(self) -> list[dict[str, Any]]:
        """The requests as plain JSON."""
        return [asdict(request) for request in self.all()]


def chosen(requests: Iterable[Request], **wanted: Any) -> tuple[Request, ...]:
    """The requests whose fields have these values.

    Example: ``len(chosen(hub.requests(), where="cdn", method="GET"))``.
    """
    return tuple(
        request
        for request in requests
        if all(getattr(request, name) == value for name, value in wanted.items())
    )
