"""What crosses between controller and box, or lies in a file of ours: a dataclass, as JSON."""

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from math import isfinite
from pathlib import Path
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

Reader = Callable[[object], Any]
"""Takes a JSON value, and raises MisfitError."""

_LARGEST = 1 << 1023
"""Whole numbers below it are floats too."""


class WireError(ValueError):
    """A value that is not of the expected form; says where, and what was found."""


class MisfitError(WireError):
    """The same on its way up. Its places are noted as it passes them: a value that fits costs none.

    + places: names of fields and numbers of items, the innermost first
    """

    def __init__(self, found: str) -> None:
        super().__init__(found)
        self.places: list[str | int] = []


@dataclass(frozen=True)
class Bounds:
    """Bounds of a number: ``Annotated[float, Bounds(0, 1e12)]``. It may lie on them."""

    low: float
    high: float


Amount = Annotated[float, Bounds(0, 1e12)]
Whole = Annotated[int, Bounds(0, (1 << 63) - 1)]
"""No measured amount comes near these bounds: arithmetic with a damaged file stays finite."""


@dataclass(frozen=True)
class Wire:
    """Base of every request and answer, and of the files that both sides read.

    Subclasses are frozen dataclasses. Their fields are text, numbers, booleans, paths, tuples,
    frozen sets, mappings from text, other such classes, or ``None`` besides. A number is finite,
    and :class:`Bounds` its bounds.
    A value of another type, a missing field without a default and an unknown field are a
    :class:`WireError`.

    Example::

        @dataclass(frozen=True)
        class Target(Wire):
            unit: str
            port: int = 8000

        Target.from_json({"unit": "vllm.service"})  # Target(unit='vllm.service', port=8000)
    """

    tolerant: ClassVar[bool] = False
    """Fields that this version does not know are passed over: a later one may note more."""

    def to_json(self) -> dict[str, Any]:
        """The value as plain JSON types."""
        return {one.name: _plain(getattr(self, one.name)) for one in fields(self)}

    @classmethod
    def from_json(cls, value: object) -> Self:
        """The value again.

        + value: what :meth:`to_json` gave, or anything at all
        + raises: WireError
        """
        try:
            return cls._read(value)
        except MisfitError as error:
            names = (
                f"[{one}]" if isinstance(one, int) else f".{one}" for one in error.places[::-1]
            )
            raise WireError(f"{''.join(names)[1:] or cls.__name__}: {error}") from None

    @classmethod
    def _read(cls, value: object) -> Self:
        if not isinstance(value, dict):
            raise MisfitError(f"{_named(value)} instead of an object")
        readers = _readers(cls)  # type: ignore[arg-type]
        unknown = [] if cls.tolerant else sorted(map(str, value.keys() - readers.keys()))
        if unknown:
            raise MisfitError(f"unknown field {unknown[0]}")
        found: dict[str, Any] = {}
        for name, (exact, reader, required) in readers.items():
            if name in value:
                one = value[name]
                found[name] = one if type(one) is exact else _at(name, reader, one)
            elif required:
                raise MisfitError(f"no {name}")
        return cls(**found)


def _plain(value: Any) -> Any:
    if isinstance(value, Wire):
        return value.to_json()
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, frozenset):
        return sorted(_plain(one) for one in value)
    return str(value) if isinstance(value, Path) else value


@cache
def _readers(cls: type[Wire]) -> dict[str, tuple[object, Reader, bool]]:
    """Field -> the type that needs no reader, the reader, and whether it has to be there."""
    hints = get_type_hints(cls, include_extras=True)
    return {
        one.name: (
            hints[one.name] if hints[one.name] in {str, int, bool} else None,
            _reader(hints[one.name]),
            one.default is MISSING and one.default_factory is MISSING,
        )
        for one in fields(cls)
    }


def _at(place: str | int, reader: Reader, value: object) -> Any:
    try:
        return reader(value)
    except MisfitError as error:
        error.places.append(place)
        raise


def _reader(hint: Any) -> Reader:  # noqa: PLR0911 - one for each kind of type
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value: value
    if origin is Annotated:
        return _bounded(_reader(inner[0]), inner[1])
    if origin in {Union, types.UnionType}:
        return _either([_reader(one) for one in inner])
    if origin is Literal:
        return _literal(inner)
    if origin is tuple:
        return _tuple(inner)
    if origin is frozenset:
        items = _tuple((inner[0], ...))
        return lambda value: frozenset(items(value))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(_reader(inner[1]))
    if isinstance(hint, type) and issubclass(hint, Wire):
        return hint._read
    return _simple(cast("type", hint))


def _simple(kind: type) -> Reader:
    def read(value: object) -> Any:
        # The exact type: True is not a number here.
        if type(value) is kind and (kind is not float or isfinite(cast("float", value))):
            return value
        if kind is Path and isinstance(value, str):
            return Path(value)
        if kind is float and type(value) is int and abs(value) < _LARGEST:
            return float(value)
        raise MisfitError(f"{_named(value)} instead of {_word(kind)}")

    return read


def _bounded(reader: Reader, bounds: Bounds) -> Reader:
    def read(value: object) -> Any:
        found = reader(value)
        if not bounds.low <= found <= bounds.high:
            raise MisfitError(f"not from {bounds.low:g} to {bounds.high:g}")
        return found

    return read


def _either(readers: list[Reader]) -> Reader:
    def read(value: object) -> Any:
        errors = []
        for reader in readers:
            try:
                return reader(value)
            except WireError as error:
                errors.append(error)
        raise errors[0]

    return read


def _literal(allowed: tuple[Any, ...]) -> Reader:
    def read(value: object) -> Any:
        for one in allowed:
            if type(value) is type(one) and value == one:
                return value
        raise MisfitError(f"{_named(value)} instead of {' or '.join(map(repr, allowed))}")

    return read


def _tuple(inner: tuple[Any, ...]) -> Reader:
    many = inner[-1] is Ellipsis
    readers = [_reader(one) for one in inner if one is not Ellipsis]

    def read(value: object) -> Any:
        if not isinstance(value, (list, tuple)) or not (many or len(value) == len(readers)):
            raise MisfitError(f"{_named(value)} instead of a list")
        each = readers * len(value) if many else readers
        return tuple(
            _at(nth, reader, one) for nth, (reader, one) in enumerate(zip(each, value, strict=True))
        )

    return read


def _mapping(inner: Reader) -> Reader:
    def read(value: object) -> Any:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise MisfitError(f"{_named(value)} instead of an object")
        return {key: _at(key, inner, one) for key, one in value.items()}

    return read


def _named(value: object) -> str:
    """A value for an error. Never its text: it may be a secret."""
    if value is None:
        return "nothing"
    return "a number" if isinstance(value, float) else _word(type(value))


def _word(kind: type) -> str:
    return {str: "text", int: "a whole number", float: "a finite number"}.get(kind, kind.__name__)
