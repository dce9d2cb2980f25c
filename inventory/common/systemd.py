"""systemd's words: the blocks that ``systemctl show`` prints, and what stands in them."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

STOPPED = frozenset({"inactive", "failed"})
"""Active states in which no process runs and none is about to: auto-restart is ``activating``."""

_SECONDS = {
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


def properties(block: str) -> dict[str, str]:
    """One unit's properties: the lines ``Key=Value``. Other lines are passed over.

    >>> properties("Id=a.service\\nExecStart=/bin/a --b=c")
    {'Id': 'a.service', 'ExecStart': '/bin/a --b=c'}
    """
    return dict(line.split("=", 1) for line in block.splitlines() if "=" in line)


def blocks(shown: str) -> list[dict[str, str]]:
    """The properties of several units, which blank lines separate."""
    return [properties(block) for block in re.split(r"\n\s*\n", shown)]


def has_job(shown: Mapping[str, str]) -> bool:
    """Whether a start or stop is queued or under way."""
    return shown.get("Job", "") not in {"", "0"}


def moment(text: str) -> float | None:
    """A time as ``--timestamp=us+utc`` prints it, in seconds since the epoch; None for others.

    >>> moment("Mon 2026-11-30 10:28:18.123456 UTC"), moment("n/a")
    (1796034498.123456, None)
    """
    match = re.fullmatch(r"\w+ (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?) UTC", text.strip())
    if match is None:
        return None
    try:
        return datetime.fromisoformat(match.group(1)).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def seconds(text: str) -> float:
    """A span of time as systemd prints it. 0 for ``infinity`` and for other text.

    >>> seconds("1min 30s"), seconds("100ms"), seconds("infinity")
    (90.0, 0.1, 0.0)
    """
    total = 0.0
    for word in text.split():
        digits = word.rstrip("abcdefghijklmnopqrstuvwxyz")
        try:
            total += float(digits) * _SECONDS[word[len(digits) :]]
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
