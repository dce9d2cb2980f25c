"""The rules of the house, held against the house."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from operations.tools import programs
from tests.house.names import misnamed, unwanted
from tests.house.rules import allowed_on_the_box, violations
from tests.house.tree import doubled_classes, doubled_constants
from tests.lab.base import REPO

DESIGN = (REPO / "docs" / "design.md").read_text()


def test_imports_go_in_one_direction() -> None:
    assert list(violations(REPO, DESIGN)) == []


@pytest.mark.parametrize(
    ("module", "line", "said"),
    [
        ("inventory.units", "from facts.box import Box", "inventory comes before facts"),
        ("inventory.units", "import pyinfra", "it works without pyinfra"),
        ("facts.gpu", "from operations.steps import Step", "facts comes before operations"),
        ("facts.journal.lines", "from pyinfra import host", "it works without pyinfra"),
        ("operations.unit", "import deploys.serve", "operations comes before deploys"),
        ("operations.unit", "from tests.lab import box", "the product does not know its tests"),
        ("inventory.common.paths", "import pydantic", "needs the standard library alone"),
        ("inventory.common.paths", "from inventory.base import Frozen", "needs the standard"),
        ("operations.remote.a.b", "import requests", "does not name it for the box"),
        ("operations.remote.a.b", "from inventory.base import Frozen", "does not name it"),
        ("operations.remote.a.b", "def f():\n    import yaml", "does not name it for the box"),
    ],
)
def test_a_forbidden_import_is_seen(tmp_path: Path, module: str, line: str, said: str) -> None:
    path = tmp_path / f"{module.replace('.', '/')}.py"
    path.parent.mkdir(parents=True)
    path.write_text(f"import json\n{line}\n")
    found = list(violations(tmp_path, DESIGN))
    assert found
    assert all(said in sentence for sentence in found)


def test_the_box_gets_what_its_programs_import(tmp_path: Path) -> None:
    """Without any package of the controller: the switch and the benchmark need Python alone."""
    for name, text in programs().items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    names = sorted(
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in programs()
        if not name.startswith("operations/remote/weights")
    )
    script = (
        "import importlib, json, sys\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        f"for name in {json.dumps(names)}: importlib.import_module(name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.returncode == 0


def test_design_names_what_the_box_needs() -> None:
    assert {"inventory.common", "huggingface_hub", "tenacity"} <= allowed_on_the_box(DESIGN)


def test_one_class_has_one_name() -> None:
    assert doubled_classes(REPO) == {}


def test_one_constant_has_one_place() -> None:
    assert doubled_constants(REPO) == {}


def test_every_public_name_is_spelt_as_in_the_glossary() -> None:
    assert {"former", "fitting", "most_sequences"} <= unwanted(DESIGN).keys()
    assert list(misnamed(REPO, DESIGN)) == []


@pytest.mark.parametrize(
    "line",
    [
        "class FormerService: pass",
        "def fetch_order(text): pass",
        "RETIRED = 1",
        "class Fit:\n    most_sequences: int = 0",
    ],
)
def test_a_name_of_another_spelling_is_seen(tmp_path: Path, line: str) -> None:
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "one.py").write_text(f"{line}\n")
    assert list(misnamed(tmp_path, DESIGN))
