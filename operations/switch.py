"""From the service that serves to the one that should: one program on the box, one outcome."""

import json
import shlex
from collections.abc import Mapping, Sequence

from pyinfra import host
from pyinfra.api import Host, State, operation
from pyinfra.api.arguments import ConnectorArguments
from pyinfra.connectors.util import CommandOutput

from facts.actual import Actual
from facts.box import actual_state
from facts.privilege import as_root
from facts.query import Query
from inventory.common.paths import OUTCOME
from inventory.common.switch import DONE, GPU_HELD, UNFINISHED, SwitchOutcome, SwitchRequest
from inventory.errors import BoxwrightError, ConvergeError
from inventory.placement import Chosen
from inventory.service import Service
from inventory.snapshot import LocalSnapshot
from operations.difference import Difference
from operations.report import adds
from operations.service import (
    old_service_differences,
    readiness_differences,
    require_port,
    service_differences,
)
from operations.steps import Commands, Step, guarded, settled, show
from operations.tools import run_module

JOURNAL_LINES = 4000
"""A failing start of an engine with eight workers, and then some."""


def switch_differences(
    service: Service, replaces: Sequence[Service], actual: Actual
) -> tuple[Difference, ...]:
    """What is left to do until the service serves, and alone.

    + service: what should serve
    + replaces: the old services
    + actual: the box
    """
    return (
        *(
            difference
            for old in replaces
            for difference in old_service_differences(old.unit, actual.unit(old.unit))
        ),
        *service_differences(service.unit, actual.unit(service.unit)),
        *readiness_differences(service, actual),
    )


class SwitchStep(Step):
    """The switch as one command, whose failure the engine's own journal explains.

    + fits_max_num_seqs: the largest that fits, where the fit knows it
    + environment: of the new unit
    """

    def __init__(
        self,
        request: SwitchRequest,
        fits_max_num_seqs: int | None,
        environment: Mapping[str, str],
    ) -> None:
        new = request.new
        super().__init__(
            f"exec {run_module('switch.start')}",
            stdin=json.dumps(request.to_json()),
            stream=True,
            wanted=f"{new.unit} answering at {new.url}",
            why="nothing is serving on this box until the cause is removed",
            next_step=f"the journal lines above hold the cause (the first error counts, later ones "
            f"echo it); journalctl -u {new.unit} on the box has all of them",
        )
        self.gpus = len(request.gpus)
        self.fits_max_num_seqs = fits_max_num_seqs
        self.environment = dict(environment)
        self.outcome: SwitchOutcome | None = None

    def execute(
        self, state: State, host: Host, connector_arguments: ConnectorArguments
    ) -> tuple[bool, CommandOutput]:
        """Switch, and take the outcome into the report of the run."""
        ok, output = super().execute(state, host, connector_arguments)
        outcome = self.outcome or _outcome(host)
        if outcome:
            adds(host, "switch", outcome.to_json())
        return ok, output

    def failure(self, host: Host, output: CommandOutput) -> BoxwrightError:
        """The cause, as the journal of the start that failed tells it, and what serves now."""
        outcome = self.outcome = _outcome(host)
        if outcome is None or outcome.kind == DONE:
            return super().failure(host, output)
        why, sentence = self._serves_now(outcome), outcome.sentence
        if outcome.kind == UNFINISHED:
            return ConvergeError(
                f"{outcome.unit} enabled and on record",
                sentence,
                "it answers, and the next boot would bring back what served before",
                "remove what is in the way (a full or read-only file system?) and run again: "
                "nothing is started anew for it",
            )
        if outcome.kind == GPU_HELD:
            return ConvergeError(
                f"{self.gpus} free GPUs for {outcome.unit}",
                sentence,
                f"an engine that starts before the memory is free fails; {why}",
                "end the named process if it is yours, and run again. Memory without a process is "
                "a driver that needs a reset (nvidia-smi --gpu-reset) or a reboot",
            )
        # Only a failure needs it, and its rules take a moment to load.
        from facts.diagnosis import Hints, from_text  # noqa: PLC0415

        journal, kernel = _journals(host, outcome)
        hints = Hints(fits_max_num_seqs=self.fits_max_num_seqs, environment=self.environment)
        diagnosis = from_text(journal, kernel, hints)
        if diagnosis is None:
            step = "; the journal of the failed start holds the cause" if outcome.back else ""
            return ConvergeError(self.wanted, sentence, why, f"{self.next_step}{step}")
        found = f"{sentence}\n        {diagnosis.found}"
        return ConvergeError(self.wanted, found, f"{diagnosis.why}; {why}", diagnosis.next_step)

    def _serves_now(self, outcome: SwitchOutcome) -> str:
        if not outcome.touched:
            return "nothing was touched: what served still serves"
        if outcome.back is None:
            return self.why
        how = "rolled back" if outcome.back.ok else "the way back failed too"
        return f"{how}: {outcome.back.sentence}"


def _outcome(host: Host) -> SwitchOutcome | None:
    """What the program left behind; None where it was ended before it could."""
    try:
        return SwitchOutcome.from_json(json.loads(_read(host, f"cat {OUTCOME}")))
    except (ValueError, RecursionError):
        return None


def _journals(host: Host, outcome: SwitchOutcome) -> tuple[str, str]:
    """The journal of the start that failed, and the kernel's since then."""
    show = f"journalctl -o short-iso-precise --no-pager -n {JOURNAL_LINES}"
    start = shlex.quote(outcome.invocation)
    fields = ("_SYSTEMD_INVOCATION_ID", "INVOCATION_ID", "OBJECT_SYSTEMD_INVOCATION_ID")
    matches = " + ".join(f"{field}={start}" for field in fields)
    unit = f"{show} {matches}" if outcome.invocation else f"{show} -u {outcome.unit}"
    return _read(host, unit), _read(host, f"{show} -k --since @{int(outcome.since)}")


def _read(host: Host, command: str) -> str:
    _, output = host.run_shell_command(as_root(f"LC_ALL=C.UTF-8 {command}"))
    return str(output.stdout)


@operation()
@guarded
def switch(
    service: Service,
    replaces: Sequence[Service],
    query: Query,
    placement: Chosen,
    snapshot: LocalSnapshot,
    driver: str | None = None,
    rollback: bool = True,
    fits_max_num_seqs: int | None = None,
) -> Commands:
    """
    Have a service serve instead of others: stopped and disabled they are, once it answers.

    + service: what should serve
    + replaces: the old services
    + query: what this run reads of the box
    + placement: the GPUs of the service
    + snapshot: what it loads
    + driver: version of the GPUs' driver, for the record
    + rollback: whether the old services come back after a failure
    + fits_max_num_seqs: the largest that fits, for the remedy of a sampler that ran out of memory
    """
    actual = actual_state(host, query)
    differences = switch_differences(service, replaces, actual)
    show(host, differences)
    if not differences:
        host.noop(f"{service.name} serves")
        return
    if host.state.is_executing:
        require_port(service, actual, frozenset(old.unit for old in replaces))
    # Loaded where something is to be done, and not on the way to "no change".
    from operations.switch_request import switch_request  # noqa: PLC0415
    from operations.unit_text import variables  # noqa: PLC0415

    request = switch_request(
        service,
        replaces,
        placement=placement,
        snapshot=snapshot,
        driver=driver,
        rollback=rollback,
    )
    environment = variables(service, placement.environment)
    yield SwitchStep(request, fits_max_num_seqs, environment)
    settled(
        switch_differences(service, replaces, actual_state(host, query)),
        f"systemctl status {service.unit} on the box: it answered and was restarted since, or "
        "another manager starts what was retired",
    )
