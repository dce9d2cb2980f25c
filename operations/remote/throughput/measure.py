"""Measure a service that is ready, keep the figures in its record, and compare.

Runs on the box as root, standard library only, by hand too::

    python -m operations.remote.throughput.measure < request.json

The request is a :class:`~inventory.common.throughput.ThroughputRequest`. Exit status 0 where the
start counts as measured; 1 with one sentence a rung where it became slower, or could not be
measured. The service is never touched.
"""

import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from inventory.common import paths
from inventory.common.files import write_whole
from inventory.common.throughput import Measurement, Rung, ThroughputRequest, streams
from operations.remote import http
from operations.remote.switch.record import RECORDS, amend, starts
from operations.remote.systemctl import show
from operations.remote.throughput.compare import baseline, changes, compared, slower
from operations.remote.throughput.tool import ToolError, climb

MARKS = Path(paths.MEASURED)
LOCK = Path("/run/lock/boxwright-throughput.lock")
METRICS_SECONDS, METRICS_BYTES = 5, 1 << 22
COUNTS = ("vllm:num_requests_running", "vllm:num_requests_waiting")


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


def measure(request: ThroughputRequest) -> int:
    """Measure, record and compare.

    + returns: exit status
    """
    place = MARKS / request.unit
    invocation = show(request.unit, "InvocationID").get("InvocationID", "")
    if not invocation:
        return _fail(f"{request.unit} does not run")
    mark = f"{invocation} {request.digest}"
    if place.exists() and place.read_text().strip() == mark and not request.accept:
        print("throughput: this start was measured by another run")
        return 0
    others = _others(request.url)
    if others:
        print(f"throughput: {others} requests of others are under way: measured beside them")
    rungs: list[Rung] = []
    now = int(time.time())
    try:
        # Closed with us: a lost connection ends the benchmark at the next line that is printed.
        with closing(climb(request, seed=now)) as climbing:
            for rung in climbing:
                print(f"throughput: {rung.line}", flush=True)
                rungs.append(rung)
    except ToolError as error:
        return _fail(str(error))
    if show(request.unit, "InvocationID").get("InvocationID", "") != invocation:
        return _fail(f"{request.unit} was started anew during the measurement: see its journal")
    measured = Measurement(
        measured=now,
        tool=f"vllm bench serve {request.version}",
        load=request.load,
        rungs=tuple(rungs),
        others=others,
    )
    return keep_and_compare(request, measured, invocation)


def keep_and_compare(
    request: ThroughputRequest,
    now: Measurement,
    invocation: str,
    records: Path = RECORDS,
    marks: Path = MARKS,
) -> int:
    """Record the figures and hold them against those before.

    + invocation: of the start that was measured
    + records, marks: folders of the records, and of what counts as measured
    + returns: exit status
    """
    known = starts(request.unit, records)
    before = baseline(known, invocation, now.load)
    worse = slower(now, before[1], request.regression) if before else ()
    now = replace(now, accepted=not worse or request.accept)
    mine = amend(request.unit, invocation, now, records)
    if mine is None:
        print("throughput: this start has no record: the figures are kept nowhere else")
    if now.accepted:
        write_whole(marks / request.unit, f"{invocation} {request.digest}\n")
    if before is None:
        print("throughput: no earlier start was measured under this load: this one is the measure")
        return 0
    if not worse:
        both = ", ".join(map(streams, compared(now, before[1]))) or "no rung"
        print(f"throughput: not slower than before at {both}")
        return 0
    since = "; ".join(changes(mine, before[0])) or "nothing that is recorded"
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
    request = ThroughputRequest.from_json(json.load(sys.stdin))
    if os.geteuid() != 0:
        return _fail("root is needed: to run as the service's user, and to keep the record")
    with _alone():
        return measure(request)


if __name__ == "__main__":
    sys.exit(main())
