"""boxwright's own programs on the box, in an environment of their own."""

from __future__ import annotations

import hashlib
import json
import shlex
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from pyinfra import host
from pyinfra.api import operation

from facts.actual import Actual
from facts.box import actual_state
from facts.query import Query
from operations.difference import Difference, differing
from operations.steps import Commands, Step, alone, guarded, settled, show

REQUIREMENTS = ("huggingface_hub==2.4.0", "tenacity==9.2.1")
"""The versions that the fetcher's behaviour was tested with."""

PACKAGE = "remote"
"""The programs are modules of this package on the box: ``python -m remote.weights.start``."""


@cache
def programs() -> dict[str, str]:
    """File name -> text of the programs that run on the box."""
    root = files("operations.remote")
    parts = [root, *sorted((part for part in root.iterdir() if part.is_dir()), key=_name)]
    modules = [(part, module) for part in parts for module in sorted(part.iterdir(), key=_name)]
    return {
        "/".join([PACKAGE, *([] if part is root else [part.name]), module.name]): module.read_text()
        for part, module in modules
        if module.name.endswith(".py")
    }


def _name(one: Traversable) -> str:
    return one.name


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

    + query: what this run reads of the box
    + wheelhouse: folder on the box to install from, without any index
    """
    differences = tools_differences(actual_state(host, query))
    show(host, differences)
    if not differences:
        host.noop("boxwright's programs are in place")
        return
    yield Step(
        tools_script(wheelhouse),
        stdin=json.dumps(programs()),
        wanted=f"boxwright's programs in {tools_folder()}",
        why="snapshots are fetched and services are watched by programs on the box, so that a lost "
        "connection loses nothing; nothing else was touched",
        next_step="where the box reaches no package index, set engine.wheelhouse to a folder on "
        f"the box that holds {' and '.join(REQUIREMENTS)} with what they need",
    )
    settled(tools_differences(actual_state(host, query)), f"ls {tools_folder()} on the box")


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
    words = [f"{tools_folder()}/venv/bin/python", "-m", f"{PACKAGE}.{module}", *arguments]
    return " ".join(map(shlex.quote, words))
