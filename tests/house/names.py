"""The glossary of docs/design.md, held against the product's public names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.house.tree import modules

_ROW = re.compile(r"^\| ([^|]+) \| [^|]+ \| ([^|]*)\|$", re.MULTILINE)


def unwanted(design: str) -> dict[str, str]:
    """Word -> the glossary's name for the same concept.

    + design: the text of docs/design.md
    """
    _, _, glossary = design.partition("## Glossary")
    return {
        word: name.strip("` ")
        for name, instead in _ROW.findall(glossary.partition("\n## ")[0])
        for word in re.findall(r"`(\w+)`(?! as)", instead)
    }


def words(name: str) -> str:
    """A name in lower case, its words apart.

    >>> words("FormerService"), words("most_sequences"), words("GPU_HELD")
    ('former_service', 'most_sequences', 'gpu_held')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def misnamed(root: Path, design: str) -> Iterator[str]:
    """Public names that hold a word which the glossary has another name for.

    + root: of the checkout
    + design: the text of docs/design.md
    """
    instead = unwanted(design)
    for module in modules(root):
        own = module.name.rpartition(".")[2]
        for name in {own, *module.classes, *module.functions, *module.fields, *module.constants}:
            if name.startswith("_"):
                continue
            for word, better in instead.items():
                if re.search(rf"(^|_){word}s?(_|$)", words(name)):
                    yield f"{module.name}: {name} says {word}: the glossary says {better}"
