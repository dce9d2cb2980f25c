"""What the report of a run says, and how: pure, but for the file. ``report.py`` follows the run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

VERSION = 1
PARTS = ("wanted", "found", "why", "next_step")


@dataclass
class Done:
    """One operation on one box.

    + outcome: ``changed``, ``unchanged``, ``failed``, or ``not run``
    + seconds: None where it did not run
    """

    name: str
    outcome: str = "not run"
    seconds: float | None = None


@dataclass
class BoxReport:
    """One box in one run.

    + outcome: ``running``, ``unchanged``, ``changed``, ``failed``, or ``planned`` where the run was
      asked to change nothing
    + operations: in their order
    + differences: those that were shown
    + errors: each with its four parts
    + details: what single operations add, by name; ``fetch`` has bytes, seconds and bytes a second
    """

    service: str
    outcome: str = "running"
    operations: list[Done] = field(default_factory=list)
    differences: list[dict[str, Any]] = field(default_factory=list)
    errors: list[dict[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)


def outcome_of(operations: list[Done], *, failed: bool, ended: bool, executed: bool) -> str:
    """A box's outcome.

    + failed: whether pyinfra gave the box up
    + ended: whether the box is left
    + executed: whether the run came to its changes

    >>> outcome_of([Done("a", "unchanged")], failed=False, ended=True, executed=True)
    'unchanged'
    """
    if failed:
        return "failed"
    if not ended:
        return "running"
    if not executed:
        return "planned"
    if any(one.outcome == "not run" for one in operations):
        return "failed"  # left in the middle, by an interruption or because of another box
    return "changed" if any(one.outcome == "changed" for one in operations) else "unchanged"


def as_json(boxes: Mapping[str, BoxReport], started: float, now: float, *, ended: bool) -> str:
    """The whole report.

    + boxes: by name
    + started, now: seconds since the epoch
    + ended: whether all boxes are left
    """
    content = {
        "version": VERSION,
        "started": _time(started),
        "written": _time(now),
        "ended": ended,
        "boxes": {name: asdict(box) for name, box in boxes.items()},
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def plain(text: str) -> str:
    """A line of the log without its colours.

    >>> plain("[\\x1b[1mbox\\x1b[0m] \\x1b[31mNo route\\x1b[0m")
    '[box] No route'
    """
    return re.sub(r"\x1b\[[0-9;]*m", "", text).strip()
