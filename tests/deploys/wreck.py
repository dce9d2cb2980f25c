"""Real starts of a real engine with one thing wrong, below boxwright: units by hand.

Their commands and sandboxes are those of a unit that boxwright wrote, so that they fail as its own
would.
"""

from __future__ import annotations

import re
import shlex
from datetime import datetime
from typing import NamedTuple

from operations.diagnosis import Diagnosis, from_text
from tests.lab.box import Box

MOST_SECONDS = 500
"""For one start, on a machine that is busy with others."""

_EXITED = re.compile(r"^(\S+) \S+ systemd\[1\]: .*(?:Main process exited|Deactivated successfully)")

_RUN = """
set -e
cat >/etc/systemd/system/{unit}
systemctl daemon-reload
{before}
systemctl start {unit}
id=$(systemctl show --value -p InvocationID {unit})
i=0
while systemctl is-active --quiet {unit}; do
    i=$((i + 1)); [ $i -lt {seconds}0 ] || {{ echo 'it still runs' >&2; exit 1; }}; sleep 0.1
done
{after}
journalctl --sync
journalctl --no-pager -o short-iso-precise _SYSTEMD_INVOCATION_ID=$id + INVOCATION_ID=$id
"""


class Wreck(NamedTuple):
    """A start that ended.

    + journal: all that it and systemd said about it
    """

    journal: str

    @property
    def diagnosis(self) -> Diagnosis:
        """What boxwright makes of the journal."""
        found = from_text(self.journal)
        assert found is not None, self.journal
        return found


def ended_at(journal: str) -> float:
    """Seconds since the epoch at which systemd saw the (first) main process gone.

    + journal: in journalctl's ``short-iso-precise``
    """
    times = [match[1] for line in journal.splitlines() if (match := _EXITED.match(line))]
    assert times, journal
    return datetime.fromisoformat(times[0]).timestamp()


def wreck(
    box: Box,
    text: str,
    name: str,
    *,
    before: str = ":",
    after: str = ":",
    **flags: str | int,
) -> Wreck:
    """Start a changed copy of a unit on a box, and wait until it has ended.

    + text: of the unit
    + name: of the copy
    + before, after: commands on the box, around the start
    + flags: of the engine, with underscores, and their values: replaced, or added
    """
    unit = f"wreck-{name}.service"
    script = _RUN.format(unit=unit, before=before, after=after, seconds=MOST_SECONDS)
    done = box.run(
        f"sh -c {shlex.quote(script)}",
        user="root",
        stdin=changed(text, flags),
        timeout=MOST_SECONDS + 60,
    )
    return Wreck(done.stdout)


def changed(text: str, flags: dict[str, str | int]) -> str:
    r"""A unit's text with other flags, that is tried once and alone.

    >>> print(changed("[Service]\nExecStart=/v \\\n    --port 1\nRestart=always\n", {"port": 2}))
    [Service]
    ExecStart=/v \
        --port 2
    Restart=no
    <BLANKLINE>
    """
    for field, value in flags.items():
        flag = f"--{field.replace('_', '-')}"
        given = re.compile(rf"(?m)^    {flag} .*?( \\)?$")
        line = rf"    {flag} {value}\1"
        if given.search(text):
            text = given.sub(line, text)
        else:
            text = re.sub(r"(?m)^(ExecStart=.*)$", rf"\1\n    {flag} {value} \\", text)
    # What serves on the box goes on: the copy takes its place for nobody.
    text = re.sub(r"(?m)^Conflicts=.*\n", "", text)
    return re.sub(r"(?m)^Restart=.*$", "Restart=no", text)
