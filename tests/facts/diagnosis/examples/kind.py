"""What an example is."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from facts.diagnosis import Hints


class Example(NamedTuple):
    """A journal and what has to be said about it.

    + line: a piece of the line that is the cause
    + remedy: pieces of the next step
    + numbers: that have to be among the diagnosis's
    + kernel: the kernel's own log
    """

    cause: str
    journal: str
    line: str
    remedy: tuple[str, ...]
    numbers: Mapping[str, object] = MappingProxyType({})
    kernel: str = ""
    hints: Hints = Hints()
