"""Ready means: this very start was seen to answer with the declared name, and to chat."""

from __future__ import annotations

import shlex

from pyinfra import host
from pyinfra.api import operation

from facts.actual import Actual
from facts.box import actual_state
from facts.query import READY_FOLDER, Query
from inventory.base import Unknown
from inventory.service import Service
from operations.difference import Difference, differing
from operations.steps import Commands, Step, guarded, settled, show
from operations.tools import run_tool

PATIENCE = 2
"""Times the expected load time before silence counts as a failure."""


def readiness_differences(service: Service, actual: Actual) -> tuple[Difference, ...]:
    """Whether the service is ready, as far as one read can tell.

    The waiter noted which start answered. A later start, or an endpoint that has stopped
    answering since, is not that one.

    + service: what should answer
    + actual: the box
    """
    resource = f"service {service.name}"
    unit = actual.unit(service.unit)
    if isinstance(unit, Unknown) or not unit.is_running:
        return differing(resource, [("readiness", "answers", "known after the start")])
    if not unit.is_ready:
        return differing(
            resource, [("readiness", "answers", "this start was never seen to answer")]
        )
    answer = actual.answer
    if isinstance(answer.status, Unknown):
        return ()
    if answer.status is None:
        return differing(resource, [("readiness", "answers", "nothing answers")])
    names = ", ".join(answer.models) or f"HTTP {answer.status}"
    ours = service.served_model_name in answer.models
    # With an API key the list of models is refused, which is an answer of a living server.
    refused = answer.status in {401, 403}
    return differing(
        resource, [] if ours or refused else [("model", service.served_model_name, names)]
    )


@operation()
@guarded
def readiness(service: Service, query: Query) -> Commands:
    """
    Wait on the box until a service answers, or until it is certain that it will not; then chat.

    + service: the service
    + query: what this run reads of the box
    """
    differences = readiness_differences(service, actual_state(host, query))
    show(host, differences)
    if not differences:
        host.noop(f"{service.name} answers")
        return
    unit, url, model = service.unit, service.listen.url, service.served_model_name
    patience = str(service.load_time * PATIENCE)
    wait = run_tool(
        "wait.py", "--unit", unit, "--url", url, "--model", model, "--timeout", patience
    )
    yield Step(
        f"exec {wait}",
        stream=True,
        wanted=f"{service.name} answering at {url}",
        why="nothing is serving on this box until the cause is removed",
        next_step=f"the journal lines above hold the cause (the first error counts, later ones "
        f"echo it); journalctl -u {unit} on the box has all of them",
    )
    yield Step(
        f"{run_tool('chat.py', '--url', url, '--model', model)} && {_note(unit)}",
        stream=True,
        wanted=f"one chat completion from {service.name}",
        why="a server can say that it is healthy and fail at its first request",
        next_step=f"journalctl -u {unit} on the box; if the engine died, the unit is restarting it",
    )
    settled(
        readiness_differences(service, actual_state(host, query)),
        f"systemctl status {unit} on the box: it answered and was restarted since",
    )


def _note(unit: str) -> str:
    """The commands that record which start was seen to answer, atomically."""
    path = shlex.quote(f"{READY_FOLDER}/{unit}")
    return (
        f"i=$(systemctl show --value -p InvocationID -- {shlex.quote(unit)}) && "
        f"printf '%s\\n' \"$i\" >{path}.new && mv -fT -- {path}.new {path}"
    )
