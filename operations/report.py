"""The report of a run as JSON: ``pyinfra inventory.py deploys/x.py --data report=FILE``.

One file on this machine for all boxes of the run, replaced whole after each operation and when the
boxes are left, however the run ends. While it runs, the outcome of its boxes is ``running``: a file
that says so and does not change any more is of a run that was killed.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from pyinfra import context
from pyinfra.api import Host, State
from pyinfra.api.state import BaseStateCallback, StateStage

from inventory.common.engine_log import uncoloured
from inventory.common.files import write_whole
from inventory.errors import BoxwrightError
from operations.difference import Difference

REPORT_VERSION = 1
ERROR_PARTS = ("wanted", "found", "why", "next_step")


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
        "version": REPORT_VERSION,
        "started": _time(started),
        "written": _time(now),
        "ended": ended,
        "boxes": {name: asdict(box) for name, box in boxes.items()},
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def reporting(host: Host, service: str) -> None:
    """Have the run of this box reported, where its data name a ``report``.

    + service: name of the service that it should serve
    """
    path = host.data.get("report")
    if path:
        _reporter(host.state).join(host.name, Path(path), BoxReport(service))


def unreachable(state: State, words: str, error: BoxwrightError) -> None:
    """Report a box that could not be reached: no deploy runs for it.

    + words: pyinfra's line about it, which begins with its name in brackets
    """
    for host in state.inventory:
        path = host.data.get("report")
        if path and words.startswith(f"[{host.name}]"):
            reporter = _reporter(state)
            reporter.join(host.name, Path(path), BoxReport(""))
            fails(host, error)
            reporter.gave_up(state, host)


def _reporter(state: State) -> Reporter:
    found = _found(state)
    if found is not None:
        return found
    reporter = Reporter()
    state.add_callback_handler(reporter)
    logging.getLogger("pyinfra").addHandler(Warnings(level=logging.WARNING))
    return reporter


def _found(state: State) -> Reporter | None:
    reporters = (one for one in state.callback_handlers if isinstance(one, Reporter))
    return next(reporters, None)


def differs(host: Host, difference: Difference) -> None:
    """Report a difference that is shown."""
    _with(host, lambda box: box.differences.append(difference.to_json()))


def fails(host: Host, error: BoxwrightError) -> None:
    """Report an error."""
    parts = {name: str(getattr(error, name)) for name in ERROR_PARTS}
    _with(host, lambda box: box.errors.append(parts))


def adds(host: Host, name: str, detail: object) -> None:
    """Report something of a single operation.

    + name: its key under ``details``
    + detail: plain data
    """
    _with(host, lambda box: box.details.update({name: detail}))


def _with(host: Host, change: Callable[[BoxReport], object]) -> None:
    reporter = _found(host.state)
    # By name: pyinfra hands out proxies, which are another host in another moment.
    box = reporter.boxes.get(host.name) if reporter else None
    if box is not None:
        change(box)


class Warnings(logging.Handler):
    """Takes every warning of the run into the report of the box that it is about."""

    def emit(self, record: logging.LogRecord) -> None:
        """Take a warning; what is worse is reported as an error, in four parts."""
        if record.levelno == logging.WARNING and context.ctx_host.isset():
            sentence = re.sub(r"^\[[^\]]*\]\s*", "", uncoloured(record.getMessage()).strip())
            _with(context.host, partial(_warned, sentence))


def _warned(sentence: str, box: BoxReport) -> None:
    if sentence and sentence not in box.warnings:
        box.warnings.append(sentence)


class Reporter(BaseStateCallback):
    """Follows the run, and writes."""

    def __init__(self) -> None:
        self.started = time.time()
        self.boxes: dict[str, BoxReport] = {}
        self.paths: dict[str, Path] = {}
        self.seconds: dict[tuple[str, str], float] = {}
        self.begun: dict[tuple[str, str], float] = {}
        self.left: set[str] = set()
        self.unreached: set[str] = set()

    def join(self, name: str, path: Path, box: BoxReport) -> None:
        """Report a box too."""
        self.boxes[name] = box
        self.paths[name] = path.absolute()

    def gave_up(self, state: State, host: Host) -> None:
        """Report a box that was not reached, at once: pyinfra will not leave it."""
        self.left.add(host.name)
        self.unreached.add(host.name)
        self._write(state)

    def operation_host_start(self, state: State, host: Host, op_hash: str) -> None:  # type: ignore[override]  # noqa: ARG002
        """Note when an operation begins."""
        self.begun[host.name, op_hash] = time.monotonic()

    def operation_host_success(  # type: ignore[override]
        self,
        state: State,  # noqa: ARG002
        host: Host,
        op_hash: str,
        *_: int,
    ) -> None:
        """Note how long an operation took."""
        begun = self.begun.get((host.name, op_hash))
        if begun is not None:
            self.seconds[host.name, op_hash] = time.monotonic() - begun

    operation_host_error = operation_host_success  # type: ignore[assignment]

    def operation_end(self, state: State, op_hash: str) -> None:  # type: ignore[override]  # noqa: ARG002
        """Write how far the run is."""
        self._write(state)

    def host_disconnect(self, state: State, host: Host) -> None:  # type: ignore[override]
        """Write how it ended. pyinfra leaves every box, whatever stopped the run."""
        self.left.add(host.name)
        self._write(state)

    def _write(self, state: State) -> None:
        for path in dict.fromkeys(self.paths.values()):
            names = [name for name, its in self.paths.items() if its == path]
            for name in names:
                self._settle(state, state.inventory.get_host(name))
            boxes = {name: self.boxes[name] for name in names}
            ended = self.left.issuperset(names)
            try:
                text = as_json(boxes, self.started, time.time(), ended=ended)
                write_whole(path, text, mode=None)
            except OSError as error:
                # A report that cannot be written must not decide how a box ends.
                words = f"the report {path} could not be written: {error.strerror}"
                logging.getLogger("pyinfra").log(logging.ERROR, words)

    def _settle(self, state: State, host: Host) -> None:
        box = self.boxes[host.name]
        box.operations = []
        for op_hash in host.op_hash_order:
            planned = state.ops[host].get(op_hash)
            if planned is None:  # refused while it was being planned
                continue
            done = Done(", ".join(sorted(state.op_meta[op_hash].names)))
            meta = planned.operation_meta
            if meta.is_complete():
                changed = "changed" if meta.did_change() else "unchanged"
                done.outcome = changed if meta.did_succeed() else "failed"
                done.seconds = round(self.seconds.get((host.name, op_hash), 0.0), 2)
            box.operations.append(done)
        box.outcome = outcome_of(
            box.operations,
            failed=host in state.failed_hosts or host.name in self.unreached,
            ended=host.name in self.left,
            executed=state.current_stage >= StateStage.Execute,
        )
