"""The base of desired state, and the kinds of text it is made of.

A mistake in desired state is answered before anything is read or touched, in four parts and
with the path of the field.
"""

import re
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, ValidationError

from inventory.base import Frozen
from inventory.errors import DesiredStateError

D = TypeVar("D", bound="Desired")

_building: ContextVar[bool] = ContextVar("_building", default=False)


class Desired(Frozen):
    """A part of the desired state.

    + raises: DesiredStateError with the path of every wrong field
    """

    def __init__(self, **data: Any) -> None:
        # Only the outermost model translates: the inner ones hand their ValidationError to
        # pydantic, which puts the outer path in front of it.
        if _building.get():
            super().__init__(**data)
            return
        token = _building.set(True)
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise _four_parts(error, type(self).__name__) from None
        finally:
            _building.reset(token)


def built(kind: type[D], fields: Mapping[str, Any], what: str) -> D:
    """A part of the desired state made from plain data.

    + fields: nested plain data, such as JSON or an override holds
    + what: what is being made, in the reader's words: opens the error
    + raises: DesiredStateError with the path of every wrong field
    """
    token = _building.set(True)
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise _four_parts(error, what) from None
    finally:
        _building.reset(token)


def _four_parts(error: ValidationError, what: str) -> DesiredStateError:
    problems = [
        f"{'.'.join(str(part) for part in item['loc']) or what}: {_plain(item['msg'])}"
        for item in error.errors(include_url=False, include_input=False)
    ]
    return DesiredStateError(
        wanted=f"a valid {what}",
        found="; ".join(problems),
        why="nothing was read or touched: a box is not converged to a state that is in doubt",
        next_step="correct the field in the Python file or in the host's override; "
        "inventory/service.py describes each field and its unit",
    )


def _plain(message: str) -> str:
    """Pydantic's sentence, in the words of the person who wrote the field."""
    if message == "Extra inputs are not permitted":
        return "there is no such field"
    return message.removeprefix("Value error, ")


def _form(pattern: str, wrong: str) -> AfterValidator:
    """Text of one form.

    + pattern: of the whole text
    + wrong: what is said of any other text
    """

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"{text!r} {wrong}")
        return text

    return AfterValidator(check)


def _one_line(text: str) -> str:
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise ValueError("control characters and line breaks cannot stand in a unit file")
    return text


UnitName = Annotated[
    str,
    _form(
        r"[A-Za-z0-9_][A-Za-z0-9:_.\-]{0,200}(?<!\.service)",
        "is not a name for a unit: letters, digits and : _ . - only, not starting with "
        "a dash or a dot, without the ending .service",
    ),
]
"""Name of a systemd service, without ``.service``."""

AbsolutePath = Annotated[
    str,
    _form(
        r"(?!.*/\.\.(/|\Z))(/[A-Za-z0-9_@%+=:,.\-]+)+",
        "is not an absolute path of plain characters (no spaces, no '..', no slash at the end)",
    ),
]
"""A path on the box from its root, of characters that no shell and no unit file interprets."""

_PART = r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,95}"
Repository = Annotated[
    str,
    _form(rf"(?!.*(\.\.|--)){_PART}/{_PART}", "is not a repository of the Hub (organisation/name)"),
]
"""``organisation/name`` on the Hub."""

Revision = Annotated[
    str,
    _form(
        r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9_./\-]{0,200}", "is neither a branch, a tag nor a commit"
    ),
]
"""A branch, a tag or a 40-hex commit."""

ExactVersion = Annotated[
    str,
    _form(
        r"[0-9]+(\.[0-9]+)*((a|b|rc|\.post|\.dev)[0-9]+)*(\+[a-z0-9.]+)?",
        "is not one exact version (such as 0.32.0)",
    ),
]
"""One version of a distribution, never a range."""

OneLine = Annotated[str, AfterValidator(_one_line)]
"""Text without control characters."""
