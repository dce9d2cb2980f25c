"""What an error inside an operation does to the run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.api import StringCommand
from pyinfra.context import ctx_host, ctx_state

from inventory.errors import ConvergeError
from operations import steps
from operations.difference import differing
from operations.steps import Commands, RefusedError, converge, guarded

ERROR = ConvergeError("a", "b", "c", "d")
HOST: Any = SimpleNamespace(print_prefix="", state=SimpleNamespace(callback_handlers=[]))


@guarded
def broken() -> Commands:
    """An operation that sees after its change that something is wrong."""
    yield from ()
    raise ERROR


def test_an_error_during_the_run_fails_the_operation(caplog: pytest.LogCaptureFixture) -> None:
    state: Any = SimpleNamespace(is_executing=True)
    with ctx_state.use(state), ctx_host.use(HOST):
        (command,) = broken()
        # pyinfra goes on with the next operation for anything but False.
        assert command.execute(state, HOST, {}) is False
    assert [record.message for record in caplog.records][:1] == ["wanted: a"]


def test_an_error_while_the_run_is_prepared_stops_it() -> None:
    with (
        ctx_state.use(SimpleNamespace(is_executing=False)),
        ctx_host.use(HOST),
        pytest.raises(RefusedError, match="wanted: a"),
    ):
        list(broken())


class FakeHost:
    """As much of pyinfra's host as an operation talks to."""

    print_prefix = ""

    def __init__(self) -> None:
        config = SimpleNamespace(DIFF=True)
        self.state = SimpleNamespace(callback_handlers=[], config=config)
        self.noops: list[str] = []

    def noop(self, text: str) -> None:
        self.noops.append(text)


class TestFrame:
    """Show what differs, change it by one step, read it again."""

    CHECK, STEP = StringCommand("check"), StringCommand("step")

    def run(self, monkeypatch: pytest.MonkeyPatch, *reads: str) -> tuple[FakeHost, list[Any]]:
        """Converge a box whose reads say these words, one after the other."""
        host, query = FakeHost(), object()
        answers = iter(reads)
        monkeypatch.setattr(steps, "actual_state", lambda *_: next(answers))
        with ctx_host.use(host):
            commands = converge(
                query,  # type: ignore[arg-type]
                lambda actual: differing("file", [("text", "new", actual)]),
                lambda _: self.STEP,
                unchanged="as desired",
                look="cat file",
                text=lambda actual: f"-{actual}",
                checks=[self.CHECK],
            )
            return host, list(commands)

    def test_no_difference_is_no_command(self, monkeypatch: pytest.MonkeyPatch) -> None:
        host, commands = self.run(monkeypatch, "new")
        assert (host.noops, commands) == (["as desired"], [])

    def test_a_difference_is_shown_checked_changed_and_read_again(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("INFO")
        host, commands = self.run(monkeypatch, "old", "new")
        assert (host.noops, commands) == ([], [self.CHECK, self.STEP])
        said = [record.message.strip() for record in caplog.records]
        assert said == ["~ file: text: old -> new", "-old"]

    def test_a_change_without_effect_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(ConvergeError, match="old -> new"):
            self.run(monkeypatch, "old", "old")
