"""The journal of one start of a unit, as it is written.

Read through libsystemd, in this process: ``journalctl --follow`` is told of a new line up to half a
second late (journald notifies readers 250 ms after a write), while the file itself can be read at
once. Reading is polling, and never waits.
"""

import ctypes
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Self

from operations.remote.switch.errors import SwitchError

LOCAL_ONLY = 1
BATCH = 500
"""Entries in one look: some ten milliseconds."""

# Message ids of systemd (sd-messages.h); the texts that go with them depend on its version.
STARTING = "7d4958e842da4a758f6c1cdc7b36dcc5"
STARTED = "39f53479d3a045ac8e11786248231fbf"
STOPPING = "de5b426a63be47a7b6ac3eaac82e2f6f"
PROCESS_EXIT = "98e322203f7a4ed290d09fe03c09fe15"
SUCCESS = "7ad2d189f7e94e70a38c781354912448"
FAILURE = "d9b373ed55a64feb8242e02dbe79a49c"


@dataclass(frozen=True)
class JournalEntry:
    """One entry.

    + monotonic: seconds of this boot's clock, as `time.monotonic` counts them
    + realtime: seconds since the epoch
    + ident: who wrote it, e.g. ``vllm``, ``systemd``
    + pid: of the writer; None where unknown
    + text: the message
    + message_id: of systemd's own messages, else empty
    """

    monotonic: float
    realtime: float
    ident: str
    pid: int | None
    text: str
    message_id: str = ""

    @property
    def by_systemd(self) -> bool:
        """Whether systemd itself speaks, about the unit."""
        return self.ident in {"systemd", "(systemd)"}

    def line(self, longest: int = 1000) -> str:
        """As ``journalctl -o short-iso-precise`` prints it, cut after some characters."""
        at = datetime.fromtimestamp(self.realtime).astimezone()
        pid = "" if self.pid is None else f"[{self.pid}]"
        text = " ".join(self.text.split("\n"))[:longest]
        return f"{at:%Y-%m-%dT%H:%M:%S.%f%z} {os.uname().nodename} {self.ident or '-'}{pid}: {text}"


