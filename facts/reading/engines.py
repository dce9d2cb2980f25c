"""An engine environment on the box: which distributions it really holds."""

import json
import re
from collections.abc import Mapping

from pydantic import Field

from facts.sections import ABSENT, MISSING, Section
from inventory.base import Frozen, Unknown


class EngineState(Frozen):
    """One virtual environment below /opt/vllm."""

    exists: bool | Unknown
    finished: bool = False
    """Whether the last step of its making, the marker, was reached."""
    requirements: tuple[str, ...] = ()
    """What the marker says was asked for, ``name==version`` each."""
    distributions: dict[str, str] = Field(default_factory=dict)
    """Normalised name -> version, as the metadata folders say."""


def read_engine(found: Mapping[str, Section]) -> EngineState:
    """The environment that the probe was asked for.

    + found: section ``environment``: the marker, then the names of the metadata folders
    """
    section = found.get("environment", MISSING)
    if section.rc == ABSENT:
        return EngineState(exists=False)
    if section.rc != 0:
        return EngineState(exists=Unknown(unknown=section.text.strip() or "not read"))
    requirements: tuple[str, ...] | None = None
    distributions: dict[str, str] = {}
    for line in section.lines:
        match = re.fullmatch(r"([A-Za-z0-9._]+)-([A-Za-z0-9.+!_]+)\.dist-info", line)
        if match:
            distributions[normalised(match.group(1))] = match.group(2)
        elif requirements is None:
            requirements = _marker(line)
    return EngineState(
        exists=True,
        finished=requirements is not None,
        requirements=requirements or (),
        distributions=dict(sorted(distributions.items())),
    )


def normalised(name: str) -> str:
    """A distribution's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _marker(line: str) -> tuple[str, ...] | None:
    try:
        return tuple(str(requirement) for requirement in json.loads(line)["requirements"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
