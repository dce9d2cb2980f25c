"""Two measurements of one service beside each other: what became slower, and what else changed.

Pure.
"""

import time
from collections.abc import Iterable, Sequence

from inventory.common.record import StartRecord
from inventory.common.throughput import Load, Measurement, streams


def baseline(
    starts: Iterable[StartRecord], invocation: str, load: Load
) -> tuple[StartRecord, Measurement] | None:
    """What to compare with: the latest start that was measured under the same load, and was not
    found too slow. A regression that nobody accepted is never what the next one is held to.

    + starts: of the service, in any order
    + invocation: of the start that is measured now
    """
    fit = [
        (start, measured)
        for start in starts
        if start.invocation != invocation
        and (measured := start.throughput) is not None
        and measured.accepted
        and measured.load == load
        and any(measured.rates.values())
    ]
    return max(fit, key=lambda one: one[1].measured, default=None)


def slower(now: Measurement, before: Measurement, regression: float) -> tuple[str, ...]:
    """Rungs whose output tokens per second fell by more than a share.

    + regression: the share, 0.15 for 15 %
    + returns: one sentence each: now, before, when, ratio
    """
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(before.measured))
    found = []
    for count in compared(now, before):
        had, has = before.rates[count], now.rates[count]
        if has < had * (1 - regression):
            found.append(
                f"{streams(count)}: {has:.1f} tok/s now, {had:.1f} tok/s on {when}: "
                f"{has / had:.2f} of it, at least {1 - regression:.2f} is expected"
            )
    return tuple(found)


def compared(now: Measurement, before: Measurement) -> tuple[int, ...]:
    """Streams of those rungs that both have."""
    return tuple(count for count in now.rates if before.rates.get(count))


def changes(now: StartRecord | None, before: StartRecord) -> tuple[str, ...]:
    """What else differs between two recorded starts: engine, commit, arguments, driver, kernel.

    + now: the record of this start; None without one
    """
    if now is None:
        return ("this start has no record to compare",)
    found = [
        f"{what} {_shown(new)} instead of {_shown(old)}"
        for what, new, old in (
            ("engine", now.engine.version, before.engine.version),
            ("commit", now.commit, before.commit),
            ("driver", now.host.driver, before.host.driver),
            ("kernel", now.host.kernel, before.host.kernel),
        )
        if new != old
    ]
    here, there = _flags(now.argv), _flags(before.argv)
    found += [
        f"{flag} {here.get(flag, 'absent')} instead of {there.get(flag, 'absent')}"
        for flag in sorted(here.keys() | there.keys())
        if here.get(flag) != there.get(flag)
    ]
    if now.placement.gpus != before.placement.gpus:
        found.append("other GPUs")
    if now.environment != before.environment:
        found.append("other environment variables")
    return tuple(found)


def _shown(value: str | None) -> str:
    return value[:40] if value else "unknown"


def _flags(argv: Sequence[str]) -> dict[str, str]:
    """Flag -> its values, of a command line.

    >>> _flags(["vllm", "serve", "/m", "--max-num-seqs", "256", "--trust-remote-code"])
    {'vllm': 'serve /m', '--max-num-seqs': '256', '--trust-remote-code': 'set'}
    """
    groups: list[list[str]] = []
    for word in argv:
        # A value may be a negative number.
        if not groups or (word.startswith("--") and len(word) > 2):  # noqa: PLR2004
            flag, equals, value = word.partition("=")
            groups.append([flag, value] if equals else [word])
        else:
            groups[-1].append(word)
    return {group[0]: " ".join(group[1:]) or "set" for group in groups}
