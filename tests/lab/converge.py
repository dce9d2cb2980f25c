"""Run pyinfra as a person does, on boxes of the lab, and read what it printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.lab.base import REPO

PYINFRA = (sys.executable, "-m", "pyinfra")


@dataclass(frozen=True)
class Run:
    """One run of pyinfra.

    + status: exit status
    + text: everything it printed, both streams
    """

    status: int
    text: str

    @property
    def changed(self) -> list[str]:
        """Names of the operations that changed something, from the table of results."""
        return self._operations(column=1)

    @property
    def unchanged(self) -> list[str]:
        """Names of the operations that found nothing to do."""
        return self._operations(column=3)

    def _operations(self, column: int) -> list[str]:
        _, _, table = self.text.partition("--> Results:")
        names = []
        for line in table.splitlines():
            cells = re.split(r"\s{2,}", line.strip())
            counted = len(cells) == 5 and cells[1].isdigit() and cells[0] != "Grand total"
            if counted and cells[1 + column] != "-":
                names.append(cells[0])
        return names

    @property
    def commands(self) -> int:
        """Commands that ran on boxes, as pyinfra's own debug log (``--debug``) counts them."""
        return len(re.findall(r"Running command on ", self.text))

    @property
    def four_parts(self) -> list[str]:
        """The labels of the last error, in order."""
        return re.findall(r"^\W*(?:\[[^\]]+\] )?\s*(wanted|found|why|next): ", self.text, re.M)


def started(
    *arguments: str, inventory: Path | str = "inventory.py", box: str = "demo"
) -> subprocess.Popen[str]:
    """``pyinfra inventory.py …`` in the repository, running.

    + arguments: what follows the inventory
    + inventory: another file than the repository's own
    + box: which box of the lab the repository's inventory names
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    return subprocess.Popen(
        [*PYINFRA, str(inventory), *arguments],
        cwd=REPO,
        env={**environment, "LAB_BOX": box, "PYINFRA_PROGRESS": "off", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def pyinfra(
    *arguments: str,
    inventory: Path | str = "inventory.py",
    box: str = "demo",
    echo: bool = False,
) -> Run:
    """Run ``pyinfra inventory.py …`` in the repository, as :func:`started` does, to its end.

    + echo: print each line as it comes
    """
    lines = []
    with started(*arguments, inventory=inventory, box=box) as running:
        assert running.stdout
        for line in running.stdout:
            lines.append(re.sub(r"\x1b\[[0-9;]*m", "", line))
            if echo:
                print(line, end="", flush=True)
    return Run(running.returncode, "".join(lines))
