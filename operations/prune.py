"""Deleting superseded snapshots: only those that are named, and never one that is in use."""

import shlex
from collections.abc import Iterable

from pyinfra.api import operation

from facts.query import Query
from facts.reading.neighbours import Neighbour, Neighbours
from inventory.common.paths import DELETING, USERS, commit_of
from inventory.common.units import gibibytes
from inventory.errors import ConflictError, DesiredStateError
from inventory.snapshot import LocalSnapshot, label_of
from operations.difference import Difference
from operations.room import held_by
from operations.steps import Commands, Step, converge, guarded

_SHORTEST = 7
"""Hex digits that name a commit, as git has it."""


def named_commits(text: str) -> tuple[str, ...]:
    """The commits that ``--data prune=`` names.

    + text: beginnings of commits, separated by commas
    + raises: DesiredStateError for anything else
    """
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in names:
        if len(name) < _SHORTEST or set(name) - set("0123456789abcdef"):
            raise DesiredStateError(
                wanted=f"--data prune={text}",
                found=f"{name!r} is not a commit ({_SHORTEST} hex digits at least)",
                why="what is deleted is named, so that nothing else is; nothing was touched",
                next_step="name commits: --data prune=0123456789ab,fedcba987654",
            )
    return names


def doomed(
    names: tuple[str, ...], want: LocalSnapshot, beside: Neighbours
) -> tuple[Neighbour, ...]:
    """The snapshots and unfinished fetches that the names mean; never the wanted one.

    + names: beginnings of commits
    + raises: ConflictError where one is in use
    """
    if not names:
        return ()
    found = tuple(
        one
        for one in beside.snapshots
        if commit_of(one.name).startswith(names) and commit_of(one.name) != want.commit
    )
    for one in found:
        if held_by(one):
            raise ConflictError(
                wanted=f"to delete the snapshot {one.name} of {want.repo}",
                found=f"in use: {held_by(one)}",
                why="a service that restarts would find no model, and one that runs may have the "
                "files mapped; nothing was deleted",
                next_step="retire the service first (remove its unit file, or name it in replaces "
                "and run), then run again. A box that is gone for good is forgotten by removing "
                f"its file in {one.name}/{USERS}",
            )
    return found


def prunable(names: tuple[str, ...], want: LocalSnapshot, beside: Neighbours) -> int:
    """Bytes that deleting the named snapshots gives back."""
    return sum(one.frees for one in doomed(names, want, beside))


def prune_differences(
    names: tuple[str, ...], want: LocalSnapshot, beside: Neighbours
) -> tuple[Difference, ...]:
    """Each snapshot that is to go."""
    return tuple(
        Difference(
            resource=f"snapshot {label_of(want.repo, commit_of(one.name))}",
            attribute="state",
            want="absent",
            have=gibibytes(one.frees),
            reason="named in prune",
        )
        for one in doomed(names, want, beside)
    )


@operation()
@guarded
def prune(want: LocalSnapshot, query: Query, names: tuple[str, ...]) -> Commands:
    """
    Delete superseded snapshots of a service's model.

    + names: beginnings of the commits to delete
    """
    look = f"ls -la {want.home} on the box"
    yield from converge(
        query,
        lambda actual: prune_differences(names, want, actual.neighbours),
        lambda actual: Step(
            prune_script(want.home, (found := doomed(names, want, actual.neighbours))),
            wanted=f"{len(found)} superseded snapshots of {want.repo} deleted",
            why="their space is not free yet; what was deleted so far is gone, and no other file",
            next_step=look,
        ),
        unchanged=f"none of {', '.join(names)} is there",
        look=look,
    )


def prune_script(home: str, snapshots: Iterable[Neighbour]) -> str:
    """The commands. A folder is renamed first: half a snapshot never looks like a whole one."""
    lines = ["set -e"]
    for one in snapshots:
        folder = shlex.quote(f"{home}/{one.name}")
        grave = shlex.quote(f"{home}/{DELETING}{commit_of(one.name)}")
        lines += [f"[ ! -e {folder} ] || mv -T -- {folder} {grave}", f"rm -rf -- {grave}"]
    return "\n".join(lines)
