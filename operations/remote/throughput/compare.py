"""Two measurements of one service beside each other: what became slower, and what else changed.

Pure. A measurement is the ``throughput`` of a record: :mod:`operations.remote.throughput.measure`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from operations.remote.throughput.rung import Rung, streams

RATE = "output_tokens_per_second"


def baseline(
    entries: Iterable[Mapping[str, Any]], invocation: str, load: Mapping[str, int]
) -> Mapping[str, Any] | None:
    """The record to compare with: the latest start that was measured under the same load, and was
    not found too slow. A regression that nobody accepted is never what the next one is held to.

    + entries: records of the service, in any order
    + invocation: of the start that is measured now
    + load: tokens and requests
    """
    fit = [
        entry
        for entry in entries
        if entry.get("invocation") != invocation and _is_measure(entry.get("throughput"), load)
    ]
    return max(fit, key=_when, default=None)


def slower(now: Sequence[Rung], before: Mapping[str, Any], regression: float) -> tuple[str, ...]:
    """Rungs whose output tokens per second fell by more than a share.

    + now: what was measured
    + before: the record to compare with
    + regression: the share, 0.15 for 15 %
    + returns: one sentence each: now, before, when, ratio
    """
    rates = _rates(before["throughput"])
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(_when(before)))
    found = []
    for rung in now:
        had, has = rates.get(rung.concurrency), rung.output_tokens_per_second
        if had and has < had * (1 - regression):
            found.append(
                f"{streams(rung.concurrency)}: {has:.1f} tok/s now, {had:.1f} tok/s on {when}: "
                f"{has / had:.2f} of it, at least {1 - regression:.2f} is expected"
            )
    return tuple(found)


def compared(now: Sequence[Rung], before: Mapping[str, Any]) -> tuple[int, ...]:
    """Concurrency of those rungs that both have."""
    rates = _rates(before["throughput"])
    return tuple(rung.concurrency for rung in now if rates.get(rung.concurrency))


def changes(now: Mapping[str, Any] | None, before: Mapping[str, Any]) -> tuple[str, ...]:
    """What else differs between two recorded starts: engine, commit, arguments, driver, kernel.

    + now: the record of this start; None where there is none
    """
    if now is None:
        return ("this start has no record to compare",)
    found = [
        f"{what} {_shown(new)} instead of {_shown(old)}"
        for what, *path in (
            ("engine", "engine", "version"),
            ("commit", "commit"),
            ("driver", "host", "driver"),
            ("kernel", "host", "kernel"),
        )
        if (new := _at(now, path)) != (old := _at(before, path))
    ]
    here, there = _flags(now.get("argv")), _flags(before.get("argv"))
    found += [
        f"{flag} {here.get(flag, 'absent')} instead of {there.get(flag, 'absent')}"
        for flag in sorted(here.keys() | there.keys())
        if here.get(flag) != there.get(flag)
    ]
    gpus = [_at(entry, ("placement", "gpus")) for entry in (now, before)]
    if gpus[0] != gpus[1]:
        found.append("other GPUs")
    names = [entry.get("environment") for entry in (now, before)]
    if names[0] != names[1]:
        found.append("other environment variables")
    return tuple(found)


def _is_measure(value: Any, load: Mapping[str, int]) -> bool:
    return (
        isinstance(value, Mapping)
        and value.get("accepted") is True
        and value.get("load") == load
        and bool(_rates(value))
    )


def _rates(measure: Mapping[str, Any]) -> dict[int, float]:
    """Streams -> output tokens per second."""
    rungs = measure.get("rungs")
    found = {}
    for rung in rungs if isinstance(rungs, list) else []:
        if not isinstance(rung, Mapping):
            continue
        count, rate = rung.get("concurrency"), rung.get(RATE)
        if isinstance(count, int) and isinstance(rate, (int, float)) and 0 < rate < 1e12:  # noqa: PLR2004
            found[count] = float(rate)
    return found


def _when(entry: Mapping[str, Any]) -> float:
    when = entry["throughput"].get("measured")
    plain = isinstance(when, (int, float)) and 0 <= when < 1e11  # noqa: PLR2004
    return float(when) if plain else 0.0


def _at(entry: Mapping[str, Any], path: Sequence[str]) -> Any:
    value: Any = entry
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _shown(value: Any) -> str:
    return "unknown" if value is None else str(value)[:40]


def _flags(argv: Any) -> dict[str, str]:
    """Flag -> its values, of a command line.

    >>> _flags(["vllm", "serve", "/m", "--max-num-seqs", "256", "--trust-remote-code"])
    {'vllm': 'serve /m', '--max-num-seqs': '256', '--trust-remote-code': 'set'}
    """
    words = [str(word) for word in argv] if isinstance(argv, list) else []
    groups: list[list[str]] = []
    for word in words:
        # A value may be a negative number.
        if not groups or (word.startswith("--") and len(word) > 2):  # noqa: PLR2004
            flag, equals, value = word.partition("=")
            groups.append([flag, value] if equals else [word])
        else:
            groups[-1].append(word)
    return {group[0]: " ".join(group[1:]) or "set" for group in groups}
