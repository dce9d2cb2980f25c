"""An engine environment: one virtual environment for each package and version."""

import json
import shlex

from pyinfra.api import operation

from facts.query import Query
from facts.reading.engines import EngineState, normalised
from inventory.engine import Vllm
from operations.difference import Difference, differing
from operations.steps import Commands, Step, alone, converge, guarded
from operations.tools import source_arguments


def engine_differences(want: Vllm, have: EngineState) -> tuple[Difference, ...]:
    """How the environment differs from the engine's exact versions."""
    resource = f"engine {want.environment_folder}"
    unfinished = "absent" if have.exists is False else "unfinished"
    attributes = [("state", "installed", "installed" if have.finished else unfinished)]
    for requirement in want.all_requirements:
        name, version = requirement.split("==", 1)
        found = have.distributions.get(normalised(name), "absent")
        attributes.append((normalised(name), version, found))
    return differing(resource, attributes)


@operation()
@guarded
def engine(want: Vllm, query: Query) -> Commands:
    """Install an engine at one exact version."""
    yield from converge(
        query,
        lambda actual: engine_differences(want, actual.engine),
        lambda actual: Step(
            engine_script(want, actual.engine),
            wanted=f"{want.package} {want.version} in {want.environment_folder}",
            why="the unit starts this environment; the old service still serves",
            next_step=f"check that {want.package}=={want.version} exists for the box's Python "
            "where it installs from (the index that pip on the box is configured for, or "
            "engine.wheelhouse)",
        ),
        unchanged=f"engine {want.package} {want.version} is installed",
        look=f"{want.environment_folder}/bin/python -m pip list on the box",
    )


def engine_script(want: Vllm, have: EngineState) -> str:
    """The commands that make or mend the environment. Its marker comes last.

    A finished environment is mended in place: a running engine may still load modules from it.
    """
    folder = shlex.quote(want.environment_folder)
    python = f"{folder}/bin/python"
    marker = json.dumps({"requirements": list(want.all_requirements)})
    lines = ["set -e; umask 022"]
    if not have.finished:
        lines += [f"rm -rf {folder}", f"python3 -m venv {folder}"]
    lines += [
        f"{python} -m pip install -q --disable-pip-version-check --no-compile "
        f"{source_arguments(want.wheelhouse)} {' '.join(map(shlex.quote, want.all_requirements))}",
        # Compiled now, on all cores: the engine's user cannot write here, and would compile
        # everything again at each start.
        f"{python} -m compileall -q -j 0 -x '/tests?/' {folder}/lib >/dev/null 2>&1 || true",
        f"printf '%s\\n' {shlex.quote(marker)} >{folder}/boxwright.json.new",
        f"mv -fT {folder}/boxwright.json.new {folder}/boxwright.json",
    ]
    # A finished environment is here because it differs. Only an unfinished one may meanwhile have
    # been completed by another run.
    done = "false" if have.finished else f"grep -qxF {shlex.quote(marker)} {folder}/boxwright.json"
    return alone("engine", f"{done} 2>/dev/null", "\n".join(lines))
