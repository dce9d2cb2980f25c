"""boxwright's own programs on the box, in an environment of their own."""

import hashlib
import json
import shlex
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from pyinfra.api import operation

from facts.actual import Actual
from facts.query import Query
from operations.difference import Difference, differing
from operations.steps import Commands, Step, alone, converge, guarded

REQUIREMENTS = ("huggingface_hub==2.4.0", "tenacity==9.2.1")
"""The versions that the fetcher's behaviour was tested with."""

SHIPPED = ("inventory.common", "operations.remote")
"""Packages that the box gets under their own names: ``python -m operations.remote.weights.start``.
Of the packages around them it gets only ``__init__.py``."""


@cache
def programs() -> dict[str, str]:
    """File name -> text of the programs that run on the box, and of what they share with us."""
    found: dict[str, str] = {}
    for package in SHIPPED:
        path = package.replace(".", "/")
        for parent in Path(path).parents[:-1]:
            name = str(parent).replace("/", ".")
            found[f"{parent}/__init__.py"] = files(name).joinpath("__init__.py").read_text()
        found |= dict(_modules(files(package), path))
    return dict(sorted(found.items()))


def _modules(folder: Traversable, path: str) -> Iterator[tuple[str, str]]:
    for one in folder.iterdir():
        inner = f"{path}/{one.name}"
        if one.is_dir():
            yield from _modules(one, inner)
        elif one.name.endswith(".py"):
            yield inner, one.read_text()


@cache
def tools_folder() -> str:
    """Where this version of the programs lives: another text, another folder."""
    content = json.dumps([REQUIREMENTS, programs()], sort_keys=True).encode()
    return f"/opt/boxwright/{hashlib.sha256(content).hexdigest()[:12]}"


def tools_differences(actual: Actual) -> tuple[Difference, ...]:
    """Whether the programs of this version are complete on the box."""
    have = "in place" if actual.host.tools else "absent"
    return differing(f"programs {tools_folder()}", [("state", "in place", have)])


@operation()
@guarded
def tools(query: Query, wheelhouse: str | None = None) -> Commands:
    """
    Install the programs that fetch, wait and ask on the box.

    + wheelhouse: folder on the box to install from, without any index
    """
    yield from converge(
        query,
        tools_differences,
        lambda _: Step(
            tools_script(wheelhouse),
            stdin=json.dumps(programs()),
            wanted=f"boxwright's programs in {tools_folder()}",
            why="snapshots are fetched and services are watched by programs on the box, so that a "
            "lost connection loses nothing; nothing else was touched",
            next_step="where the box reaches no package index, set engine.wheelhouse to a folder "
            f"on the box that holds {' and '.join(REQUIREMENTS)} with what they need",
        ),
        unchanged="boxwright's programs are in place",
        look=f"ls {tools_folder()} on the box",
    )


def tools_script(wheelhouse: str | None) -> str:
    """The commands that make the programs' folder. Its last file makes it complete."""
    folder = tools_folder()
    script = "\n".join(
        (
            "set -e; umask 022",
            f"rm -rf {folder}; mkdir -p {folder}",
            f"cat >{folder}/programs.json",
            f"python3 -m venv {folder}/venv",
            f"{folder}/venv/bin/python -m pip install -q --disable-pip-version-check "
            f"{source_arguments(wheelhouse)} {' '.join(REQUIREMENTS)}",
            f"{folder}/venv/bin/python -c {shlex.quote(_UNPACK)} {folder}",
            f": >{folder}/complete",
        )
    )
    return alone("programs", f"[ -e {folder}/complete ]", script)


_UNPACK = """
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
for name, text in json.loads((folder / "programs.json").read_text()).items():
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
site, = (folder / "venv/lib").glob("python3*/site-packages")
(site / "boxwright.pth").write_text(f"{folder}\\n")
(folder / "programs.json").unlink()
"""


def source_arguments(wheelhouse: str | None) -> str:
    """pip's arguments for where packages come from, quoted."""
    return f"--no-index --find-links {shlex.quote(wheelhouse)}" if wheelhouse else ""


def run_module(module: str, *arguments: str) -> str:
    """The command line, quoted, that runs a program on the box, e.g. ``weights.start``."""
    words = [f"{tools_folder()}/venv/bin/python", "-m", f"operations.remote.{module}", *arguments]
    return " ".join(map(shlex.quote, words))
