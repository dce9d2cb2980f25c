"""The engine's arguments, checked by the installed engine itself before the switch."""

import re
import shlex

from pyinfra import logger
from pyinfra.api import Host, State, StringCommand
from pyinfra.api.arguments import ConnectorArguments
from pyinfra.connectors.util import CommandOutput

from facts.privilege import as_root
from inventory.base import Unknown
from inventory.errors import ConvergeError, FitError
from inventory.fit.legality.flags import flag_verdicts, read_help
from inventory.service import Service, tensor_parallel_size
from operations.steps import report

HELP_SECONDS = 300
"""An engine imports half of itself before it prints its help."""


class ArgumentsCheck(StringCommand):
    """Refuses flags that the installed engine does not know, and values that it does not allow.

    An engine that dies of a traceback before it prints its help cannot be imported, and is refused
    too. Any other text that is not help is only reported.

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
        ok, output = host.run_shell_command(
            self, print_output=False, print_input=state.print_input, **connector_arguments
        )
        found = read_help(output.output)
        if not ok and (broken := broken_import(output.output)):
            report(host, self._broken(broken))
            return False, CommandOutput([])
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

    def _broken(self, line: str) -> ConvergeError:
        engine = self.service.engine
        return ConvergeError(
            f"{engine.package} {engine.version} that can be imported",
            line,
            "the engine would end in the same way at its start; the old service still serves",
            f"run {engine.environment_folder}/{' '.join(engine.command)} --help on the box for the "
            f"whole traceback; to install the environment anew, remove {engine.environment_folder} "
            "and run again",
        )


def broken_import(text: str) -> str:
    """The exception that ended a program before it printed its help; empty if there is none.

    >>> broken_import("Traceback (most recent call last):\\n  File x\\nImportError: libcuda\\n")
    'ImportError: libcuda'
    """
    _, trace, rest = text.rpartition("Traceback (most recent call last):")
    lines = [line.strip() for line in rest.splitlines() if re.match(r"[A-Za-z_][\w.]*(:|$)", line)]
    return lines[0] if trace and lines else ""
