"""``boxwright history [INVENTORY]``: what ran on the boxes, and how their last starts compare.

Reads the records that every switch leaves on its box. Nothing is touched.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inventory.errors import MISTAKE, BoxwrightError, DesiredStateError, PreconditionError

FACT = "facts.record.Records"
LINES = 6
"""Of pyinfra's own words that go into an error."""
ANSWERED, PARTLY = 0, 1
"""Exit codes: every box was read; some could not be, or an entry is damaged. MISTAKE: none was."""


def add_history_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
) -> argparse.ArgumentParser:
    """Adds ``history`` to a program's commands.

    + commands: from ``ArgumentParser.add_subparsers``; the chosen command's ``run`` is set as
      default ``run``
    """
    parser = commands.add_parser(
        "history",
        help="what ran on the boxes, and how the last starts compare",
        description=__doc__,
    )
    parser.add_argument(
        "inventory", nargs="?", default="inventory.py", help="file or hosts, as pyinfra takes them"
    )
    parser.add_argument("--limit", action="append", default=[], metavar="HOST")
    parser.add_argument("--unit", default="", help="one service only")
    parser.add_argument("--json", action="store_true", help="the whole answer as JSON")
    parser.set_defaults(run=run)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Answers on standard output; mistakes go to standard error."""
    try:
        printed = ask(arguments.inventory, tuple(arguments.limit), unit_name(arguments.unit))
    except BoxwrightError as error:
        print(error.message, file=sys.stderr)
        return MISTAKE
    # `boxwright fit` shares this program, and has no use for any of these.
    from facts.history.comparison import history  # noqa: PLC0415
    from facts.history.render import render  # noqa: PLC0415
    from facts.reading.records import records_from_json  # noqa: PLC0415

    found = history({host: records_from_json(value) for host, value in printed.items()})
    if arguments.json:
        print(json.dumps(found.to_json(), indent=2, ensure_ascii=False))
    else:
        print(render(found), end="")
    return PARTLY if any(box.problems for box in found.boxes) else ANSWERED


def unit_name(name: str) -> str:
    """A unit's name with its ending; empty stays empty.

    >>> unit_name("vllm-kimi-k25"), unit_name("vllm-kimi-k25.service"), unit_name("")
    ('vllm-kimi-k25.service', 'vllm-kimi-k25.service', '')
    """
    return name if not name or name.endswith(".service") else f"{name}.service"


def ask(inventory: str, limit: tuple[str, ...] = (), unit: str = "") -> dict[str, Any]:
    """The fact's answer by host, read by pyinfra in a process of its own.

    + limit: hosts or groups; empty for all
    + raises: DesiredStateError, PreconditionError
    """
    if inventory.endswith(".py") and not Path(inventory).exists():
        raise DesiredStateError(
            wanted=f"the history of the boxes in {inventory}",
            found="there is no such file",
            why="the inventory names the boxes and how they are reached",
            next_step="run it beside inventory.py, or name the file: boxwright history FILE",
        )
    command = [sys.executable, "-m", "pyinfra", "--json"]
    command += [word for host in limit for word in ("--limit", host)]
    command += [inventory, "fact", FACT, *([f"unit={unit}"] if unit else [])]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    answer = _answer(done.stdout)
    if not answer:
        raise PreconditionError(
            wanted=f"the records of the boxes in {inventory}",
            found=_words(done.stderr) or f"pyinfra ended with status {done.returncode}",
            why="no box was read",
            next_step=f"try `pyinfra {inventory} fact {FACT}`, which says more",
        )
    return answer | _silent(done.stderr, answer)


def _answer(text: str) -> dict[str, Any]:
    """Host to value, from what pyinfra printed; empty where it holds none."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    facts = value.values() if isinstance(value, Mapping) else ()
    return {
        str(host): told
        for fact in facts
        if isinstance(fact, Mapping)
        for host, told in fact.items()
    }


def _words(log: str) -> str:
    """The end of pyinfra's log, without the lines that only say how far it is."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    told = [line for line in lines if not (line.startswith("--> ") and line.endswith("..."))]
    return "; ".join(told[-LINES:])


def _silent(log: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Hosts that pyinfra's log names and that gave no answer, with its last word on each."""
    said = re.findall(r"^ {4}\[([^\]\n]+)\] +(\S.*)$", log, re.M)
    return {host: {"unknown": word} for host, word in said if host not in answer}
