"""Child processes with vLLM's names."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn

PR_SET_NAME = 15
ARG_START = 45
"""Place of arg_start in /proc/<pid>/stat after the command (field 48 of proc(5))."""


def name_process(title: str) -> None:
    """Give this process a name as setproctitle does: its command line and its comm.

    NVML and ``ps`` show the first; systemd's and the kernel's messages the second, cut to 15
    characters.
    """
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_NAME, title.encode()[:15], 0, 0, 0)
    text = Path("/proc/self/stat").read_text()
    words = text[text.rindex(")") + 1 :].split()
    start, end = int(words[ARG_START]), int(words[ARG_START + 1])
    if 0 < start < end:
        room = end - start
        ctypes.memmove(start, title.encode()[: room - 1].ljust(room, b"\0"), room)


def spawn(title: str, function: Callable[[], int], close: Iterable[int] = ()) -> int:
    """Run a function in a child process. Returns its process id.

    + close: file descriptors that the child must not keep, such as the server's socket
    """
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for descriptor in close:
            os.close(descriptor)
        name_process(title)
        status = function()
    except BaseException:
        traceback.print_exc()
    finally:
        leave(status)


def leave(status: int) -> NoReturn:
    """End this process at once, whatever its threads do."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def ended(pid: int) -> int | None:
    """The status of a child that has ended, negative for a signal; None while it runs."""
    try:
        found, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 0
    return os.waitstatus_to_exitcode(status) if found else None


def kill(pids: Iterable[int]) -> None:
    """Kill child processes and wait for their end."""
    for pid in pids:
        if ended(pid) is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
