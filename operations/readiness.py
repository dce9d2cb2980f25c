"""Ready means: this very start was seen to answer with the declared name, and to chat."""

from __future__ import annotations

import shlex

from pyinfra import host
from pyinfra.api import Host, operation
from pyinfra.connectors.util import CommandOutput

from facts.actual import Actual
from facts.box import actual_state
from facts.privilege import as_root
from facts.query import READY_FOLDER, Query
from inventory.base import Unknown
from inventory.errors import BoxwrightError, ConvergeError
from inventory.service import Service
from operations.difference import Difference, differing
from operations.steps import Commands, Step, guarded, settled, show
from operations.tools import run_module

JOURNAL_LINES = 4000
"""Several failing starts of an engine with eight workers."""

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


class WatchedStep(Step):
    """A step that the engine's own journal explains when it fails.

    + unit: of the service, with its ending
    + max_num_seqs: the largest that fits, where the fit knows it
    """

    def __init__(
        self, script: str, *, unit: str, max_num_seqs: int | None, wanted: str, next_step: str
    ) -> None:
        super().__init__(
            script,
            stream=True,
            wanted=wanted,
            why="nothing is serving on this box until the cause is removed",
            next_step=next_step,
        )
        self.unit = unit
        self.max_num_seqs = max_num_seqs

    def failure(self, host: Host, output: CommandOutput) -> BoxwrightError:
        """The cause, as the journal of this boot's last starts tells it."""
        # Only a failure needs it, and its rules take a moment to load.
        from operations.diagnosis import Facts, from_text  # noqa: PLC0415

        journal = self._read(host, f"-u {shlex.quote(self.unit)}")
        kernel = self._read(host, "-k --since -30min")
        diagnosis = from_text(journal, kernel, Facts(max_num_seqs=self.max_num_seqs))
        if diagnosis is None:
            return super().failure(host, output)
        return ConvergeError(
            self.wanted, diagnosis.found, f"{diagnosis.why}; {self.why}", diagnosis.next_step
        )

    @staticmethod
    def _read(host: Host, arguments: str) -> str:
        command = f"journalctl -b -o short-iso-precise --no-pager -n {JOURNAL_LINES} {arguments}"
        _, output = host.run_shell_command(as_root(f"LC_ALL=C.UTF-8 {command}"))
        return output.stdout


@operation()
@guarded
def readiness(service: Service, query: Query, max_num_seqs: int | None = None) -> Commands:
    """
    Wait on the box until a service answers, or until it is certain that it will not; then chat.

    + service: the service
    + query: what this run reads of the box
    + max_num_seqs: the largest that fits, for the remedy of a sampler that ran out of memory
    """
    differences = readiness_differences(service, actual_state(host, query))
    show(host, differences)
    if not differences:
        host.noop(f"{service.name} answers")
        return
    unit, url, model = service.unit, service.listen.url, service.served_model_name
    patience = str(service.load_time * PATIENCE)
    wait = run_module(
        "switch.wait", "--unit", unit, "--url", url, "--model", model, "--timeout", patience
    )
    yield WatchedStep(
        f"exec {wait}",
        unit=unit,
        max_num_seqs=max_num_seqs,
        wanted=f"{service.name} answering at {url}",
        next_step=f"the journal lines above hold the cause (the first error counts, later ones "
        f"echo it); journalctl -u {unit} on the box has all of them",
    )
    yield WatchedStep(
        f"{run_module('switch.smoke', '--url', url, '--model', model)} && {_note(unit)}",
        unit=unit,
        max_num_seqs=max_num_seqs,
        wanted=f"one chat completion from {service.name}",
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
