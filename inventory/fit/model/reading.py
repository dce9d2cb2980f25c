"""Reading numbers out of JSON of any kind: a value of the wrong type is unknown, never an error."""

from collections.abc import Iterator, Mapping
from typing import Any

from inventory.base import Unknown

LARGEST_NUMBER = 1 << 40
"""A larger count is a mistake in the file."""

_MISSING = object()


def whole(value: object, name: str) -> int | Unknown:
    """A positive whole number.

    >>> whole("4", "num_hidden_layers").unknown
    "num_hidden_layers is '4', not a count"
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= LARGEST_NUMBER:
        return Unknown(unknown=f"{name} is {_short(value)}, not a count")
    return value


def _short(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > LARGEST_NUMBER:
        return "a number beyond any model"
    return repr(value)[:40]


class Fields:
    """The fields of one or more JSON objects, looked up in order.

    + objects: the first that holds a name with a value other than null wins
    """

    def __init__(self, *objects: Mapping[str, Any]) -> None:
        self._objects = objects

    def raw(self, *names: str) -> Any:
        """The first value that is not null, or None."""
        return next(self._values(names), (None, None))[1]

    def count(self, *names: str) -> int | Unknown:
        """The first that is there, as a positive whole number."""
        name, value = next(self._values(names), (names[0], _MISSING))
        if value is _MISSING:
            return Unknown(unknown=f"{name} is not in config.json")
        return whole(value, name)

    def optional(self, *names: str) -> int | None:
        """As :meth:`count`; None if it is absent or unusable."""
        value = self.count(*names)
        return None if isinstance(value, Unknown) else value

    def flag(self, *names: str) -> bool:
        """Whether the first that is there is true."""
        return self.raw(*names) is True

    def text(self, *names: str) -> str | None:
        """The first that is there; None if it is not text."""
        value = self.raw(*names)
        return value if isinstance(value, str) else None

    def mapping(self, *names: str) -> Mapping[str, Any]:
        """The first that is there; empty if it is not an object."""
        return as_mapping(self.raw(*names))

    def _values(self, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        for name in names:
            for one in self._objects:
                value = one.get(name)
                if value is not None:
                    yield name, value


def as_mapping(value: object) -> Mapping[str, Any]:
    """An object of JSON; anything else is an empty one."""
    if isinstance(value, Mapping):
        return {key: item for key, item in value.items() if isinstance(key, str)}
    return {}


def as_texts(value: object) -> tuple[str, ...]:
    """The texts of a list; anything else has none."""
    if not isinstance(value, (list, tuple)):
        return ()
    return tuple(item for item in value if isinstance(item, str))
