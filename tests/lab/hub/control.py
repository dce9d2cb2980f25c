"""The operations by which tests drive a Hub, in the same process or over ``/__control/``.

``POST /__control/<operation>`` takes the operation's arguments as a JSON object and answers
``{"result": …}``; loopback peers only. The operations are the methods of :class:`Controls`.
"""

from __future__ import annotations

import inspect
import ipaddress
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.lab.hub.access import Access
from tests.lab.hub.faults import Fault
from tests.lab.hub.log import Request
from tests.lab.hub.repository import NotFoundError
from tests.lab.hub.state import State


class Controls:
    """What a test can ask of a Hub. Subclasses say how the request gets there."""

    def control(self, operation: str, **arguments: Any) -> Any:
        """Perform one operation with plain JSON arguments."""
        raise NotImplementedError

    def inject(self, fault: Fault) -> None:
        """Put a fault into force."""
        self.control("inject", **asdict(fault))

    def clear_faults(self) -> None:
        """Behave again."""
        self.control("clear_faults")

    def faults(self) -> list[dict[str, Any]]:
        """The faults in force, each with the number of requests that it has hit."""
        return list(self.control("faults"))

    def requests(self) -> tuple[Request, ...]:
        """Every request since the start or the last ``forget_requests``."""
        return tuple(Request(**fields) for fields in self.control("requests"))

    def forget_requests(self) -> None:
        """Empty the log of requests."""
        self.control("forget_requests")

    def add_repo(self, repo: str, folder: Path, branch: str = "main") -> str:
        """Commit a folder to a branch; see :meth:`Library.add`. Returns the commit."""
        return str(self.control("add_repo", repo=repo, folder=str(folder), branch=branch))

    def remove_repo(self, repo: str) -> None:
        """Forget a repository."""
        self.control("remove_repo", repo=repo)

    def tag(self, repo: str, name: str, revision: str = "main") -> str:
        """Let a tag point at a revision. Returns the commit."""
        return str(self.control("tag", repo=repo, name=name, revision=revision))

    def commit(self, repo: str, revision: str = "main") -> str:
        """The 40 hex digits that a revision stands for now."""
        return str(self.control("commit", repo=repo, revision=revision))

    def allow(
        self,
        tokens: Iterable[str] = (),
        gated: Mapping[str, Iterable[str]] | None = None,
        private: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        """Set who may read what; see :class:`Access`. Replaces the rules in force."""
        self.control(
            "allow",
            tokens=sorted(tokens),
            gated={repo: sorted(grants) for repo, grants in (gated or {}).items()},
            private={repo: sorted(grants) for repo, grants in (private or {}).items()},
        )

    def configure(self, **settings: float) -> None:
        """Change settings: ``throttle`` (bytes per second over all downloads, 0 for no limit),
        ``page`` (entries in a page of a listing), ``url_lifetime`` (seconds).
        """
        self.control("configure", **settings)


def _configure(
    state: State,
    throttle: int | None = None,
    page: int | None = None,
    url_lifetime: float | None = None,
) -> None:
    if throttle is not None:
        state.throttle.rate = int(throttle)
    if page is not None:
        state.page = int(page)
    if url_lifetime is not None:
        state.url_lifetime = url_lifetime


def _allow(state: State, **rules: Any) -> None:
    state.access = Access.of(**rules)


OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "inject": lambda state, **fields: state.faults.inject(Fault(**fields)),
    "clear_faults": lambda state: state.faults.clear(),
    "faults": lambda state: state.faults.to_json(),
    "requests": lambda state: state.log.to_json(),
    "forget_requests": lambda state: state.log.clear(),
    "add_repo": lambda state, repo, folder, branch: state.library.add(repo, Path(folder), branch),
    "remove_repo": lambda state, repo: state.library.remove(repo),
    "tag": lambda state, repo, name, revision: state.library.tag(repo, name, revision),
    "commit": lambda state, repo, revision: state.library.commit(repo, revision).sha,
    "allow": _allow,
    "configure": _configure,
}


def perform(state: State, operation: str, body: bytes) -> tuple[int, dict[str, Any]]:
    """Perform an operation that came over HTTP. Returns the status and the answer."""
    function = OPERATIONS.get(operation)
    if function is None:
        return 404, {"error": f"no operation {operation}; one of {', '.join(sorted(OPERATIONS))}"}
    try:
        arguments = json.loads(body or b"{}")
        inspect.signature(function).bind(state, **arguments)
        return 200, {"result": function(state, **arguments)}
    except (TypeError, ValueError, OSError, NotFoundError) as error:
        return 400, {"error": f"{operation}: {error}"}


def is_local(address: str) -> bool:
    """Whether a peer is on this machine."""
    return ipaddress.ip_address(address).is_loopback
