"""What an error inside an operation does to the run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.context import ctx_host, ctx_state

from inventory.errors import ConvergeError
from operations.steps import Commands, RefusedError, guarded

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
