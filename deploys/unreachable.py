"""A box that cannot be reached, explained: pyinfra says which, and ends before any deploy runs."""

import logging

from pyinfra import context
from pyinfra.api.state import StateStage

from inventory.common.engine_log import uncoloured
from inventory.errors import PreconditionError
from operations.report import unreachable


class Unreachable(logging.Handler):
    """Adds our four parts below pyinfra's own line about a failed connection.

    pyinfra clears its callback handlers after ``config.py``, so that its log is the only place
    where a failed connection can be seen from there.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Explain an error of the connect stage."""
        state = context.ctx_state.get() if context.ctx_state.isset() else None
        if state is None or state.current_stage != StateStage.Connect:
            return
        words = uncoloured(record.getMessage()).strip()
        error = PreconditionError(
            wanted="an SSH connection to every box of the inventory",
            found=words,
            why="nothing was read or touched on that box",
            next_step="try `ssh` with the same address, user and key. A box that was rebuilt has "
            "new host keys: remove the old ones with `ssh-keygen -R`",
        )
        unreachable(state, words, error)
        for line in error.message.splitlines():
            logging.getLogger("pyinfra").warning(line)


def explain_unreachable() -> None:
    """Watch the connect stage of this run."""
    logger = logging.getLogger("pyinfra")
    if not any(isinstance(handler, Unreachable) for handler in logger.handlers):
        logger.addHandler(Unreachable(level=logging.ERROR))
