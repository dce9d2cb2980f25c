"""Ready means: this very start was seen to answer with the declared name, and to chat."""

from __future__ import annotations

from facts.actual import Actual
from inventory.base import Unknown
from inventory.common.models import REFUSED
from inventory.service import Service
from operations.difference import Difference, differing


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
    refused = answer.status in REFUSED
    return differing(
        resource, [] if ours or refused else [("model", service.served_model_name, names)]
    )
