"""Hashing every byte again: when asked, and on a schedule where the desired state says one.

Off by default: reading hundreds of gigabytes beside a service that loads or streams costs it disk
time. What is found wrong is struck out of the manifest, and the next run fetches it again.
"""

import shlex

from pyinfra import host
from pyinfra.api import operation

from facts.actual import Actual
from facts.box import actual_state
from facts.query import Query, verify_units
from inventory.base import Unknown
from inventory.service import Service
from inventory.snapshot import LocalSnapshot
from operations.difference import Difference, differing
from operations.steps import Commands, Step, converge, guarded
from operations.tools import run_module
from operations.unit import FOLDER, unit_differences


def verify_texts(service: Service, folder: str) -> dict[str, str]:
    """Unit name -> text of the service that verifies and of the timer that starts it."""
    verifier, timer = verify_units(service)
    return {
        verifier: f"""[Unit]
Description=boxwright: hash every byte of {service.model.repo} again
ConditionPathExists={folder}

[Service]
Type=oneshot
User={service.user}
ExecStart={run_module("weights.verify", "--folder", folder)}
Nice=19
IOSchedulingClass=idle
NoNewPrivileges=yes
PrivateTmp=yes
ProtectSystem=full
""",
        timer: f"""[Unit]
Description=boxwright: when to hash {service.model.repo} again

[Timer]
OnCalendar={service.model.verify}
RandomizedDelaySec=1h
Persistent=yes

[Install]
WantedBy=timers.target
""",
    }


def verification_differences(
    service: Service, folder: str, actual: Actual
) -> tuple[Difference, ...]:
    """How the schedule on the box differs from ``model.verify``; None means never."""
    timer = actual.unit(verify_units(service)[1])
    if service.model.verify is None:
        if isinstance(timer, Unknown) or not timer.exists:
            return ()
        return differing(f"unit {timer.name}", [("state", "absent", "there")])
    found: list[Difference] = []
    for name, text in verify_texts(service, folder).items():
        found += unit_differences(name, text, actual.unit(name))
    if not isinstance(timer, Unknown):
        state = "waiting" if timer.is_enabled and timer.active_state == "active" else "off"
        found += differing(f"unit {timer.name}", [("state", "waiting", state)])
    return tuple(found)


@operation()
@guarded
def verification(service: Service, want: LocalSnapshot, query: Query) -> Commands:
    """Hash a snapshot on a schedule, or remove that schedule."""
    yield from converge(
        query,
        lambda actual: verification_differences(service, want.folder, actual),
        lambda _: Step(
            verification_script(service, want.folder),
            wanted=f"{want.repo} hashed again {service.model.verify or 'only when asked'}",
            why="bytes that go bad on the disk would be noticed by what the model says; the "
            "service itself is not touched",
            next_step="model.verify is what systemd-analyze calendar accepts, such as 'Sun 03:00'",
        ),
        unchanged=f"the schedule of hashing {want.repo} again is as desired",
        look=f"systemctl status {verify_units(service)[1]} on the box",
    )


def verification_script(service: Service, folder: str) -> str:
    """The commands that write both units and start the timer, or remove them."""
    verifier, timer = verify_units(service)
    if service.model.verify is None:
        files = f"{FOLDER}/{timer} {FOLDER}/{verifier}"
        return f"systemctl disable --now {timer}\nrm -f {files}\nsystemctl daemon-reload"
    lines = ["set -e", f"systemd-analyze calendar {shlex.quote(service.model.verify)} >/dev/null"]
    for name, text in verify_texts(service, folder).items():
        path = shlex.quote(f"{FOLDER}/{name}")
        draft = shlex.quote(f"{FOLDER}/.{name}.new")
        lines += [f"(umask 022; printf %s {shlex.quote(text)} >{draft})", f"mv -T {draft} {path}"]
    # The timer takes a changed schedule when it is started again.
    lines += ["systemctl daemon-reload", f"systemctl enable --now {timer}"]
    return "\n".join([*lines, f"systemctl restart {timer}"])


@operation(is_idempotent=False)
@guarded
def verified(want: LocalSnapshot, query: Query) -> Commands:
    """Hash every byte of a snapshot now."""
    if actual_state(host, query).snapshot.exists is not True:
        host.noop(f"{want.folder} is not there yet: it is hashed while it is fetched")
        return
    yield Step(
        f"exec {run_module('weights.verify', '--folder', want.folder)}",
        stream=True,
        wanted=f"every byte of {want.label} as the Hub lists it",
        why="a model of wrong bytes answers, and answers wrongly",
        next_step="run again without verify: the files that are named are fetched again",
    )
