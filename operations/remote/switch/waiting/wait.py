"""Wait until a service answers, or until it is certain that it will not.

Runs on the box, standard library only, by hand too::

    python -m operations.remote.switch.waiting.wait --unit vllm-minimax-m25.service \\
        --url http://127.0.0.1:8000 --model MiniMaxAI/MiniMax-M2.5 --timeout 600

Watches the unit, the journal of its start and the HTTP endpoint together, and says what happens as
it happens; the first verdict ends it. A start that began before is read from its beginning. Exit
status 0 is ready; anything else comes with one line that says what happened, and the unit's last
words.
"""

import argparse
import subprocess
import sys
import time

from inventory.common.engine_log import UP
from inventory.common.models import REFUSED
from inventory.common.start_phases import ANSWER
from inventory.common.switch import Target
from inventory.common.systemd import span
from operations.remote.switch.errors import SwitchError
from operations.remote.switch.waiting.expectation import Expectation, Ready, Say
from operations.remote.switch.waiting.journal import (
    FAILURE,
    PROCESS_EXIT,
    STOPPING,
    SUCCESS,
    JournalEntry,
    StartJournal,
    earlier,
    opening,
)
from operations.remote.switch.waiting.phases import PhasePrinter, PhaseTracker
from operations.remote.switch.waiting.probe import Probe, Round
from operations.remote.switch.waiting.state import MOMENT_PROPERTIES, UnitMoment, unit_moment
from operations.remote.switch.waiting.verdicts import (
    Exit,
    StartVerdict,
    of_models,
    of_silence,
    of_unit,
)
from operations.remote.systemctl import show

_TICK = 0.05
"""Seconds between two looks into the journal and at the endpoint's answer."""
LOOK = 0.15
"""Seconds between two looks at the unit."""
_GRACE = 0.5
"""Seconds for systemd's last words about a start to reach the journal."""
FIRST_ANSWERS, FIRST_SECONDS = 2, 5.0
"""Rounds of questions, or seconds, before silence or the clock decides about an older start."""
RECENTLY = 60.0
"""Seconds in which a start that is over may be the one that is waited for."""
OPENING = 5000
"""Entries of an earlier start, among which the line that it is up would be."""
LAST_WORDS = 25
"""Lines of the journal that are shown of a start that failed, by hand."""


def wait(target: Target, expect: Expectation, say: Say) -> Ready:
    """Watch until the first verdict.

    + say: prints one line
    + raises: SwitchError with the verdict, unless it is "ready"
    """
    with Probe(target) as probe:
        watch = Watch(target, expect, say, probe)
        try:
            return watch.run()
        finally:
            watch.close()


