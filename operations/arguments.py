"""The engine's own word on its arguments: asked of the installed one before the switch."""

from __future__ import annotations

import shlex

from pyinfra import logger
from pyinfra.api import Host, State, StringCommand
from pyinfra.api.arguments import ConnectorArguments
from pyinfra.connectors.util import CommandOutput

from facts.privilege import as_root
from inventory.base import Unknown
from inventory.errors import FitError
from inventory.fit.flags import flag_verdicts, read_help
from inventory.parallel import tensor_parallel_size
from inventory.service import Service
from operations.steps import report

HELP_SECONDS = 300
"""An engine imports half of itself before it prints its help."""


class ArgumentsCheck(StringCommand):
    """Refuses flags that the installed engine does not know, and values that it does not allow.

    Its help also proves that the environment can be imported at all. A text that cannot be read as
    help is said and stops nothing.

    + service: as it will start
    + accept: rules that the operator overrides
    """

    def __init__(self, service: Service, accept: frozenset[str] = frozenset()) -> None:
        engine = service.engine
        words = [f"{engine.environment_folder}/{engine.command[0]}", *engine.command[1:]]
        command = " ".join(map(shlex.quote, [*words, "--help=all"]))
        user = shlex.quote(service.user)
        script = (
            "d=$(mktemp -d /tmp/boxwright.XXXXXXXX) && trap 'rm -rf -- \"$d\"' EXIT && "
            f'chown {user} "$d" && cd "$d" && '
            f'timeout {HELP_SECONDS} runuser -u {user} -- env HOME="$d" COLUMNS=200 {command}'
        )
        super().__init__(*as_root(script).bits)
        self.service = service
        self.accept = accept

    def execute(
        self, state: State, host: Host, connector_arguments: ConnectorArguments
    ) -> tuple[bool, CommandOutput]:
        """Ask, and judge the answer here."""
        engine = self.service.engine
        _, output = host.run_shell_command(
            self, print_output=False, print_input=state.print_input, **connector_arguments
        )
        found = read_help(output.output)
        if isinstance(found, Unknown):
            last = [line for line in output.output_lines if line.strip()][-1:]
            logger.warning(
                f"{host.print_prefix}the flags were not checked: {found.unknown} "
                f"({' '.join(last) or 'it printed nothing'})"
            )
            return True, CommandOutput([])
        arguments = tuple(engine.flags(tensor_parallel_size(self.service)))
        wrong = [
            verdict
            for verdict in flag_verdicts(arguments, found, engine.version)
            if verdict.certain and verdict.rule not in self.accept
        ]
        for verdict in wrong:
            error = FitError(
                verdict.wanted,
                verdict.found,
                f"{verdict.why}; the old service still serves",
                f"{verdict.next_step} (--data accept={verdict.rule} starts it all the same)",
            )
            report(host, error)
        return not wrong, CommandOutput([])
