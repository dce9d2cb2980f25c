"""How fast a service is: measured once for each start, held against the start before."""

import json
from itertools import pairwise

from pyinfra.api import operation

from facts.actual import Actual
from facts.query import Query
from inventory.base import Unknown
from inventory.common.throughput import ThroughputRequest
from inventory.service import Service
from operations.difference import Difference, differing
from operations.steps import Commands, Step, converge, guarded
from operations.tools import run_module

RULE = "throughput"
"""The word of ``--data accept=`` that takes slower figures as the new measure."""

TOKENIZER_FLAGS = frozenset({"--tokenizer-mode", "--tokenizer"})
"""Flags of the engine that the benchmark's own tokenizer needs too."""


def throughput_differences(service: Service, actual: Actual) -> tuple[Difference, ...]:
    """Whether this start was measured under the declared load, and not found slower."""
    if service.throughput is None:
        return ()
    resource = f"service {service.name}"
    unit = actual.unit(service.unit)
    if isinstance(unit, Unknown) or not unit.is_ready:
        return differing(resource, [("throughput", "measured", "known after the start")])
    if unit.measured_invocation != unit.invocation:
        have = "this start was never measured and found good"
    elif unit.measured_load != service.throughput.digest:
        have = "measured under another load"
    else:
        return ()
    return differing(resource, [("throughput", "measured", have)])


def throughput_request(service: Service, folder: str, accepted: bool) -> ThroughputRequest:
    """What operations/remote/throughput/measure.py is asked.

    + folder: of the snapshot, for the tokenizer
    + accepted: whether slower figures are taken as they are
    + raises: ValueError for a service without ``throughput``
    """
    want, engine = service.throughput, service.engine
    if want is None:
        raise ValueError(f"{service.name} declares no throughput")
    more = ["--trust-remote-code"] if engine.trust_remote_code else []
    tokenizer = folder
    words = [part for word in engine.extra_args for part in word.split("=", 1)]
    for flag, value in pairwise(words):
        if flag == "--tokenizer":
            tokenizer = value
        elif flag in TOKENIZER_FLAGS:
            more += [flag, value]
    return ThroughputRequest(
        unit=service.unit,
        url=service.listen.url,
        model=service.served_model_name,
        python=f"{engine.environment_folder}/bin/python",
        version=engine.version,
        user=service.user,
        tokenizer=tokenizer,
        more=tuple(more),
        rungs=want.rungs,
        load=want.load,
        digest=want.digest,
        regression=want.regression,
        timeout=want.timeout_seconds,
        accept=accepted,
    )


@operation()
@guarded
def throughput(service: Service, query: Query, folder: str, accepted: bool = False) -> Commands:
    """
    Measure a service that is ready, record the figures, and fail where it became slower.

    A start that was found slower counts as not measured: each run measures it again and fails
    again, until the figures are good or accepted.

    + folder: of the snapshot, for the tokenizer
    + accepted: take slower figures as the measure from now on
    """
    yield from converge(
        query,
        lambda actual: throughput_differences(service, actual),
        lambda _: _measuring(service, throughput_request(service, folder, accepted)),
        unchanged=f"the throughput of {service.name} is measured",
        look=f"systemctl status {service.unit} on the box: it was started anew since",
    )


def _measuring(service: Service, request: ThroughputRequest) -> Step:
    return Step(
        f"exec {run_module('throughput.measure')}",
        stdin=json.dumps(request.to_json()),
        stream=True,
        wanted=f"{service.name} no more than {request.regression:.0%} slower than its last good "
        "start",
        why="the service goes on serving, slower than it did or unmeasured; its switch is done",
        next_step="look at what changed between the two starts, named above; run again to measure "
        f"again; --data accept={RULE} takes the new figures as the measure from now on",
    )
