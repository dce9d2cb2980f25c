"""The shell around the pure parts: show differences, run one change, report in four parts."""

from collections.abc import Callable, Generator, Iterable
from functools import wraps
from typing import ParamSpec
from weakref import WeakKeyDictionary

from pyinfra import context, logger
from pyinfra.api import (
    FileUploadCommand,
    FunctionCommand,
    Host,
    OperationError,
    State,
    StringCommand,
)
from pyinfra.api.arguments import ConnectorArguments
from pyinfra.connectors.util import CommandOutput

from facts.actual import Actual
from facts.box import actual_state, changed
from facts.privilege import as_root
from facts.query import Query
from inventory.errors import BoxwrightError, ConvergeError, DesiredStateError
from operations.difference import Difference
from operations.report import differs, fails

P = ParamSpec("P")
Commands = Generator[StringCommand | FunctionCommand | FileUploadCommand, None, None]

FOUND_LINES = 15
"""Lines of a failed command's output that go into the error: the last ones name the cause."""


class RefusedError(OperationError):
    """A BoxwrightError on its way through pyinfra: same four parts, and no traceback."""

    def __init__(self, error: BoxwrightError) -> None:
        super().__init__(error.message)
        self.error = error


class Step(StringCommand):
    """One change as one command, which says in four parts what it means when it fails.

    + script: POSIX sh, run as root
    + stdin: content for the script's standard input
    + stream: print output as it comes: for steps of minutes
    """

    def __init__(
        self,
        script: str,
        *,
        wanted: str,
        why: str,
        next_step: str,
        stdin: str | None = None,
        stream: bool = False,
    ) -> None:
        command = as_root(script, stdin)
        super().__init__(*command.bits, **command.connector_arguments)
        self.wanted = wanted
        self.why = why
        self.next_step = next_step
        self.stream = stream

    def execute(
        self, state: State, host: Host, connector_arguments: ConnectorArguments
    ) -> tuple[bool, CommandOutput]:
        """Run the step and forget what was known of the box."""
        connector_arguments.update(self.connector_arguments)
        printed = self.stream or state.print_output
        ok, output = host.run_shell_command(
            self, print_output=printed, print_input=state.print_input, **connector_arguments
        )
        changed(host)
        if ok:
            return ok, output
        report(host, self.failure(host, output))
        return ok, CommandOutput([])

    def failure(self, host: Host, output: CommandOutput) -> BoxwrightError:  # noqa: ARG002
        """What the step's failure means: its last lines are what was found."""
        lines = [line for line in output.output_lines if line.strip()][-FOUND_LINES:]
        found = "\n        ".join(lines) or "the command failed without a word"
        return ConvergeError(self.wanted, found, self.why, self.next_step)


def alone(name: str, done: str, script: str) -> str:
    """A script that only one run at a time executes on this box.

    A controller that is killed leaves its command running on the box: the next run waits for it,
    and then finds the work done.

    + name: of the lock, a plain word
    + done: shell condition under which nothing is left to do
    """
    return "\n".join(
        (
            f"exec 9>/run/lock/boxwright-{name}.lock",
            "flock -n 9 || { echo 'another run is at this step: waiting for it'; flock 9; }",
            f"if {done}; then exit 0; fi",
            script,
        )
    )


def guarded(operation: Callable[P, Commands]) -> Callable[P, Commands]:
    """Turn a BoxwrightError inside an operation into a failure of this host alone.

    pyinfra aborts every host, with a traceback, for an exception that it does not know.
    """

    @wraps(operation)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Commands:
        host, executing = context.host, context.state.is_executing
        try:
            yield from operation(*args, **kwargs)
        except BoxwrightError as error:
            if not executing:
                raise RefusedError(error) from None
            report(host, error)
            yield FunctionCommand(_fail, (), {})

    return wrapper


def _fail(state: State, host: Host) -> bool:  # noqa: ARG001
    """pyinfra reads what a function returns only if it has parameters of these two names."""
    return False


def report(host: Host, error: BoxwrightError | RefusedError) -> None:
    """Print an error's four parts, each line with the host's name."""
    fails(host, error.error if isinstance(error, RefusedError) else error)
    for line in str(error).strip("\n").splitlines():
        logger.error(f"{host.print_prefix}{line}")


_shown: WeakKeyDictionary[Host, set[str]] = WeakKeyDictionary()


def show(host: Host, differences: Iterable[Difference], text: str = "") -> None:
    """Print differences before anything is done about them, each once in a run.

    pyinfra generates an operation twice, and stops the first time at its first command: what is
    printed later than that is not seen in a dry run.

    + differences: printed always
    + text: printed with ``--diff``
    """
    shown = _shown.setdefault(host, set())
    fresh = [difference for difference in differences if difference.line not in shown]
    for difference in fresh:
        shown.add(difference.line)
        differs(host, difference)
        logger.info(f"{host.print_prefix}~ {difference.line}")
    if fresh and text and host.state.config.DIFF:
        for line in text.splitlines():
            logger.info(f"{host.print_prefix}    {line}")


def converge(
    query: Query,
    differences: Callable[[Actual], tuple[Difference, ...]],
    step: Callable[[Actual], StringCommand],
    *,
    unchanged: str,
    look: str,
    text: Callable[[Actual], str] = lambda _: "",
    checks: Iterable[StringCommand] = (),
) -> Commands:
    """The frame of an operation: show what differs, change it by one step, and read it again.

    + differences: what is left to do on a box
    + step: what does it, on the box as it was read
    + unchanged: what to say where nothing differs
    + look: where to look if something still differs after the step
    + text: the change as a text, for ``--diff``
    + checks: commands that must succeed before the step
    """
    host = context.host
    actual = actual_state(host, query)
    found = differences(actual)
    show(host, found, text(actual))
    if not found:
        host.noop(unchanged)
        return
    yield from checks
    yield step(actual)
    settled(differences(actual_state(host, query)), look)


def settled(left: Iterable[Difference], next_step: str) -> None:
    """Refuse a resource that still differs after its change.

    + left: the differences of a fresh read
    + raises: ConvergeError with each of them
    """
    lines = [difference.line for difference in left]
    if lines:
        raise ConvergeError(
            wanted="no difference after the change",
            found="; ".join(lines),
            why="something else writes here, or the change had no effect: running on would build "
            "on a state that is not there",
            next_step=next_step,
        )


def flag(host: Host, key: str, default: bool = False) -> bool:
    """A value of the host's data as yes or no.

    + raises: DesiredStateError for a word that is neither: ``--data rollback=no`` must not be a yes
    """
    value = host.data.get(key, default)
    word = str(value).strip().lower()
    if word in {"true", "yes", "on", "1"}:
        return True
    if word in {"false", "no", "off", "0", "none", ""}:
        return False
    raise DesiredStateError(
        wanted=f"{key} as true or false",
        found=f"{value!r}",
        why="a word that is neither would be taken for a yes",
        next_step=f"--data {key}=true or --data {key}=false",
    )
