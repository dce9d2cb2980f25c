"""The base of desired state, and the kinds of text it is made of.

A mistake in desired state is answered before anything is read or touched, in four parts and
with the path of the field.
"""

from __future__ import annotations

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

    + kind: the type to make
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


def _unit_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9:_.\-]{0,200}", name) or name.endswith(".service"):
        raise ValueError(
            f"{name!r} is no name for a unit: letters, digits and : _ . - only, not starting with "
            "a dash or a dot, without the ending .service"
        )
    return name


def _absolute_path(path: str) -> str:
    if not re.fullmatch(r"(/[A-Za-z0-9_@%+=:,.\-]+)+", path) or "/../" in f"{path}/":
        raise ValueError(
            f"{path!r} is not an absolute path of plain characters (no spaces, no '..', "
            "no slash at the end)"
        )
    return path


def _repository(repo: str) -> str:
    part = r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,95}"
    if not re.fullmatch(rf"{part}/{part}", repo) or ".." in repo or "--" in repo:
        raise ValueError(f"{repo!r} is not a repository of the Hub (organisation/name)")
    return repo


def _revision(revision: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_./\-]{0,200}", revision) or ".." in revision:
        raise ValueError(f"{revision!r} is neither a branch, a tag nor a commit")
    return revision


def _version(version: str) -> str:
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)*((a|b|rc|\.post|\.dev)[0-9]+)*(\+[a-z0-9.]+)?", version):
        raise ValueError(f"{version!r} is not one exact version (such as 0.32.0)")
    return version


def _one_line(text: str) -> str:
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise ValueError("control characters and line breaks cannot stand in a unit file")
    return text


UnitName = Annotated[str, AfterValidator(_unit_name)]
"""Name of a systemd service, without ``.service``."""

AbsolutePath = Annotated[str, AfterValidator(_absolute_path)]
"""A path on the box from its root, of characters that no shell and no unit file interprets."""

Repository = Annotated[str, AfterValidator(_repository)]
"""``organisation/name`` on the Hub."""

Revision = Annotated[str, AfterValidator(_revision)]
"""A branch, a tag or a 40-hex commit."""

ExactVersion = Annotated[str, AfterValidator(_version)]
"""One version of a distribution, never a range."""

OneLine = Annotated[str, AfterValidator(_one_line)]
"""Text without control characters."""
