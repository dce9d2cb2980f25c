"""Who may read what: tokens, gated and private repositories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.lab.hub.repository import NotFoundError


class RefusedError(Exception):
    """The Hub does not let this caller have the thing.

    + status: of the answer
    + code: for the X-Error-Code header; empty for none
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        self.status = status
        self.code = code
        super().__init__(message)


@dataclass(frozen=True)
class Access:
    """The rules in force.

    + tokens: the tokens that the Hub knows; while empty, an Authorization header is not judged
    + gated: repositories whose files need a grant, with the tokens that have it
    + private: repositories that exist only for these tokens
    """

    tokens: frozenset[str] = frozenset()
    gated: Mapping[str, frozenset[str]] = field(default_factory=dict)
    private: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        tokens: Iterable[str] = (),
        gated: Mapping[str, Iterable[str]] | None = None,
        private: Mapping[str, Iterable[str]] | None = None,
    ) -> Access:
        """Rules from plain collections. A token with a grant is a known token."""
        gates = {repo: frozenset(grants) for repo, grants in (gated or {}).items()}
        walls = {repo: frozenset(grants) for repo, grants in (private or {}).items()}
        known = frozenset(tokens).union(*gates.values(), *walls.values())
        return cls(known, gates, walls)

    def check(self, repo: str, token: str | None, content: bool) -> None:
        """Raise RefusedError where this caller may not go on.

        + token: what the Authorization header carried; None without one
        + content: whether a file is asked for; a gated repository shows its listing to all
        """
        if token is not None and self.tokens and token not in self.tokens:
            raise RefusedError(401, "", "Invalid credentials in Authorization header")
        if repo in self.private and token not in self.private[repo]:
            raise self.absent(token)
        if content and repo in self.gated and token not in self.gated[repo]:
            if token is None:
                raise RefusedError(
                    401,
                    "GatedRepo",
                    f"Access to model {repo} is restricted. You must have access to it and be "
                    "authenticated to access it. Please log in.",
                )
            raise RefusedError(
                403,
                "GatedRepo",
                f"Access to model {repo} is restricted and you are not in the authorized list.",
            )

    @staticmethod
    def absent(token: str | None) -> RefusedError:
        """What the Hub says of a repository that is not there, or not there for this caller."""
        if token is None:
            return RefusedError(401, "RepoNotFound", "Invalid username or password.")
        return RefusedError(404, "RepoNotFound", "Repository not found")


def refusal(error: NotFoundError, token: str | None) -> RefusedError:
    """The answer to a look-up that found nothing."""
    if error.code == "RepoNotFound":
        return Access.absent(token)
    return RefusedError(404, error.code, str(error))
