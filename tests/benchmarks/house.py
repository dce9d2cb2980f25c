"""The house in figures: lines, modules, names that stand twice, and how far a datum travels.

::

    python -m tests.benchmarks.house                    # this checkout
    python -m tests.benchmarks.house --before 893c657   # and a commit of it, side by side

Nothing is run or imported: the source is read. A hop is one function or class that a datum passes
on its way; the chains stand in ``tests/benchmarks/hops.json`` with the name that carries it there,
and a hop that the source does not show is an error.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from tests.house.tree import ROOMS, doubled_classes, doubled_constants, modules

HOPS = Path(__file__).with_name("hops.json")
_FOLDER = re.compile(r"\.folder\([\w.]*commit\)|\{[\w.]*home\}/\{[\w.]*commit\}")
_SHORT = re.compile(r"commit\[:\d+\]|commit_of\([\w.]+\)\[:\d+\]")
SHOWN = 8
"""Folders that are shown: those with most modules."""


@dataclass(frozen=True)
class Figures:
    """One tree.

    + lines: by room, of Python and shell
    + folders: modules by folder, most first
    + classes, constants: names that are defined more than once
    + hops: by chain: how many
    + folder, label: places where the folder of a commit, or its short form, is made
    """

    lines: dict[str, int]
    folders: dict[str, int]
    classes: tuple[str, ...]
    constants: tuple[str, ...]
    hops: dict[str, int]
    folder: int
    label: int

    @property
    def rows(self) -> Iterator[tuple[str, str]]:
        """Name and figure."""
        for room, count in self.lines.items():
            yield f"lines in {room}/", f"{count:,}"
        yield "lines in all", f"{sum(self.lines.values()):,}"
        yield "modules", f"{sum(self.folders.values())}"
        yield "most modules in one folder", f"{max(self.folders.values())}"
        yield "folders with more than 20 modules", f"{sum(n > 20 for n in self.folders.values())}"
        yield "class names defined more than once", f"{len(self.classes)}"
        yield "constants defined more than once", f"{len(self.constants)}"
        yield "places that make a commit's folder", f"{self.folder}"
        yield "places that shorten a commit", f"{self.label}"
        for chain, count in self.hops.items():
            yield f"hops: {chain}", f"{count}"


def figures(root: Path, chains: dict[str, list[str]]) -> Figures:
    """Read a tree.

    + root: of the checkout
    + chains: name -> hops, each ``module:Qualified.name:what carries the datum there``
    + raises: ValueError for a hop that is not there
    """
    lines = {
        room: sum(
            path.read_text().count("\n")
            for kind in ("*.py", "*.sh")
            for path in (root / room).rglob(kind)
        )
        for room in ROOMS
    }
    source = "\n".join(one.text for one in modules(root))
    found = Counter(str(one.path.parent.relative_to(root)) for one in modules(root))
    return Figures(
        lines=lines,
        folders=dict(found.most_common()),
        classes=tuple(doubled_classes(root)),
        constants=tuple(doubled_constants(root)),
        hops={name: len([_checked(root, hop) for hop in chain]) for name, chain in chains.items()},
        folder=len(_FOLDER.findall(source)),
        label=len(_SHORT.findall(source)),
    )


def _checked(root: Path, hop: str) -> str:
    module, qualified, datum = hop.split(":")
    path = root / f"{module.replace('.', '/')}.py"
    if not path.exists():
        path = root / module.replace(".", "/") / "__init__.py"
    text = path.read_text() if path.exists() else ""
    node: ast.AST = ast.parse(text)
    for name in qualified.split("."):
        inside = getattr(node, "body", [])
        node = next((one for one in inside if getattr(one, "name", "") == name), ast.Pass())
    if datum not in (ast.get_source_segment(text, node) or ""):
        raise ValueError(f"{hop}: not in {root}")
    return hop


def extracted(commit: str, into: Path) -> Path:
    """A commit of this repository as a folder."""
    packed = subprocess.run(["git", "archive", commit, *ROOMS], capture_output=True, check=True)
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as archive:
        archive.extractall(into, filter="data")
    return into


def main() -> int:
    """Parse the arguments and print."""
    parser = argparse.ArgumentParser(description="The house in figures.")
    parser.add_argument("--before", metavar="COMMIT", help="print this commit of it too")
    before = parser.parse_args().before
    chains: dict[str, dict[str, list[str]]] = json.loads(HOPS.read_text())
    now = figures(Path(), chains["now"])
    columns = [dict(now.rows)]
    if before:
        with tempfile.TemporaryDirectory() as folder:
            then = figures(extracted(before, Path(folder)), chains.get(before, {}))
        columns.insert(0, dict(then.rows))
    for name in dict.fromkeys(name for column in columns for name in column):
        print(f"{name:<40}" + "".join(f"{column.get(name, '-'):>12}" for column in columns))
    print("\nfolders with most modules:")
    for folder, count in list(now.folders.items())[:SHOWN]:
        print(f"  {folder:<38}{count:>12}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