class Watch:
    """One wait."""

    def __init__(self, target: Target, expect: Expectation, say: Say, probe: Probe) -> None:
        self.target, self.expect, self.probe = target, expect, probe
        self.began = time.monotonic()
        self.first: UnitMoment | None = None
        self.now = UnitMoment()
        self.journal: StartJournal | None = None
        self.track = PhaseTracker(self.began, expect.before)
        self.end = Exit()
        self.fell = False
        self.doubt: float | None = None
        self.strangers: frozenset[int] = frozenset()
        self.answer, self.judged = Round(), 0
        self.printer = PhasePrinter(say)

    def close(self) -> None:
        """Let go of the journal."""
        if self.journal:
            self.journal.close()

    def run(self) -> Ready:
        """Look until something is certain."""
        looked = 0.0
        while True:
            if time.monotonic() - looked >= LOOK:
                looked = time.monotonic()
                self.look()
            self.read()
            self.answer = self.probe.round
            self.judge(self.by_unit())
            self.judge(self.by_answer())
            ready = self.ready()
            if ready:
                return ready
            self.judge(self.by_clock())
            self.printer.goes_on(self.track)
            time.sleep(_TICK)

    def judge(self, verdict: StartVerdict | None) -> None:
        """A verdict ends the wait."""
        if verdict:
            elapsed = time.monotonic() - self.track.started
            raise SwitchError(verdict.kind, f"after {span(elapsed)}: {verdict.sentence}")

    def look(self) -> None:
        """Look at the unit. The first start that is seen is the one that is waited for."""
        shown = show(self.target.unit, *MOMENT_PROPERTIES)
        if "ActiveState" not in shown:  # systemd is busy with itself
            return
        self.now = unit_moment(shown)
        queued = self.now.active in {"inactive", "failed"} and self.now.job
        if self.first is None and not queued:
            self._settle()
        if self.first and self.now.started and self.now.invocation == self.first.invocation:
            self.track.started = self.now.started
        self.printer.unit(self.target.unit, self.now, self.track)

    def _settle(self) -> None:
        """This is the start."""
        self.first = self.now
        if self.now.started:
            self.track.started = self.track.progress = self.now.started
        invocation = self.now.invocation or _forgotten(self.target.unit)
        if invocation:
            self.journal = StartJournal(invocation)
        self.fell = self.now.restarts > 0 and _fell(self.target.unit, self.now.invocation)

    def read(self) -> None:
        """Read what is new in the journal."""
        if self.journal is None:
            return
        for entry in self.journal.new():
            self.end = _end(self.end, entry)
            ended = self.track.take(entry)
            if ended:
                self.printer.ended(ended, self.track)
        if self.track.is_up and not self.journal.is_read:
            # It has been serving since: nothing in what follows is about its start.
            self.journal.skip()

    def by_unit(self) -> StartVerdict | None:
        """What the unit allows to say."""
        if self.first is None:
            return None
        # One that serves by now has come up after all.
        asked = self.answer.rounds >= FIRST_ANSWERS and not _answers(self.answer)
        verdict = of_unit(self.now, self.first, self.end, fell=self.fell and asked)
        if verdict is None:
            self.doubt = None
            return None
        self.doubt = self.doubt or time.monotonic()
        told = self.end.over or self.end.asked or self.journal is None
        return verdict if told or time.monotonic() - self.doubt > _GRACE else None

    def by_answer(self) -> StartVerdict | None:
        """What the endpoint's answer allows to say."""
        answer = self.answer
        if answer.rounds == self.judged or not self._is_current:
            return None
        self.judged = answer.rounds
        strangers = frozenset(owner.pid for owner in answer.owners if not owner.ours)
        # Seen twice: a process may be moving between two groups at the very moment.
        again, self.strangers = strangers & self.strangers, strangers
        if again:
            names = ", ".join(owner.words for owner in answer.owners if owner.pid in again)
            return StartVerdict(
                "wrong-listener", f"{self.target.url} belongs to another one: {names}"
            )
        if answer.models and not strangers:
            return of_models(self.target.model, self.target.max_model_len, answer.models)
        return None

    @property
    def _is_current(self) -> bool:
        return self.first is not None and self.now.invocation == self.first.invocation

    def ready(self) -> Ready | None:
        """The verdict that everybody waits for: seen, and seen again."""
        answer = self.answer
        if not (self._is_current and self.now.is_running and _answers(answer)):
            return None
        caught_up = self.journal is None or self.journal.is_read or self.track.is_up
        if not caught_up and time.monotonic() - self.began < FIRST_SECONDS:
            return None
        self.look()
        self.read()
        if not (self._is_current and self.now.is_running):
            return None
        until, up = answer.at, self.track.up_at
        if up is not None and up < self.began:
            until = up  # nobody was there to see its first answer
        took = until - self.track.started
        self.printer.ready(self.target, took)
        return Ready(self.now.invocation, took, self.track.seconds(until), self.track.lines)

    def by_clock(self) -> StartVerdict | None:
        """What the clock allows to say, once the endpoint was asked."""
        if self.answer.rounds < FIRST_ANSWERS and time.monotonic() - self.began < FIRST_SECONDS:
            return None
        now, track, expect = time.monotonic(), self.track, self.expect
        if now - track.started > expect.timeout and now - self.began > min(_GRACE, expect.timeout):
            phase = ANSWER if track.is_up else track.phase
            return StartVerdict(
                "timeout",
                f"not ready in {span(expect.timeout)}: unit {self.now.words}, phase {phase}",
            )
        telling = self._is_current and self.now.logged and track.is_told
        if not telling or (self.journal and not self.journal.is_read):
            return None
        phase = ANSWER if track.is_up else track.phase
        since = max(track.progress, self.began) if track.is_up else track.progress
        allowed = expect.allowed_silence(phase)
        return of_silence(
            phase, now - since, allowed, track.heartbeats, compiling=track.is_compiling
        )


def _answers(answer: Round) -> bool:
    """Whether an endpoint is alive; what it serves has been judged."""
    named = bool(answer.models)
    refused = answer.status in REFUSED and bool(answer.owners)
    return answer.health == 200 and (named or refused)  # noqa: PLR2004 - OK


def _end(end: Exit, entry: JournalEntry) -> Exit:
    """What systemd's own entries say about the end of a start."""
    match entry.message_id:
        case _ if not entry.by_systemd:
            return end
        case str(known) if known == STOPPING:
            return end._replace(asked=end.asked or not (end.over or end.how))
        case str(known) if known in {SUCCESS, FAILURE}:
            return end._replace(over=True)
        case str(known) if known == PROCESS_EXIT:
            return end._replace(how=entry.text.partition("exited, ")[2])
    return end


def _forgotten(unit: str) -> str | None:
    """The start that a unit ended just now, which systemd may know no more."""
    last = earlier(unit, "")
    first = next(opening(last, 1), None) if last else None
    return last if first and time.time() - first.realtime < RECENTLY else None


def _fell(unit: str, invocation: str) -> bool:
    """Whether the start before this one is known to have ended before it was up. One that had
    served for a while says nothing about a service that comes up again."""
    before = earlier(unit, invocation)
    return before is not None and not any(
        UP.search(entry.text) for entry in opening(before, OPENING)
    )


def _last_words(unit: str) -> list[str]:
    """The unit's last words."""
    shown = subprocess.run(
        ["journalctl", "-u", unit, "-n", str(LAST_WORDS), "-o", "cat", "--no-pager"],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return shown.stdout.splitlines()


def main() -> int:
    """Parse the arguments and wait."""
    parser = argparse.ArgumentParser(description="Wait until a service answers.")
    parser.add_argument("--unit", required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--timeout", type=float, required=True, help="seconds")
    arguments = parser.parse_args()
    target = Target(arguments.unit, arguments.url, arguments.model)
    expect = Expectation(timeout=arguments.timeout)
    try:
        ready = wait(target, expect, lambda line: print(line, flush=True))
    except SwitchError as error:
        for line in _last_words(arguments.unit):
            print(f"journal: {line}")
        print(f"{error.kind}: {error.sentence}", flush=True)
        return 1
    print(f"ready after {ready.seconds:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
