"""A source tree, read as it stands: modules, their imports, and the names that they define."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOMS = ("inventory", "facts", "operations", "deploys")
"""The product, in the direction of import."""


@dataclass(frozen=True)
class Module:
    """One Python file of the product.

    + name: dotted, e.g. ``facts.journal.lines``; a package has the name of its folder
    """

    name: str
    path: Path

    @cached_property
    def text(self) -> str:
        """The source."""
        return self.path.read_text()

    @cached_property
    def syntax(self) -> ast.Module:
        """The source, parsed."""
        return ast.parse(self.text)

    @property
    def folder(self) -> str:
        """The folder that holds it, with slashes."""
        return self.name.replace(".", "/") if self.is_package else self.name.rpartition(".")[0]

    @property
    def is_package(self) -> bool:
        """Whether it is an ``__init__.py``."""
        return self.path.name == "__init__.py"

    @cached_property
    def imports(self) -> frozenset[str]:
        """Every module that it imports, at its top or inside a function, by full name.

        ``from a import b`` counts as ``a`` and as ``a.b``: b may be a module.
        """
        package = self.name if self.is_package else self.name.rpartition(".")[0]
        found: set[str] = set()
        for node in ast.walk(self.syntax):
            if isinstance(node, ast.Import):
                found.update(one.name for one in node.names)
            elif isinstance(node, ast.ImportFrom):
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                parts = [*(above if node.level else []), *([node.module] if node.module else [])]
                found.add(".".join(parts))
                found.update(".".join([*parts, one.name]) for one in node.names)
        return frozenset(found)

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes at its top."""
        return tuple(node.name for node in self.syntax.body if isinstance(node, ast.ClassDef))

    @cached_property
    def functions(self) -> tuple[str, ...]:
        """Names of the functions at its top, and of the methods of its classes."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        bodies = [self.syntax.body, *(n.body for n in self.syntax.body if _is_class(n))]  # type: ignore[attr-defined]
        return tuple(node.name for body in bodies for node in body if isinstance(node, kinds))

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """Names of the annotated fields of its classes."""
        return tuple(
            one.target.id
            for node in self.syntax.body
            if isinstance(node, ast.ClassDef)
            for one in node.body
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        )

    @cached_property
    def constants(self) -> tuple[str, ...]:
        """Names in capitals that are given a value at its top. A name from another module, given
        a second time, counts: the value does not stand here."""
        return tuple(
            name.id
            for node in self.syntax.body
            for target in _targets(node)
            for name in ast.walk(target)
            if isinstance(name, ast.Name) and name.id.isupper()
        )


def _is_class(node: ast.stmt) -> bool:
    return isinstance(node, ast.ClassDef)


def _targets(node: ast.stmt) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) else []


def modules(root: Path, rooms: tuple[str, ...] = ROOMS) -> Iterator[Module]:
    """The product's modules, by name.

    + root: of the checkout
    """
    for room in rooms:
        for path in sorted((root / room).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            yield Module(".".join(parts[:-1] if parts[-1] == "__init__" else parts), path)


def doubled(found: Iterator[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Names that several modules define, each with those modules.

    + found: (name, module)
    """
    by_name: dict[str, list[str]] = {}
    for name, module in found:
        by_name.setdefault(name, []).append(module)
    return {name: tuple(where) for name, where in sorted(by_name.items()) if len(where) > 1}


def doubled_classes(root: Path) -> dict[str, tuple[str, ...]]:
    """Class names that are defined more than once in the product."""
    return doubled((name, one.name) for one in modules(root) for name in one.classes)


def doubled_constants(root: Path) -> dict[str, tuple[str, ...]]:
    """Public constants that are defined more than once in the product."""
    return doubled(
        (name, one.name)
        for one in modules(root)
        for name in dict.fromkeys(one.constants)
        if not name.startswith("_") and len(name) > 1
    )
