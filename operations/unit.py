"""A unit file: checked by systemd before it is installed, written in one rename, loaded."""

import difflib
import hashlib
import shlex
from collections.abc import Sequence

from pyinfra.api import StringCommand, operation

from facts.query import Query
from facts.reading.units import UnitFile, UnitState
from inventory.base import Unknown
from inventory.errors import ConflictError, PreconditionError
from operations.difference import Difference, differing
from operations.steps import Commands, Step, converge, guarded

FOLDER = "/etc/systemd/system"


def unit_differences(name: str, text: str, have: UnitState | Unknown) -> tuple[Difference, ...]:
    """How an installed unit differs from its rendered text.

    + raises: ConflictError or PreconditionError where the file is not boxwright's to write
    """
    resource = f"unit {name}"
    if isinstance(have, Unknown):
        return differing(resource, [("file", "as rendered", f"unknown: {have.unknown}")])
    if have.is_masked:
        raise PreconditionError(
            wanted=f"{name} installed and running",
            found=f"the unit is {have.unit_file_state or 'masked'}",
            why="an administrator forbade every start of it; boxwright does not overrule that",
            next_step=f"systemctl unmask {name} on the box, then run again",
        )
    file = have.file
    if file is None:
        return differing(resource, [("file", f"{FOLDER}/{name}", "absent")])
    if isinstance(file, Unknown):
        return differing(resource, [("file", f"{FOLDER}/{name}", f"unreadable: {file.unknown}")])
    if file.kind != "regular file":
        raise ConflictError(
            wanted=f"{FOLDER}/{name} as a file",
            found=f"a {file.kind}",
            why="writing through it would change a file somewhere else",
            next_step=f"remove {FOLDER}/{name} on the box, then run again",
        )
    digest = hashlib.sha256(text.encode()).hexdigest()
    content = file.sha256 == digest
    return (
        *differing(resource, [] if content else list(_directives(text, file.text))),
        *differing(
            resource,
            [
                ("mode", "644", file.mode),
                ("owner", "root:root", f"{file.owner}:{file.group}"),
                ("loaded", "this file", "an older one" if have.needs_reload else "this file"),
            ],
        ),
    )


def _directives(want: str, have: str) -> list[tuple[str, object, object]]:
    """The lines that differ, by directive; at least one entry for texts that differ at all."""
    wanted, found = _by_name(want), _by_name(have)
    changed: list[tuple[str, object, object]] = [
        (name, wanted.get(name, "no such directive"), found.get(name, "no such directive"))
        for name in dict.fromkeys([*wanted, *found])
        if wanted.get(name) != found.get(name)
    ]
    return changed or [("text", "as rendered", "other comments, order or white space")]


def _by_name(text: str) -> dict[str, str]:
    """``[Section] Name`` -> values. Environment variables count one by one, continuations join."""
    joined: dict[str, list[str]] = {}
    section = ""
    for line in text.replace("\\\n", " ").splitlines():
        stripped = line.strip()
        if stripped.startswith("["):
            section = stripped
        elif stripped and stripped[0] not in "#;":
            name, _, value = stripped.partition("=")
            if name == "Environment":
                variable, _, value = value.strip('"').partition("=")
                name = f"Environment {variable}"
            joined.setdefault(f"{section} {name}", []).append(" ".join(value.split()))
    return {name: ", ".join(values) for name, values in joined.items()}


def unified(name: str, want: str, have: UnitState | Unknown) -> str:
    """The change of a unit's text as a unified diff; all of it where the file is absent."""
    file = None if isinstance(have, Unknown) else have.file
    before = file.text.splitlines() if isinstance(file, UnitFile) else []
    path = f"{FOLDER}/{name}"
    return "\n".join(
        difflib.unified_diff(
            before, want.splitlines(), path if before else "/dev/null", path, lineterm=""
        )
    )


@operation()
@guarded
def unit(unit_name: str, text: str, query: Query, checks: Sequence[StringCommand] = ()) -> Commands:
    """
    Install a unit's file, after systemd itself has checked it, and load it. Starts nothing.

    + checks: commands that must succeed before the file is written
    """
    yield from converge(
        query,
        lambda actual: unit_differences(unit_name, text, actual.unit(unit_name)),
        lambda _: Step(
            unit_script(unit_name),
            stdin=text,
            wanted=f"{FOLDER}/{unit_name} as rendered, accepted by systemd-analyze verify",
            why="systemd would ignore or refuse what it does not accept; the file that was there "
            "is still in place, and the old service still serves",
            next_step="the lines above name the directive; environment and extra_args of the "
            "service are the parts that boxwright does not choose itself",
        ),
        unchanged=f"unit {unit_name} is installed",
        look=f"systemctl cat {unit_name} on the box",
        text=lambda actual: unified(unit_name, text, actual.unit(unit_name)),
        checks=checks,
    )


def unit_script(name: str) -> str:
    """The commands that check, write and load the unit that comes on standard input."""
    quoted = shlex.quote(name)
    return "\n".join(
        (
            "set -e; umask 077",
            "d=$(mktemp -d /run/boxwright.XXXXXXXX)",
            'trap \'rm -rf -- "$d" "${t:-$d}"\' EXIT',
            f'cat >"$d"/{quoted}',
            f'systemd-analyze verify --man=no "$d"/{quoted}',
            f"t=$(mktemp {FOLDER}/.boxwright.XXXXXXXX)",
            f'cat "$d"/{quoted} >"$t"',
            'chown root:root "$t"; chmod 644 "$t"; sync -- "$t"',
            f'mv -fT -- "$t" {FOLDER}/{quoted}',
            "systemctl daemon-reload",
        )
    )
