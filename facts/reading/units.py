"""systemd units, as they are: load state, file state, what runs and since when."""

from collections.abc import Mapping

from facts.hardware.cells import number
from facts.sections import ABSENT, MISSING, Section
from inventory.base import Frozen, Unknown
from inventory.common.systemd import STOPPED, blocks, has_job, moment

STATE_PROPERTIES = (
    *("Id", "LoadState", "ActiveState", "SubState", "UnitFileState", "Result", "NRestarts"),
    *("ExecMainStatus", "ExecMainStartTimestamp", "InvocationID", "NeedDaemonReload"),
    *("DropInPaths", "MainPID", "Job"),
)
"""What systemctl is asked for."""


class UnitFile(Frozen):
    """The unit's file in /etc/systemd/system."""

    kind: str
    """``regular file``, ``symbolic link`` (a masked unit is a link to /dev/null), …"""
    mode: str
    """Octal permissions, e.g. 644."""
    owner: str
    group: str
    modified: float
    """Seconds since the epoch."""
    sha256: str
    text: str
    """Printable ASCII of the content: for showing a difference, never for deciding one."""


class UnitState(Frozen):
    """One unit. A unit that does not exist has load state ``not-found``."""

    name: str
    load_state: str
    active_state: str
    sub_state: str
    unit_file_state: str
    """``enabled``, ``enabled-runtime``, ``disabled``, ``masked``, …; empty without a file."""
    result: str
    restarts: int | Unknown
    exit_status: int | Unknown
    started: float | None
    """When the main process started, in seconds since the epoch; None where none ever did."""
    invocation: str
    """InvocationID of the current or last start; empty where there was none."""
    needs_reload: bool
    drop_ins: tuple[str, ...]
    main_pid: int | Unknown
    job_queued: bool
    file: UnitFile | Unknown | None = None
    """None where no file of that name is in /etc/systemd/system."""
    ready_invocation: str | None = None
    """The start that boxwright last saw answer."""
    measured_invocation: str | None = None
    """The start whose throughput was last measured, and found or accepted to be good."""
    measured_load: str | None = None
    """Digest of the load that it was measured under (inventory/throughput.py)."""

    @property
    def exists(self) -> bool:
        """Whether systemd knows the unit at all."""
        return self.load_state != "not-found"

    @property
    def is_masked(self) -> bool:
        """Whether an administrator forbade every start."""
        return self.load_state == "masked" or self.unit_file_state.startswith("masked")

    @property
    def is_enabled(self) -> bool:
        """Whether it starts at boot. ``enabled-runtime`` is gone after the next one."""
        return self.unit_file_state == "enabled"

    @property
    def is_running(self) -> bool:
        """Whether its main process runs now."""
        return self.active_state == "active" and self.sub_state == "running"

    @property
    def is_stopped(self) -> bool:
        """Whether nothing of it runs and no start is pending."""
        return self.active_state in STOPPED and not self.job_queued

    @property
    def state(self) -> str:
        """Active and sub state in systemd's words, e.g. ``activating (auto-restart)``."""
        return f"{self.active_state} ({self.sub_state})" if self.exists else "absent"

    @property
    def is_outdated(self) -> bool:
        """Whether the running process was started before the unit's file was last written."""
        if not isinstance(self.file, UnitFile) or self.started is None:
            return False
        return self.started < self.file.modified

    @property
    def is_ready(self) -> bool:
        """Whether this very start was seen to answer."""
        return (
            self.is_running and bool(self.invocation) and self.ready_invocation == self.invocation
        )


def read_units(found: Mapping[str, Section]) -> tuple[UnitState, ...] | Unknown:
    """The units that the probe was asked for.

    + found: sections ``units``, ``unit-file:NAME``, ``ready`` and ``measured``
    """
    section = found.get("units", MISSING)
    if section.rc != 0:
        return Unknown(unknown=section.text.strip() or "the units were not read")
    ready = _ready(found.get("ready", MISSING))
    measured = _measured(found.get("measured", MISSING))
    units = []
    for fields in blocks(section.text):
        name = fields.get("Id", "")
        if name:
            file = _unit_file(found.get(f"unit-file:{name}", MISSING))
            units.append(_unit(name, fields, file, ready.get(name), measured.get(name)))
    return tuple(units)


def _unit(
    name: str,
    fields: Mapping[str, str],
    file: UnitFile | Unknown | None,
    ready: str | None,
    measured: tuple[str, str] | None,
) -> UnitState:
    return UnitState(
        name=name,
        load_state=fields.get("LoadState", "unknown"),
        active_state=fields.get("ActiveState", "unknown"),
        sub_state=fields.get("SubState", "unknown"),
        unit_file_state=fields.get("UnitFileState", ""),
        result=fields.get("Result", ""),
        restarts=number(fields.get("NRestarts", "")),
        exit_status=number(fields.get("ExecMainStatus", "")),
        started=moment(fields.get("ExecMainStartTimestamp", "")),
        invocation=fields.get("InvocationID", ""),
        needs_reload=fields.get("NeedDaemonReload") == "yes",
        drop_ins=tuple(fields.get("DropInPaths", "").split()),
        main_pid=number(fields.get("MainPID", "")),
        job_queued=has_job(fields),
        file=file,
        ready_invocation=ready,
        measured_invocation=measured[0] if measured else None,
        measured_load=measured[1] if measured else None,
    )


def _unit_file(section: Section) -> UnitFile | Unknown | None:
    if section.rc == ABSENT:
        return None
    head = section.lines[0].split("|") if section.lines else []
    digest = section.lines[1].split()[:1] if len(section.lines) > 1 else []
    if section.rc != 0 or len(head) != 5 or not digest:  # noqa: PLR2004
        return Unknown(unknown=section.text.strip() or "not read")
    try:
        modified = float(head[4])
    except ValueError:
        return Unknown(unknown=f"modification time {head[4]!r}")
    return UnitFile(
        kind=head[0],
        mode=head[1],
        owner=head[2],
        group=head[3],
        modified=modified,
        sha256=digest[0],
        text="\n".join(section.lines[2:]) + "\n",
    )


def _ready(section: Section) -> dict[str, str]:
    pairs = (line.split() for line in section.lines)
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}  # noqa: PLR2004


def _measured(section: Section) -> dict[str, tuple[str, str]]:
    words = (line.split() for line in section.lines)
    return {word[0]: (word[1], word[2]) for word in words if len(word) == 3}  # noqa: PLR2004
