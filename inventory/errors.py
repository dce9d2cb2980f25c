"""Every error of boxwright says four things: what was wanted, what was found, why it matters,
and what to do next.

::

    BoxwrightError
    ├── DesiredStateError      the Python file or the override asks for something malformed
    ├── PreconditionError      the box cannot take the change (no root, no systemd, no space)
    ├── HubError               the Hub does not have, or does not give, what was asked for
    ├── ConflictError          something of another owner is in the place (folder, port, unit)
    ├── PlacementError         no set of GPUs satisfies the placement
    ├── FitError               the model cannot start like this, by arithmetic
    └── ConvergeError          a change was made and the box is still different, or not ready
"""

from __future__ import annotations

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
    """The desired state is malformed: nothing was read or touched."""


class PreconditionError(BoxwrightError):
    """The box lacks something that the change needs."""


class HubError(BoxwrightError):
    """The Hub does not have, or does not give, what was asked for."""


class ConflictError(BoxwrightError):
    """Something that belongs to another owner is where the change would go."""


class PlacementError(BoxwrightError):
    """No set of GPUs satisfies the placement."""


class FitError(BoxwrightError):
    """The model cannot start like this on these GPUs: the engine's own arithmetic says so."""


class ConvergeError(BoxwrightError):
    """The change was made and the box still differs, or the service did not become ready."""
