"""Real starts of a real engine with one thing wrong, below boxwright: units by hand.

Their commands and sandboxes are those of a unit that boxwright wrote, so that they fail as its own
would, and boxwright's waiter watches them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from facts.diagnosis import from_text
from facts.diagnosis.result import Diagnosis
from operations.tools import run_module
from tests.lab.box import Box

MOST_SECONDS = 500
"""For one start, on a machine that is busy with others."""

_EXITED = re.compile(r"(\S+) \S+ systemd\[1\]: .*(?:Main process exited|Deactivated successfully)")
_JOURNAL = "-- journal --\n"

_RUN = """
set -e
cat >/etc/systemd/system/{unit}
systemctl daemon-reload
systemctl start {unit}
id=$(systemctl show --value -p InvocationID {unit})
{wait} | while read -r line; do printf '%s %s\\n' "$(date +%s.%N)" "$line"; done
while systemctl is-active --quiet {unit}; do sleep 0.1; done
journalctl --sync
printf '%s\\n' '{mark}'
journalctl --no-pager -o short-iso-precise _SYSTEMD_INVOCATION_ID=$id + INVOCATION_ID=$id
"""


@dataclass(frozen=True)
class Wreck:
    """A start that ended.

    + told: what the waiter printed, each line with its time
    + journal: all that the start and systemd said about it
    """

    told: str
    journal: str

    @property
    def diagnosis(self) -> Diagnosis:
        """What boxwright makes of the journal."""
        found = from_text(self.journal)
        assert found is not None, self.journal
        return found

    @property
    def late(self) -> float:
        """Seconds from the end of the main process to the waiter's verdict."""
        ended = ended_at(self.journal)
        assert ended is not None
        return float(self.told.splitlines()[-1].split()[0]) - ended


def ended_at(journal: str) -> float | None:
    """Seconds since the epoch at which systemd first saw a main process gone; None: not yet.

    + journal: in journalctl's ``short-iso-precise``
    """
    times = (match[1] for line in journal.splitlines() if (match := _EXITED.match(line)))
    first = next(times, None)
    return None if first is None else datetime.fromisoformat(first).timestamp()


def wreck(box: Box, text: str, name: str, flags: Mapping[str, str], directives: str = "") -> Wreck:
    """Start a changed copy of a unit on a box, and wait until it has ended.

    + text: of the unit, as boxwright writes it
    + name: of the copy
    + flags: of the engine, that get another value
    + directives: further lines of the unit's section ``[Service]``
    """
    unit = f"wreck-{name}.service"
    url = f"http://{box.address}:{flags['--port']}"
    watched = ("--unit", unit, "--url", url, "--model", name)
    wait = run_module("switch.waiting.wait", *watched, "--timeout", str(MOST_SECONDS))
    script = _RUN.format(unit=unit, wait=wait, mark=_JOURNAL.strip())
    done = box.run(
        f"sh -c {shlex.quote(script)}",
        user="root",
        stdin=changed(text, flags, directives),
        timeout=MOST_SECONDS + 60,
    )
    told, _, journal = done.stdout.partition(_JOURNAL)
    return Wreck(told, journal)


def changed(text: str, flags: Mapping[str, str], directives: str = "") -> str:
    r"""A unit's text with other values of flags, that is tried once and alone.

    >>> print(changed("[Service]\nExecStart=/v \\\n    --port 1\nRestart=always", {"--port": "2"}))
    [Service]
    <BLANKLINE>
    ExecStart=/v \
        --port 2
    Restart=no
    """
    for flag, value in flags.items():
        text, count = re.subn(rf"(?m)^(    {flag}) \S+", rf"\1 {value}", text)
        assert count == 1, f"{flag} in:\n{text}"
    # What serves on the box goes on: the copy takes its place for nobody.
    text = re.sub(r"(?m)^Conflicts=.*\n", "", text)
    text = re.sub(r"(?m)^Restart=.*$", "Restart=no", text)
    return text.replace("[Service]\n", f"[Service]\n{directives}\n")
