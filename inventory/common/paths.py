"""Where things are on a box, and what a path may be."""

import re

UNITS = "/etc/systemd/system"
"""Unit files of the administrator's, and boxwright's among them."""

STATE = "/var/lib/boxwright"
"""What boxwright saw of this box, and keeps over a reboot."""
READY = f"{STATE}/ready"
"""One file a unit: the start (InvocationID) that was seen to answer."""
MEASURED = f"{STATE}/measured"
"""One file a unit: the start whose throughput was measured, and under which load."""
RECORD = f"{STATE}/record"
"""One folder a unit, one file for each start that became ready."""
GOOD = f"{STATE}/good"
"""One file a unit: its text as it was when a start became ready."""
PENDING = f"{STATE}/switch.json"
"""What an unfinished switch had stopped."""

RUN = "/run/boxwright"
"""What a reboot may forget."""
SWITCH = f"{RUN}/switch"
OUTCOME = f"{SWITCH}/outcome.json"
"""How the last switch on this box ended."""

OWN = ".boxwright"
"""Folder inside a snapshot that holds what boxwright knows of it."""
MANIFEST = f"{OWN}/manifest.json"
PARTIAL_FILES = f"{OWN}/parts"
"""Folder inside an unfinished snapshot: files on their way, named by their digests."""
PROVEN_FILES = f"{OWN}/proven.jsonl"
"""File inside an unfinished snapshot: its files that are whole."""
USERS = f"{OWN}/users"
"""Folder inside a snapshot: one empty file for each box that serves it. Pruning asks it."""

FETCHING = ".fetching-"
INCOMING = ".incoming-"
DELETING = ".deleting-"
"""Beginnings of the folders beside a snapshot, before its commit: downloaded into, sent into by a
controller, on their way out."""


def commit_of(name: str) -> str:
    """The commit that a folder beside a snapshot belongs to.

    >>> commit_of(".fetching-abc"), commit_of("abc")
    ('abc', 'abc')
    """
    return name.removeprefix(FETCHING).removeprefix(INCOMING)


_ODD = re.compile(r"[\x00-\x1f\x7f\\]")
_ELSEWHERE = {"", ".", ".."}


def inside(path: str) -> bool:
    """Whether a path of a listing stays inside the snapshot's folder, and out of boxwright's own.

    >>> inside("original/a.json"), inside("../a"), inside("/etc/passwd"), inside(".boxwright/x")
    (True, False, False, False)
    """
    parts = path.split("/")
    return parts[0] != OWN and _ELSEWHERE.isdisjoint(parts) and not _ODD.search(path)
