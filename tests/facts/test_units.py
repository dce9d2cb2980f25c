"""systemd's states are seen as what they are."""

import pytest

from facts.reading.units import UnitFile, UnitState, read_units
from facts.sections import sections
from inventory.base import Unknown

RUNNING = """Id=vllm-a.service
LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=enabled
Result=success
NRestarts=2
ExecMainStatus=0
ExecMainStartTimestamp=Mon 2026-11-30 10:28:18.123456 UTC
InvocationID=0123456789abcdef0123456789abcdef
NeedDaemonReload=no
FragmentPath=/etc/systemd/system/vllm-a.service
DropInPaths=
MainPID=812
"""

ABSENT = """Id=vllm-b.service
LoadState=not-found
ActiveState=inactive
SubState=dead
UnitFileState=
ExecMainStartTimestamp=n/a
NRestarts=0
MainPID=0
"""


def read(show: str, *more: str) -> tuple[UnitState, ...]:
    units = read_units(sections("\n".join([show, "@@ units 0", *more]), ""))
    assert not isinstance(units, Unknown)
    return units


def file_section(modified: str) -> list[str]:
    return [
        f"regular file|644|root|root|{modified}",
        "ab" * 32 + "  -",
        "[Unit]",
        "@@ unit-file:vllm-a.service 0",
    ]


def test_a_running_unit_and_an_absent_one() -> None:
    running, absent = read(f"{RUNNING}\n{ABSENT}")
    assert running.is_running
    assert running.is_enabled
    assert running.restarts == 2
    assert running.started == 1796034498.123456
    assert running.state == "active (running)"
    assert not absent.exists
    assert absent.is_stopped
    assert absent.state == "absent"
    assert absent.started is None


@pytest.mark.parametrize(
    ("active", "sub", "stopped", "running"),
    [
        ("inactive", "dead", True, False),
        ("failed", "failed", True, False),
        ("activating", "auto-restart", False, False),
        ("activating", "start", False, False),
        ("deactivating", "stop-sigterm", False, False),
        ("active", "exited", False, False),
        ("active", "running", False, True),
    ],
)
def test_states(active: str, sub: str, stopped: bool, running: bool) -> None:
    text = RUNNING.replace("ActiveState=active", f"ActiveState={active}")
    (unit,) = read(text.replace("SubState=running", f"SubState={sub}"))
    assert (unit.is_stopped, unit.is_running) == (stopped, running)


@pytest.mark.parametrize(
    ("word", "enabled", "masked"),
    [
        ("enabled", True, False),
        ("enabled-runtime", False, False),
        ("disabled", False, False),
        ("masked", False, True),
        ("masked-runtime", False, True),
        ("static", False, False),
        ("linked", False, False),
        ("", False, False),
    ],
)
def test_file_states(word: str, enabled: bool, masked: bool) -> None:
    (unit,) = read(RUNNING.replace("UnitFileState=enabled", f"UnitFileState={word}"))
    assert (unit.is_enabled, unit.is_masked) == (enabled, masked)


@pytest.mark.parametrize(
    ("modified", "outdated"),
    [("1796034498.123455", False), ("1796034498.123457", True), ("1796034400.000000", False)],
)
def test_a_process_older_than_its_file_is_outdated(modified: str, outdated: bool) -> None:
    (unit,) = read(RUNNING, *file_section(modified))
    assert isinstance(unit.file, UnitFile)
    assert unit.is_outdated is outdated


def test_ready_is_bound_to_one_start() -> None:
    note = "vllm-a.service 0123456789abcdef0123456789abcdef\n@@ ready 0"
    assert read(RUNNING, note)[0].is_ready
    assert not read(RUNNING, note.replace("0123", "9999"))[0].is_ready
    assert not read(RUNNING)[0].is_ready
    assert not read(RUNNING.replace("SubState=running", "SubState=exited"), note)[0].is_ready


def test_a_missing_file_and_an_unreadable_one_are_two_things() -> None:
    assert read(RUNNING, "@@ unit-file:vllm-a.service 3")[0].file is None
    unreadable = read(RUNNING, "cat: Permission denied", "@@ unit-file:vllm-a.service 1")[0].file
    assert isinstance(unreadable, Unknown)
    assert "Permission denied" in unreadable.unknown


def test_a_systemctl_that_fails_is_unknown_and_not_no_units() -> None:
    units = read_units(sections("Failed to connect to bus\n@@ units 1\n"))
    assert isinstance(units, Unknown)
    assert "bus" in units.unknown
