"""A box's state as the probe sees it, without what differs between any two starts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi

from facts.actual import read_actual
from facts.query import query_for, script
from inventory.catalogue import KIMI_K25, MINIMAX_M25, MINIMAX_M25_THROUGHPUT
from inventory.override import overridden
from inventory.service import Model
from inventory.snapshot import lock_name
from operations.tools import tools_folder
from tests.lab.base import Lab
from tests.lab.box import Box
from tests.lab.desired import host

IDS_AND_TIMES = {
    "seconds",
    "downloaded",
    "reused",
    "verified_at",
    "started",
    "invocation",
    "ready_invocation",
    "main_pid",
    "modified",
    "modified_ns",
    "inode",
    "pid",
    "available",
    "free_inodes",
    "memory_free",
    "host_memory_available",
}


def probed(box: Box, lab: Lab) -> dict[str, Any]:
    """Everything that a run of deploys/minimax.py reads of a box, ids and times left out."""
    _, data = host(box.name, lab)
    service = overridden(MINIMAX_M25, data["override"])
    lock = Path(data["locks"]) / lock_name(Model(repo=service.model.repo))
    # Where no run has asked yet, what it will be told: a state before it names the same folder.
    commit = json.loads(lock.read_text())["commit"] if lock.exists() else _newest(service.model)
    query = query_for(
        service,
        folder=f"{service.model.home}/{commit}",
        tools=tools_folder(),
        replaces=(KIMI_K25, MINIMAX_M25_THROUGHPUT),
        sysfs=data.get("sysfs", "/sys"),
    )
    # As a file: an argument list of ssh goes through one more shell.
    text = box.run("sh -s", user="root", stdin=script(query, "cafe")).stdout
    state = read_actual(text, "cafe")
    assert state.complete
    plain = _without(state.to_json())
    assert isinstance(plain, dict)
    # The lab's boxes share this machine's network: the others' listeners are not this box's.
    plain["listeners"] = [one for one in plain["listeners"] if one["address"] == box.address]
    return plain


def _newest(model: Model) -> str:
    """The commit that the Hub has for the model's revision."""
    found = HfApi(endpoint=model.endpoint).model_info(model.repo, revision=model.revision)
    return str(found.sha)


def _without(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without(item) for key, item in value.items() if key not in IDS_AND_TIMES}
    if isinstance(value, list):
        return [_without(item) for item in value]
    return value


def unlike(one: object, other: object, path: str = "") -> list[str]:
    """Where two probed states differ, by path: what a failed comparison shows.

    >>> unlike({"a": [1, 2]}, {"a": [1, 3]})
    ['a.1: 2, 3']
    """
    if isinstance(one, dict) and isinstance(other, dict):
        pairs = [(str(key), one.get(key), other.get(key)) for key in {**one, **other}]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(str(n), a, b) for n, (a, b) in enumerate(zip(one, other, strict=True))]
    else:
        return [] if one == other else [f"{path}: {one}, {other}"]
    return [line for key, a, b in pairs for line in unlike(a, b, f"{path}.{key}".lstrip("."))]


def listing(box: Box) -> list[str]:
    """Every file below the folders that boxwright writes to, with size, mode and owner."""
    folders = "/etc /opt /shared /var/lib/boxwright /var/cache/vllm /usr/local"
    # Compiled Python is the interpreter's doing, and a folder's size the file system's.
    find = f"find {folders} -name __pycache__ -prune -o -printf '%p %s %m %u %y\\n'"
    text = box.run(
        f"{find} 2>/dev/null | sed 's/ [0-9]* \\([0-9]* [^ ]* d\\)$/ \\1/' | sort; :", user="root"
    ).stdout
    # The manager keeps its own notes in /etc at boot.
    return [line for line in text.splitlines() if not re.match(r"/etc/(mtab|\.updated)", line)]
