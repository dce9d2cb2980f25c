"""Puts the simulated GPUs into a box."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.lab.simulated.gpus.description import BOOKS, DESCRIPTION, SYSFS, Box, eight_gpus
from tests.lab.simulated.sysfs import write_sysfs

PACKAGE = Path(__file__).parent / "gpus"
PLAN = "opt/simulated/plan.json"

LAUNCHER = """\
#!/usr/bin/python3 -I
import os
import sys

sys.path.insert(0, (os.environ.get("SIMULATED_ROOT") or "") + "/opt/simulated")
from gpus.{module} import main

sys.exit(main())
"""
UNIT = f"""\
[Unit]
Description=Books of the simulated GPUs
DefaultDependencies=no
Before=sysinit.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/mkdir -p -m 1777 /{BOOKS}

[Install]
WantedBy=sysinit.target
"""


def install(root: Path, box: Box | None = None) -> None:
    """Install ``nvidia-smi``, ``simulated-hold``, the description and the sysfs tree.

    + root: the folder that is or becomes the box's ``/``
    + box: None for eight RTX PRO 6000 on two NUMA nodes

    The folder of the books is made by a unit at boot, and here too, for use without booting
    (``SIMULATED_ROOT=<root>``). May be repeated; another description takes the place of the old.
    """
    described = box or eight_gpus()
    package = root / "opt" / "simulated" / "gpus"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (root / DESCRIPTION).write_text(described.to_json())
    shutil.rmtree(root / SYSFS, ignore_errors=True)
    write_sysfs(root / SYSFS, described)
    for name, module in (("nvidia-smi", "nvidia_smi"), ("simulated-hold", "hold")):
        path = root / "usr" / "local" / "bin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LAUNCHER.format(module=module))
        path.chmod(0o755)
    unit = root / "etc" / "systemd" / "system" / "simulated-gpus.service"
    wanted = unit.parent / "sysinit.target.wants" / unit.name
    wanted.parent.mkdir(parents=True, exist_ok=True)
    unit.write_text(UNIT)
    wanted.unlink(missing_ok=True)
    wanted.symlink_to(f"../{unit.name}")
    books = root / BOOKS
    books.mkdir(parents=True, exist_ok=True)
    books.chmod(0o1777)


def write_plan(root: Path, plan: Mapping[str, Any]) -> None:
    """Say what stub engines on this box do at their next start; see ``engine/plan.py``.

    + plan: settings for every engine, with ``"services": {served name: settings}`` for one
    """
    path = root / PLAN
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(plan, indent=1) + "\n")
    temporary.replace(path)
