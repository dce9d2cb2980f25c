"""What every type of boxwright is built on: frozen, strict models, and Unknown as a value."""

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

T = TypeVar("T")


class Frozen(BaseModel):
    """An immutable value that refuses fields it does not know.

    ``to_json`` is the method by which pyinfra prints data and facts.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True
    )

    def to_json(self) -> dict[str, Any]:
        """The value as plain JSON types."""
        return self.model_dump(mode="json", by_alias=True)


class Unknown(Frozen):
    """A value that the box did not tell, with the reason in the box's own words.

    Unknown stands next to absent (``None`` or an empty tuple): a missing tool, a missing
    permission and a broken driver are not the same as zero.
    """

    unknown: str


NOT_ASKED = Unknown(unknown="not asked")
"""The value of a field that nobody read."""


class NotKnownError(Exception):
    """A computation needs a value that is unknown."""

    def __init__(self, reason: Unknown) -> None:
        super().__init__(reason.unknown)
        self.reason = reason


def need(value: T | Unknown) -> T:
    """The value. An unknown one raises NotKnownError."""
    if isinstance(value, Unknown):
        raise NotKnownError(value)
    return value


def known(value: T | Unknown, otherwise: T) -> T:
    """The value, or ``otherwise`` if it is unknown."""
    return otherwise if isinstance(value, Unknown) else value
