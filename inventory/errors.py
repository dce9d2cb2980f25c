"""Every error of boxwright says four things: what was wanted, what was found, why it matters,
and what to do next."""

MISTAKE = 2
"""Exit code of every command that ends with one of these before it has an answer."""


class BoxwrightError(Exception):
    """Base of all errors.

    + wanted: the desired state, in the user's words
    + found: what the box, the Hub or the file says instead
    + why: what would go wrong if the run went on
    + next_step: the exact flag, command or field that resolves it
    """

    def __init__(self, wanted: str, found: str, why: str, next_step: str) -> None:
        self.wanted = wanted
        self.found = found
        self.why = why
        self.next_step = next_step
        # On lines of its own: a traceback puts the class in front of the first.
        super().__init__(f"\n{self.message}")

    @property
    def message(self) -> str:
        """The four parts, one to a line."""
        return (
            f"wanted: {self.wanted}\n"
            f" found: {self.found}\n"
            f"   why: {self.why}\n"
            f"  next: {self.next_step}"
        )


class DesiredStateError(BoxwrightError):
    """The Python file or the override is malformed: nothing was read or touched."""


class PreconditionError(BoxwrightError):
    """The box cannot take the change: no root, no systemd, no space."""


class HubError(BoxwrightError):
    """The Hub does not have, or does not give, what was asked for."""


class ConflictError(BoxwrightError):
    """A folder, port or unit of another owner is where the change would go."""


class PlacementError(BoxwrightError):
    """No set of GPUs satisfies the placement."""


class FitError(BoxwrightError):
    """The model cannot start like this on these GPUs: the engine's own arithmetic says so."""


class ConvergeError(BoxwrightError):
    """The change was made and the box still differs, or the service did not become ready."""
