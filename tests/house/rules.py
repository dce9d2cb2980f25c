"""Which module may import what. docs/design.md says the same for people, and names the packages."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.house.tree import ROOMS, Module, modules

COMMON = "inventory.common"
PROGRAMS = "operations.remote"

PURE = (
    "inventory",
    "facts.journal",
    "facts.diagnosis",
    "facts.history",
    "facts.hardware",
    "facts.reading",
    PROGRAMS,
)
"""Packages that work without pyinfra."""


def is_in(name: str, package: str) -> bool:
    """Whether a module is a package or lies below it.

    >>> is_in("facts.journal.lines", "facts.journal"), is_in("facts.journals", "facts.journal")
    (True, False)
    """
    return name == package or name.startswith(f"{package}.")


def allowed_on_the_box(design: str) -> frozenset[str]:
    """Packages besides the standard library that the programs for the box may import.

    + design: the text of docs/design.md, which names them behind "On the box:"
    """
    line = re.search(r"^On the box: (.*?)\.(?: |$)", design, re.MULTILINE | re.DOTALL)
    return frozenset(re.findall(r"`([\w.]+)`", line[1])) if line else frozenset()


def violations(root: Path, design: str) -> Iterator[str]:
    """What is imported and may not be, one sentence each.

    + root: of the checkout
    + design: the text of docs/design.md
    """
    on_the_box = allowed_on_the_box(design)
    for module in modules(root):
        for wanted in sorted(module.imports):
            reason = _forbidden(module, wanted, on_the_box)
            if reason:
                yield f"{module.name} imports {wanted}: {reason}"


def _forbidden(module: Module, wanted: str, on_the_box: frozenset[str]) -> str:
    room, top = module.name.split(".")[0], wanted.split(".", maxsplit=1)[0]
    standard = top in sys.stdlib_module_names
    if is_in(module.name, COMMON):
        ours = is_in(wanted, COMMON) or wanted == "inventory"
        return "" if standard or ours else "what both sides know needs the standard library alone"
    if is_in(module.name, PROGRAMS):
        ours = any(is_in(wanted, one) for one in (COMMON, PROGRAMS, *on_the_box))
        return "" if standard or ours else "docs/design.md does not name it for the box"
    if top in ROOMS and ROOMS.index(top) > ROOMS.index(room):
        return f"{room} comes before {top}"
    if top == "tests":
        return "the product does not know its tests"
    if top == "pyinfra" and any(is_in(module.name, one) for one in PURE):
        return "it works without pyinfra"
    return ""
