"""Log lines as vLLM shapes them, written whole so that those of several processes do not mix."""

from __future__ import annotations

import os
import sysconfig
import time
from collections.abc import Sequence

SITE = sysconfig.get_path("purelib")

Frames = Sequence[tuple[str, int, str]]
"""File below site-packages, line, function: one frame of a traceback."""


class Console:
    """The log of one process.

    + role: ``APIServer``, ``EngineCore``, ``Worker``, ``Worker_TP0``…
    """

    def __init__(self, role: str) -> None:
        self.role = role

    def say(self, where: str, message: str, level: str = "INFO") -> None:
        """Log a message; every line of it gets the prefix.

        + where: file:line of vLLM's source
        """
        prefix = f"({self.role} pid={os.getpid()}) {level} {time.strftime('%m-%d %H:%M:%S')}"
        lines = [f"{prefix} [{where}] {line}".rstrip() for line in message.split("\n")]
        write("\n".join(lines) + "\n")

    def error(self, where: str, message: str) -> None:
        """Log an error."""
        self.say(where, message, "ERROR")


def write(text: str) -> None:
    """Write to standard output, at once. A reader that is gone is nobody's loss."""
    try:
        os.write(1, text.encode())
    except OSError:
        return


def write_error(text: str) -> None:
    """Write to standard error, at once."""
    try:
        os.write(2, text.encode())
    except OSError:
        return


def traceback(frames: Frames, error: str) -> str:
    """A traceback as Python prints it where it cannot read the sources.

    + error: type and message, which may have several lines
    """
    lines = [f'  File "{SITE}/{file}", line {line}, in {name}' for file, line, name in frames]
    return "\n".join(["Traceback (most recent call last):", *lines, error])
