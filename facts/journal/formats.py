"""One line of ``journalctl``, in any of its output formats.

Understood: short, short-precise, short-iso, short-iso-precise, short-full, short-unix,
short-monotonic, with-unit, json and cat, and ``dmesg`` with either kind of time. A line that
has no known head is text as it stands.
"""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_BYTES = range(256)
_YEAR_UNKNOWN = 2024
"""For formats without a year: a leap year, so that every date exists."""

_ISO = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)(Z|[+-]\d\d:?\d\d)? (?P<rest>\S.*)"
)
_FULL = re.compile(
    r"[A-Z][a-z]{2} (\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d{1,9})?) \S+ (?P<rest>\S.*)"
)
_SHORT = re.compile(r"([A-Z][a-z]{2}) +(\d{1,2}) (\d\d):(\d\d):(\d\d(?:\.\d{1,9})?) (?P<rest>\S.*)")
_UNIX = re.compile(r"(\d{9,11}\.\d{6}) (?P<rest>\S.*)")
_MONOTONIC = re.compile(r"\[ *\d+\.\d{6}\] (?P<rest>\S.*)")
_DMESG_TIME = re.compile(
    r"\[[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d{1,2}) (\d\d):(\d\d):(\d\d) (\d{4})\] (?P<rest>\S.*)"
)
_HEAD = re.compile(r"\S+ (?P<ident>[^\s:\[\]]{1,80})(?:\[(?P<pid>\d{1,10})\])?: ?(?P<text>.*)")
_JSON_IDENT = ("SYSLOG_IDENTIFIER", "_COMM")
_JSON_PID = ("_PID", "SYSLOG_PID")
_JSON_INVOCATION = ("_SYSTEMD_INVOCATION_ID", "INVOCATION_ID")


class Entry(NamedTuple):
    """One entry of the journal, before anything is known about who wrote it.

    + time: seconds since the epoch; None where the format does not say
    + ident: the syslog identifier, e.g. ``systemd``, ``kernel``, ``vllm``; empty where unknown
    + pid: of the writer
    + text: the message
    + invocation: the unit's start it belongs to, where the format says so
    """

    time: float | None
    ident: str
    pid: int | None
    text: str
    invocation: str = ""


def entry(line: str) -> Entry | None:
    """The entry that a line holds, or None for a line without a known head.

    >>> found = entry("2026-11-24T21:03:20+0000 box vllm[7]: (APIServer pid=7) INFO up")
    >>> found.ident, found.pid, found.text
    ('vllm', 7, '(APIServer pid=7) INFO up')
    >>> entry("no head") is None
    True
    """
    if line.startswith("{"):
        return _json(line)
    for pattern, seconds in _TIMED:
        match = pattern.fullmatch(line)
        if match is None:
            continue
        try:
            time = seconds(match)
        except (ValueError, OverflowError):
            return None
        head = _HEAD.fullmatch(match["rest"])
        if head is None:
            # dmesg has neither a host nor an identifier: its own colon belongs to the text.
            own = pattern in {_MONOTONIC, _DMESG_TIME}
            return Entry(time, "kernel", None, match["rest"]) if own else None
        ident = head["ident"]
        if pattern is _DMESG_TIME:
            return Entry(time, "kernel", None, match["rest"])
        pid = int(head["pid"]) if head["pid"] else None
        return Entry(time, ident, pid, head["text"])
    return None


def _iso(match: re.Match[str]) -> float:
    zone = match[2] or "+00:00"
    return datetime.fromisoformat(match[1].replace(",", ".") + zone).timestamp()


def _full(match: re.Match[str]) -> float:
    return datetime.fromisoformat(f"{match[1]}T{match[2]}+00:00").timestamp()


def _short(match: re.Match[str]) -> float:
    return _calendar(_YEAR_UNKNOWN, match[1], match[2], match[3], match[4], match[5])


def _dmesg(match: re.Match[str]) -> float:
    return _calendar(int(match[6]), match[1], match[2], match[3], match[4], match[5])


def _calendar(year: int, month: str, day: str, hour: str, minute: str, second: str) -> float:
    if month not in _MONTHS:
        raise ValueError(month)
    start = datetime(year, _MONTHS.index(month) + 1, int(day), int(hour), int(minute), tzinfo=UTC)
    return start.timestamp() + float(second)


_TIMED: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], float | None]], ...] = (
    (_ISO, _iso),
    (_SHORT, _short),
    (_FULL, _full),
    (_UNIX, lambda match: float(match[1])),
    (_DMESG_TIME, _dmesg),
    (_MONOTONIC, lambda _match: None),
)


def _json(line: str) -> Entry | None:
    """An entry of ``journalctl -o json``. A message that is not UTF-8 is a list of bytes."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict) or "MESSAGE" not in fields:
        return None
    message = fields["MESSAGE"]
    if isinstance(message, list):
        codes = [code for code in message if isinstance(code, int) and code in _BYTES]
        message = bytes(codes).decode("utf-8", "replace")
    try:
        time = int(fields.get("__REALTIME_TIMESTAMP", "")) / 1e6
    except (ValueError, TypeError, OverflowError):
        time = None
    kernel = fields.get("_TRANSPORT") == "kernel"
    return Entry(
        time=time,
        ident="kernel" if kernel else _first(fields, _JSON_IDENT),
        pid=_number(_first(fields, _JSON_PID)),
        text="" if message is None else str(message),
        invocation=_first(fields, _JSON_INVOCATION),
    )


def _first(fields: dict[str, object], names: tuple[str, ...]) -> str:
    return next((str(fields[name]) for name in names if isinstance(fields.get(name), str)), "")


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,10}", text) else None
