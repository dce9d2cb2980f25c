"""A unit at one moment, as systemd tells it."""

from collections.abc import Mapping
from dataclasses import dataclass

from inventory.common.systemd import has_job, seconds

MOMENT_PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "Job",
    "NRestarts",
    "Restart",
    "RestartUSec",
    "ExecMainStatus",
    "ExecMainCode",
    "ExecMainStartTimestampMonotonic",
    "InactiveExitTimestampMonotonic",
    "StateChangeTimestampMonotonic",
    "InvocationID",
    "StartLimitBurst",
    "StartLimitIntervalUSec",
    "StandardOutput",
)


@dataclass(frozen=True)
class UnitMoment:
    """A unit at one moment, as systemd tells it. Times in seconds, by the monotonic clock.

    + restarts: that systemd did on its own since somebody started the unit
    + code, status: how the main process ended; code 0 while it runs
    + job: a start or stop is queued or under way
    + burst, interval: systemd refuses more starts than this in so many seconds
    + pause: before it starts the unit again
    + logged: what its processes print goes to the journal
    """

    load: str = "loaded"
    active: str = "inactive"
    sub: str = "dead"
    result: str = "success"
    job: bool = False
    restarts: int = 0
    restart: str = "no"
    pause: float = 0.0
    status: int = 0
    code: int = 0
    started: float = 0.0
    changed: float = 0.0
    invocation: str = ""
    burst: int = 0
    interval: float = 0.0
    logged: bool = True

    @property
    def is_running(self) -> bool:
        """Whether its main process runs, as systemd knows it."""
        return self.active in {"active", "reloading", "refreshing"} and self.sub != "exited"

    @property
    def words(self) -> str:
        """For people."""
        return f"{self.active} ({self.sub})"


def unit_moment(shown: Mapping[str, str]) -> UnitMoment:
    """Read the properties that systemd shows. A missing one, or one that is not a number, is 0."""

    def number(name: str) -> int:
        text = shown.get(name, "")
        return int(text) if text.isascii() and text.isdigit() else 0

    return UnitMoment(
        load=shown.get("LoadState", ""),
        active=shown.get("ActiveState", ""),
        sub=shown.get("SubState", ""),
        result=shown.get("Result", ""),
        job=has_job(shown),
        restarts=number("NRestarts"),
        restart=shown.get("Restart", ""),
        pause=seconds(shown.get("RestartUSec", "")),
        status=number("ExecMainStatus"),
        code=number("ExecMainCode"),
        started=(
            number("ExecMainStartTimestampMonotonic") or number("InactiveExitTimestampMonotonic")
        )
        / 1e6,
        changed=number("StateChangeTimestampMonotonic") / 1e6,
        invocation=shown.get("InvocationID", ""),
        burst=number("StartLimitBurst"),
        interval=seconds(shown.get("StartLimitIntervalUSec", "")),
        logged=shown.get("StandardOutput", "journal").startswith("journal"),
    )
