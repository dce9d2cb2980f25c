"""The verdicts of the wait, from states as systemd shows them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.common.engine_log import HEARTBEATS
from inventory.common.start_phases import ANSWER
from operations.remote.switch.waiting.expectation import Expectation
from operations.remote.switch.waiting.state import MOMENT_PROPERTIES, UnitMoment, unit_moment
from operations.remote.switch.waiting.verdicts import (
    Exit,
    StartVerdict,
    ending,
    of_models,
    of_silence,
    of_unit,
)

LOADING = UnitMoment(
    active="active",
    sub="running",
    restart="always",
    pause=10.0,
    started=100.0,
    invocation="a",
    burst=3,
    interval=1800.0,
)
AGAIN = replace(LOADING, active="activating", sub="auto-restart")
FAILED = replace(LOADING, active="failed", sub="failed", result="exit-code", code=1, status=1)
GONE = replace(LOADING, active="inactive", sub="dead", code=1, status=0)
STARTING = replace(LOADING, active="activating", sub="start")


def verdict(now: UnitMoment, end: Exit | None = None, **more: bool) -> StartVerdict:
    found = of_unit(now, LOADING, end or Exit(over=True), **more)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "now",
    [
        LOADING,
        STARTING,
        replace(STARTING, sub="start-pre"),
        replace(STARTING, sub="start-post"),
        replace(GONE, job=True),
        UnitMoment(active=""),
    ],
)
def test_it_may_still_come_up(now: UnitMoment) -> None:
    assert of_unit(now, LOADING, Exit()) is None


def test_a_crash_names_the_status_and_what_systemd_does_next() -> None:
    found = verdict(replace(AGAIN, code=1, status=1, result="exit-code"))
    assert found == (
        "crashed",
        "its main process ended: exit status 1; systemd tries again after 10 s "
        "(start 1 of the 3 it allows in 30 min)",
    )


@pytest.mark.parametrize(
    ("code", "status", "words"),
    [
        (1, 1, "exit status 1"),
        (1, 137, "exit status 137 (128 + SIGKILL)"),
        (1, 203, "exit status 203 (EXEC: its program does not exist or cannot be executed)"),
        (1, 217, "exit status 217 (USER: its user does not exist)"),
        (1, 255, "exit status 255"),
        (2, 9, "SIGKILL"),
        (3, 11, "SIGSEGV"),
        (2, 200, "signal 200"),
        (0, 0, "a command before its main process failed"),
    ],
)
def test_an_end_in_words(code: int, status: int, words: str) -> None:
    assert ending(code, status) == words
    found = verdict(replace(FAILED, restart="no", code=code, status=status))
    assert found.kind == "crashed"
    assert words in found.sentence
    assert "does not start it again" in found.sentence


@given(st.integers(0, 300), st.integers(0, 300))
def test_any_end_has_words(code: int, status: int) -> None:
    assert ending(code, status)


@pytest.mark.parametrize(
    ("result", "words"),
    [("timeout", "TimeoutStartSec"), ("oom-kill", "OOM killer"), ("watchdog", "watchdog")],
)
def test_systemds_own_reasons(result: str, words: str) -> None:
    assert words in verdict(replace(AGAIN, result=result, code=2, status=9)).sentence
    stopping = replace(LOADING, active="deactivating", sub="stop-sigterm", result=result)
    assert verdict(stopping).kind == "crashed"
    assert words in verdict(stopping).sentence


def test_a_crash_after_a_restart_is_a_loop() -> None:
    found = verdict(replace(AGAIN, code=1, status=2, result="exit-code", restarts=1))
    assert found.kind == "crash-looping"
    assert "exit status 2" in found.sentence
    assert "restarted it once" in found.sentence
    assert "start 2 of the 3 it allows in 30 min" in found.sentence


def test_a_restart_that_was_not_seen_is_a_loop() -> None:
    now = replace(LOADING, invocation="b", restarts=2)
    found = verdict(now, Exit(over=True, how="code=exited, status=1/FAILURE"))
    assert found.kind == "crash-looping"
    assert "status=1/FAILURE" in found.sentence
    assert "restarted it 2 times" in found.sentence
    assert "systemd has started it again" in found.sentence


def test_a_start_after_one_that_fell() -> None:
    now = replace(LOADING, restarts=1)
    assert of_unit(now, now, Exit()) is None, "the one before may have served for weeks"
    found = of_unit(now, now, Exit(), fell=True)
    assert found is not None
    assert found.kind == "crash-looping"


@pytest.mark.parametrize("result", ["start-limit-hit", "exit-code", "signal"])
def test_the_start_limit(result: str) -> None:
    found = verdict(replace(FAILED, result=result, restarts=2))
    assert found.kind == "start-limit"
    assert "used up the 3 starts that systemd allows in 30 min" in found.sentence


def test_a_start_that_the_limit_refused() -> None:
    refused = replace(FAILED, result="start-limit-hit", code=0, status=0)
    assert "was not started at all" in verdict(refused).sentence


def test_a_failure_short_of_the_limit_is_a_crash() -> None:
    assert verdict(replace(FAILED, restarts=1)).kind == "crashed"
    assert verdict(replace(FAILED, restart="no", restarts=0, burst=1)).kind == "crashed"
    assert verdict(replace(FAILED, burst=0, restarts=9)).kind == "crashed"


@pytest.mark.parametrize(
    "now",
    [
        GONE,
        UnitMoment(restart="no"),  # forgotten by systemd, not by the journal
        replace(GONE, active="active", sub="exited"),
        replace(GONE, active="deactivating", sub="stop-sigterm"),
        replace(AGAIN, code=1, status=0),
        replace(LOADING, invocation="b", restarts=1),
    ],
)
def test_status_0_is_a_failure(now: UnitMoment) -> None:
    found = verdict(now)
    assert found.kind == "exited-0"
    assert "vllm-project/vllm#48966" in found.sentence


def test_somebody_stopped_it() -> None:
    assert verdict(GONE, Exit(asked=True, over=True)).kind == "stopped"
    assert verdict(FAILED, Exit(asked=True, over=True)).kind == "stopped"
    assert verdict(replace(LOADING, active="deactivating", sub="stop-sigterm")).kind == "stopped"
    assert verdict(replace(LOADING, invocation="b")).kind == "stopped"
    absent = UnitMoment(load="not-found")
    assert of_unit(absent, absent, Exit()) == ("stopped", "the unit is not started (not-found)")


STATES = st.builds(
    UnitMoment,
    active=st.sampled_from(
        ["active", "activating", "inactive", "failed", "deactivating", "reloading", ""]
    ),
    sub=st.sampled_from(["running", "auto-restart", "dead", "failed", "exited", "stop-sigterm"]),
    result=st.sampled_from(["success", "exit-code", "signal", "timeout", "start-limit-hit"]),
    job=st.booleans(),
    restarts=st.integers(0, 9),
    restart=st.sampled_from(["no", "always", "on-failure"]),
    code=st.integers(0, 3),
    status=st.integers(0, 255),
    invocation=st.sampled_from(["", "a", "b"]),
    burst=st.integers(0, 5),
)


@given(STATES, st.builds(Exit, asked=st.booleans(), over=st.booleans()), st.booleans())
def test_every_state_is_judged(now: UnitMoment, end: Exit, fell: bool) -> None:
    found = of_unit(now, LOADING, end, fell=fell)
    if found is None:
        return
    assert found.kind in {
        "crashed",
        "crash-looping",
        "start-limit",
        "exited-0",
        "stopped",
    }
    assert (found.kind == "start-limit") <= (now.active == "failed")
    if now.is_running and now.invocation == LOADING.invocation and not fell:
        assert now.sub == "auto-restart", "a running process is given its time"


def test_the_properties_of_a_unit() -> None:
    shown = dict.fromkeys(MOMENT_PROPERTIES, "") | {
        "ActiveState": "activating",
        "SubState": "auto-restart",
        "NRestarts": "2",
        "Restart": "always",
        "RestartUSec": "1min 30s",
        "ExecMainCode": "1",
        "ExecMainStatus": "203",
        "ExecMainStartTimestampMonotonic": "13258301638",
        "StartLimitBurst": "3",
        "StartLimitIntervalUSec": "30min",
        "InvocationID": "f4148aed85694862b000c51149211f69",
        "Job": "",
    }
    now = unit_moment(shown)
    assert (now.restarts, now.pause, now.interval, now.started) == (2, 90, 1800, 13258.301638)
    assert (now.words, now.job, now.is_running) == ("activating (auto-restart)", False, False)
    assert unit_moment({**shown, "Job": "4711"}).job
    assert unit_moment({"StandardOutput": "journal+console"}).logged
    assert not unit_moment({"StandardOutput": "append:/var/log/vllm"}).logged
    before_main = {"InactiveExitTimestampMonotonic": "5000000"}
    assert unit_moment(before_main).started == 5


@given(st.dictionaries(st.sampled_from(MOMENT_PROPERTIES), st.text()))
def test_any_properties_are_a_state(shown: dict[str, str]) -> None:
    assert unit_moment(shown).restarts >= 0


def test_patience() -> None:
    before, declared = {"load": 40.0, "import": 5.0}, {"compile": 600.0, "": 240.0}
    expect = Expectation(900.0, before, declared, patience_floor=60.0)
    assert expect.allowed_silence("load") == 120
    assert expect.allowed_silence("import") == 60
    assert expect.allowed_silence("compile") == 600
    assert expect.allowed_silence("profile") == 240
    assert expect.allowed_silence(ANSWER) == 60


def test_silence() -> None:
    assert of_silence("load", 59, 60, 0, compiling=False) is None
    found = of_silence("load", 61, 60, 0, compiling=False)
    assert found is not None
    assert found.kind == "hung"
    assert "phase load" in found.sentence
    said = of_silence(ANSWER, 61, 60, 0, compiling=False)
    assert said is not None
    assert "has not answered" in said.sentence
    beats = of_silence("compile", 0, 60, HEARTBEATS, compiling=False)
    assert beats is not None
    assert f"for {HEARTBEATS} minutes" in beats.sentence
    assert of_silence("compile", 0, 60, HEARTBEATS, compiling=True) is None


def test_models() -> None:
    assert of_models("m", None, [("m", 4096)]) is None
    assert of_models("m", 4096, [("other", 1), ("m", 4096)]) is None
    assert of_models("m", 4096, [("m", None)]) is None, "it does not say"
    wrong = of_models("m", None, [("kimi", 1)])
    assert wrong == ("wrong-model", "it answers, but for kimi and not for m")
    short = of_models("m", 4096, [("m", 512)])
    assert short is not None
    assert short.kind == "wrong-length"
    assert "512 tokens, and 4096 are declared" in short.sentence