class _Reader:
    """A handle of libsystemd's on this machine's journal.

    + matches: alternatives, each a list of ``FIELD=value``; of one field any value will do
    + raises: SwitchError where the journal cannot be opened
    """

    def __init__(self, matches: Sequence[Sequence[str]]) -> None:
        self._lib = _library()
        self._handle = ctypes.c_void_p()
        self._check(self._lib.sd_journal_open(ctypes.byref(self._handle), LOCAL_ONLY), "open")
        for number, alternative in enumerate(matches):
            if number:
                self._check(self._lib.sd_journal_add_disjunction(self._handle), "match")
            for match in alternative:
                raw = match.encode()
                self._check(self._lib.sd_journal_add_match(self._handle, raw, len(raw)), "match")
        # Asking for the descriptor has files noticed that are rotated in. Where the user's inotify
        # instances are used up this fails, and only a rotation is missed.
        self._lib.sd_journal_get_fd(self._handle)
        self._check(self._lib.sd_journal_seek_head(self._handle), "seek")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files."""
        if self._handle:
            self._lib.sd_journal_close(self._handle)
            self._handle = ctypes.c_void_p()

    def renew(self) -> None:
        """Notice files that were added."""
        self._lib.sd_journal_process(self._handle)

    def next(self) -> bool:
        """Go to the next entry, if there is one."""
        return bool(self._lib.sd_journal_next(self._handle) > 0)

    def previous(self) -> bool:
        """Go back by one entry."""
        return bool(self._lib.sd_journal_previous(self._handle) > 0)

    def to_end(self) -> None:
        """Go behind the last entry."""
        self._lib.sd_journal_seek_tail(self._handle)

    def times(self) -> tuple[float, float]:
        """Of this entry: by the monotonic clock, and since the epoch, in seconds."""
        at, boot = ctypes.c_uint64(), (ctypes.c_uint8 * 16)()
        known = self._lib.sd_journal_get_monotonic_usec(
            self._handle, ctypes.byref(at), ctypes.byref(boot)
        )
        monotonic = at.value / 1e6 if known >= 0 else time.monotonic()
        self._lib.sd_journal_get_realtime_usec(self._handle, ctypes.byref(at))
        return monotonic, at.value / 1e6

    def field(self, name: str) -> str:
        """A field of this entry; empty where it has none."""
        data, length = ctypes.c_void_p(), ctypes.c_size_t()
        found = self._lib.sd_journal_get_data(
            self._handle, name.encode(), ctypes.byref(data), ctypes.byref(length)
        )
        if found < 0 or not data.value:
            return ""
        raw = ctypes.string_at(data.value, length.value)
        return raw.partition(b"=")[2].decode("utf-8", "replace")

    @staticmethod
    def _check(status: int, what: str) -> None:
        if status < 0:
            raise SwitchError("systemd", f"the journal: {what} failed with errno {-status}")


class StartJournal(_Reader):
    """The journal of one start, from its first entry on: what the unit's processes write, and what
    systemd writes about them.

    + invocation: systemd's id of the start

    Example::

        with StartJournal(invocation) as journal:
            for entry in journal.new():
                print(entry.line())
    """

    def __init__(self, invocation: str) -> None:
        super().__init__(
            [[f"_SYSTEMD_INVOCATION_ID={invocation}"], [f"INVOCATION_ID={invocation}"]]
        )
        self.is_read = False
        """Whether the last look reached the end."""

    def new(self) -> list[JournalEntry]:
        """Entries since the last look, oldest first, at most `BATCH`."""
        self.renew()
        found: list[JournalEntry] = []
        while len(found) < BATCH and self.next():
            found.append(self._entry())
        self.is_read = len(found) < BATCH
        return found

    def skip(self) -> None:
        """Pass over all that is written by now."""
        self.to_end()
        self.previous()

    def _entry(self) -> JournalEntry:
        monotonic, realtime = self.times()
        pid = self.field("_PID") or self.field("SYSLOG_PID")
        return JournalEntry(
            monotonic=monotonic,
            realtime=realtime,
            ident=self.field("SYSLOG_IDENTIFIER") or self.field("_COMM"),
            pid=int(pid) if pid.isascii() and pid.isdigit() else None,
            text=self.field("MESSAGE"),
            message_id=self.field("MESSAGE_ID"),
        )


def opening(invocation: str, most: int) -> Iterator[JournalEntry]:
    """The first entries of a start that is over."""
    with StartJournal(invocation) as journal:
        seen = 0
        while seen < most and (batch := journal.new()):
            seen += len(batch)
            yield from batch


def earlier(unit: str, invocation: str) -> str | None:
    """The start of a unit before this one; None where the journal does not tell.

    + invocation: systemd's id of the later start
    """
    matches = [f"UNIT={unit}", f"MESSAGE_ID={STARTING}", f"MESSAGE_ID={STARTED}"]
    with _Reader([matches]) as reader:
        reader.to_end()
        while reader.previous():
            found = reader.field("INVOCATION_ID")
            if found not in {"", invocation}:
                return found
    return None


@cache
def _library() -> Any:
    """libsystemd, which comes with every systemd."""
    try:
        lib = ctypes.CDLL("libsystemd.so.0")
    except OSError as error:
        raise SwitchError("systemd", f"the journal cannot be read: {error}") from None
    lib.sd_journal_open.argtypes = [ctypes.c_void_p, ctypes.c_int]
    lib.sd_journal_add_disjunction.argtypes = [ctypes.c_void_p]
    lib.sd_journal_add_match.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    for name in ("get_fd", "seek_head", "seek_tail", "process", "next", "previous"):
        getattr(lib, f"sd_journal_{name}").argtypes = [ctypes.c_void_p]
    lib.sd_journal_get_realtime_usec.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    lib.sd_journal_get_monotonic_usec.argtypes = [ctypes.c_void_p] * 3
    lib.sd_journal_get_data.argtypes = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_void_p,
        ctypes.c_void_p,
    ]
    lib.sd_journal_close.argtypes = [ctypes.c_void_p]
    lib.sd_journal_close.restype = None
    return lib
