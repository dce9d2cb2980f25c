"""A difference: one attribute of one resource, what it should be and what it is.

The operation acts on exactly the differences that are shown: both come from one pure function.
"""

from collections.abc import Iterable

from inventory.base import Frozen


class Difference(Frozen):
    """One attribute that is not as desired.

    ``have`` may say "known after …" where an earlier step of the same run decides it.
    """

    resource: str
    """e.g. ``unit vllm-minimax-m25.service``."""
    attribute: str
    want: str
    have: str
    reason: str = ""
    """Why it matters, where that is not plain."""

    @property
    def line(self) -> str:
        """The difference as one line for a person."""
        why = f"  ({self.reason})" if self.reason else ""
        return f"{self.resource}: {self.attribute}: {self.have} -> {self.want}{why}"


def differing(
    resource: str, attributes: Iterable[tuple[str, object, object]]
) -> tuple[Difference, ...]:
    """Those attributes whose wanted and found values differ.

    + resource: what they belong to
    + attributes: (attribute, want, have)

    >>> [d.attribute for d in differing("folder /opt", [("mode", 755, 700), ("owner", "a", "a")])]
    ['mode']
    """
    return tuple(
        Difference(resource=resource, attribute=name, want=str(want), have=str(have))
        for name, want, have in attributes
        if want != have
    )
