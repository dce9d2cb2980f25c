"""A unit at one moment, as systemd tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PROPERTIES = (
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
class State:
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
        """Whether its main process runs, as far as systemd knows."""
        return self.active in {"active", "reloading", "refreshing"} and self.sub != "exited"

    @property
    def words(self) -> str:
        """For people."""
        return f"{self.active} ({self.sub})"


def state(shown: Mapping[str, str]) -> State:
    """Read the properties that systemd shows. A missing one, or one that is no number, is 0."""

    def number(name: str) -> int:
        text = shown.get(name, "")
        return int(text) if text.isascii() and text.isdigit() else 0

    return State(
        load=shown.get("LoadState", ""),
        active=shown.get("ActiveState", ""),
        sub=shown.get("SubState", ""),
        result=shown.get("Result", ""),
        job=number("Job") > 0,
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


_UNITS = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
    "month": 2629800.0,
    "y": 31557600.0,
}


def seconds(text: str) -> float:
    """A span of time as systemd prints it. ``infinity`` and what is no span is 0.

    >>> seconds("1min 30s"), seconds("100ms"), seconds("infinity")
    (90.0, 0.1, 0.0)
    """
    total = 0.0
    for word in text.split():
        digits = word.rstrip("abcdefghijklmnopqrstuvwxyz")
        try:
            total += float(digits) * _UNITS[word[len(digits) :]]
        except (ValueError, KeyError):
            return 0.0
    return total


def span(length: float) -> str:
    """A span of time for people.

    >>> span(0.1), span(90), span(1800), span(7260)
    ('0.1 s', '90 s', '30 min', '2 h 1 min')
    """
    if length < 120:  # noqa: PLR2004 - up to two minutes
        return f"{length:.3g} s"
    minutes = round(length / 60)
    if minutes < 120:  # noqa: PLR2004 - up to two hours
        return f"{minutes} min"
    return f"{minutes // 60} h" + (f" {minutes % 60} min" if minutes % 60 else "")
