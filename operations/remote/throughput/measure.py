"""Measure a service that is ready, keep the figures in its record, and compare.

Runs on the box as root, standard library only, by hand too::

    python -m operations.remote.throughput.measure < request.json

The request: ``unit``, ``python`` (of the engine's environment), ``user``, ``load`` (see
:class:`~.tool.Load`), ``digest`` (of the load), ``version`` (of the engine), ``regression``,
``timeout`` (seconds) and ``accept`` (take the figures as they are). Exit status 0 where the start
counts as measured; 1 with one sentence a rung where it became slower, or could not be measured.
The service is never touched.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inventory.common.files import write_whole as write
from operations.remote import http
from operations.remote.switch.record import STATE, amend, entries
from operations.remote.systemctl import show
from operations.remote.throughput.compare import baseline, changes, compared, slower
from operations.remote.throughput.rung import Rung, streams
from operations.remote.throughput.tool import Load, ToolError, climb

LOCK = Path("/run/lock/boxwright-throughput.lock")
METRICS_SECONDS, METRICS_BYTES = 5, 1 << 22
COUNTS = ("vllm:num_requests_running", "vllm:num_requests_waiting")


@dataclass(frozen=True)
class Request:
    """One measurement."""

    unit: str
    python: str
    user: str | None
    load: Load
    digest: str
    version: str
    regression: float
    timeout: float
    accept: bool


def read_request(plain: Mapping[str, Any]) -> Request:
    """The request, from JSON.

    + raises: KeyError, TypeError, ValueError for a request of another version
    """
    load = dict(plain["load"])
    for name in ("rungs", "more"):
        load[name] = tuple(load[name])
    return Request(**{**plain, "load": Load(**load)})


def requests_in_flight(metrics: str) -> int:
    """Requests that an engine works on or has waiting, by its metrics.

    >>> requests_in_flight('vllm:num_requests_running{engine="0"} 2.0\\n# HELP x')
    2
    """
    found = 0.0
    for line in metrics.splitlines():
        name, _, value = line.rpartition(" ")
        if name.partition("{")[0] in COUNTS:
            try:
                found += max(0.0, float(value))
            except ValueError:
                continue
    return int(min(found, 1e9))


def measure(request: Request, root: Path = STATE) -> int:
    """Measure, record and compare.

    + root: boxwright's folder
    + returns: exit status
    """
    place = root / "measured" / request.unit
    invocation = show(request.unit, "InvocationID").get("InvocationID", "")
    if not invocation:
        return _fail(f"{request.unit} does not run")
    mark = f"{invocation} {request.digest}"
    if place.exists() and place.read_text().strip() == mark and not request.accept:
        print("throughput: this start was measured by another run")
        return 0
    others = _others(request.load.url)
    if others:
        print(f"throughput: {others} requests of others are under way: measured beside them")
    rungs: list[Rung] = []
    now = int(time.time())
    try:
        climbing = climb(
            request.python, request.load, user=request.user, seconds=request.timeout, seed=now
        )
        # Closed with us: a lost connection ends the benchmark at the next line that is printed.
        with closing(climbing):
            for rung in climbing:
                print(f"throughput: {rung.line}", flush=True)
                rungs.append(rung)
    except ToolError as error:
        return _fail(str(error))
    if show(request.unit, "InvocationID").get("InvocationID", "") != invocation:
        return _fail(f"{request.unit} was started anew during the measurement: see its journal")
    return keep_and_compare(request, rungs, now, others, invocation, root)


def keep_and_compare(
    request: Request, rungs: Sequence[Rung], now: int, others: int, invocation: str, root: Path
) -> int:
    """Record the figures and hold them against those before.

    + now: when they were measured, seconds since the epoch
    + others: requests that ran beside them
    + invocation: of the start that was measured
    + root: boxwright's folder
    + returns: exit status
    """
    load = request.load
    about = {
        "input_tokens": load.input_tokens,
        "output_tokens": load.output_tokens,
        "requests": load.requests,
    }
    known = entries(request.unit, root)
    before = baseline(known, invocation, about)
    worse = slower(rungs, before, request.regression) if before else ()
    accepted = not worse or request.accept
    measured = {
        "measured": now,
        "tool": f"vllm bench serve {request.version}",
        "load": about,
        "rungs": [rung.to_json() for rung in rungs],
        "others": others,
        "accepted": accepted,
    }
    if not amend(request.unit, invocation, {"throughput": measured}, root):
        print("throughput: this start has no record: the figures are kept nowhere else")
    if accepted:
        write(root / "measured" / request.unit, f"{invocation} {request.digest}\n")
    if before is None:
        print("throughput: no earlier start was measured under this load: this one is the measure")
        return 0
    if not worse:
        both = ", ".join(map(streams, compared(rungs, before))) or "no rung"
        print(f"throughput: not slower than before at {both}")
        return 0
    mine = next((entry for entry in known if entry.get("invocation") == invocation), None)
    since = "; ".join(changes(mine, before)) or "nothing that is recorded"
    for sentence in worse:
        print(f"slower: {sentence}")
    print(f"slower: what changed between the two: {since}")
    if request.accept:
        print("throughput: accepted: the next start is held to these figures")
        return 0
    return 1


def _others(url: str) -> int:
    """Requests of others, where the engine tells."""
    _, text = http.get(f"{url}/metrics", METRICS_SECONDS, METRICS_BYTES)
    return requests_in_flight(text.decode(errors="replace"))


def _fail(sentence: str) -> int:
    print(f"not measured: {sentence}", flush=True)
    return 1


@contextmanager
def _alone() -> Iterator[None]:
    """One measurement at a time on this box: two would measure each other."""
    with LOCK.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("throughput: another run measures: waiting for it", flush=True)
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Read the request and measure."""
    request = read_request(json.load(sys.stdin))
    if os.geteuid() != 0:
        return _fail("root is needed: to run as the service's user, and to keep the record")
    with _alone():
        return measure(request)


if __name__ == "__main__":
    sys.exit(main())
