"""What the box grants and has: privileges, systemd, the account, packages."""

import re
from collections.abc import Mapping

from facts.sections import ABSENT, MISSING, Section
from inventory.base import Frozen, Unknown


class HostState(Frozen):
    """The ground that every operation stands on."""

    login: str
    """User that the probe ran as after every attempt to become root."""
    is_root: bool
    root_refusal: str = ""
    """What sudo said where it did not give root."""
    systemd: str | Unknown | None
    """Version line of systemd; None where the machine was not booted with it."""
    account_home: str | None = None
    """Home of the service's user; None where the user is absent."""
    packages: frozenset[str] | Unknown = frozenset()
    """Those of the asked-for Debian packages that are installed."""
    tools: bool = False
    """Whether boxwright's own programs of this version are in place."""


def read_host(found: Mapping[str, Section]) -> HostState:
    """The host.

    + found: sections ``who``, ``root``, ``manager``, ``account``, ``packages`` and ``tools``
    """
    who = found.get("who", MISSING)
    lines = [*who.lines, "", ""]
    account = found.get("account", MISSING)
    entry = account.lines[0].split(":") if account.rc == 0 and account.lines else []
    return HostState(
        login=lines[1].strip(),
        is_root=lines[0].strip() == "0",
        root_refusal=found.get("root", MISSING).text.strip(),
        systemd=_systemd(found.get("manager", MISSING)),
        account_home=entry[5] if len(entry) == 7 else None,  # noqa: PLR2004 - passwd(5)
        packages=_packages(found.get("packages", MISSING)),
        tools=found.get("tools", MISSING).rc == 0,
    )


def _systemd(section: Section) -> str | Unknown | None:
    if section.rc == ABSENT:  # not booted with systemd
        return None
    version = re.match(r"systemd [0-9]+", section.text)
    return version.group(0) if version else Unknown(unknown=section.text.strip() or "not read")


def _packages(section: Section) -> frozenset[str] | Unknown:
    if section.rc != 0:
        return Unknown(unknown=section.text.strip() or "not read")
    pairs = (line.split() for line in section.lines)
    return frozenset(pair[0] for pair in pairs if pair[1:] == ["installed"])
