"""The order of a switch, its way back and its end: what is done, and what never is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inventory.common import paths
from inventory.common.files import write_whole
from inventory.common.switch import DONE, GPU_HELD, UNFINISHED, OldService, UnfinishedSwitch
from operations.remote.switch import old_services, record
from tests.operations.remote.switch.switching import (
    NEW,
    OLD,
    OLD_SERVICE,
    OTHER,
    URL,
    FakeBox,
    box,
    crash,
    in_order,
    request,
)

__all__ = ["box"]

WAITS, WAITS_AGAIN = f"wait {NEW} new/model", f"wait {OLD} old/model"
AFTER_THE_STOP = ("release", f"start {NEW}", WAITS, "smoke")
"""Steps that begin when the old service is gone."""
BEFORE_THE_STOP = ("look at the GPUs", "warm")


def test_a_switch_in_its_order(box: FakeBox) -> None:
    outcome = box.carry_out(request())
    assert box.did == [
        "look at the GPUs",
        "warm",
        f"stop {OLD}",
        "release",
        f"start {NEW}",
        WAITS,
        "smoke",
        # Enablement last: a reboot before this brings the old one back.
        f"enable {NEW}",
        f"disable {OLD}",
        f"disable {OLD}",
        "record",
        "keep good",
    ]
    assert (box.active, box.enabled) == ({NEW}, {NEW})
    assert (outcome.kind, outcome.invocation) == (DONE, f"id-of-{NEW}")
    assert outcome.seconds.keys() == {"stop", "release", "load", "downtime"}
    assert (outcome.phases, outcome.warnings) == ({"load": 40.0}, ("odd",))
    assert Path(paths.READY, NEW).read_text() == f"id-of-{NEW}\n"
    assert not Path(paths.PENDING).exists()
    (start,) = box.recorded
    assert (start.unit, start.service, start.replaced) == (NEW, "new", (OLD,))
    assert start.warm == {"bytes": 1.0, "seconds": 1.0}
    assert box.said[-1] == f"switch: {NEW} serves new/model"


def test_what_runs_from_its_file_is_not_started_anew(box: FakeBox) -> None:
    box.active = {OLD, NEW}
    assert box.carry_out(request()).kind == DONE
    assert in_order(box.did, f"stop {OLD}", WAITS, f"enable {NEW}")
    assert not {f"start {NEW}", "release", f"stop {NEW}"} & set(box.did)


def test_a_start_that_is_on_record_is_not_recorded_again(box: FakeBox) -> None:
    box.active = {NEW}
    write_whole(Path(paths.READY, NEW), f"id-of-{NEW}\n")
    assert box.carry_out(request()).kind == DONE
    assert "record" not in box.did


def test_what_is_to_be_stopped_is_noted_before_it_is(box: FakeBox) -> None:
    box.breaks[f"stop {OLD}"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        box.carry_out(request())
    assert old_services.unfinished() == (OLD_SERVICE,)


def test_a_service_that_serves_nobody_is_ended_at_once(box: FakeBox) -> None:
    box.answers.clear()
    box.active = {OLD}
    assert box.carry_out(request()).kind == DONE
    assert in_order(box.did, f"kill {OLD}", f"stop {OLD}")


@pytest.mark.parametrize("step", AFTER_THE_STOP)
@pytest.mark.parametrize("error", [crash(), ZeroDivisionError("odd"), OSError("disk")])
def test_what_fails_after_the_stop_brings_the_old_service_back(
    box: FakeBox, step: str, error: Exception
) -> None:
    box.breaks[step] = error
    outcome = box.carry_out(request())
    assert outcome.kind == ("crashed" if isinstance(error, type(crash())) else "broken")
    assert outcome.touched
    assert outcome.back is not None
    assert (outcome.back.ok, outcome.back.sentence) == (True, f"{OLD} answers again")
    assert in_order(box.did, step, f"kill {NEW}", f"stop {NEW}", f"start {OLD}", WAITS_AGAIN)
    assert (box.active, box.enabled) == ({OLD}, {OLD})
    assert not {f"enable {NEW}", f"disable {OLD}", "record"} & set(box.did)
    assert not Path(paths.PENDING).exists()


def test_the_start_that_failed_is_named_before_the_way_back_ends_it(box: FakeBox) -> None:
    box.breaks[WAITS] = crash()
    assert box.carry_out(request()).invocation == f"id-of-{NEW}"


@pytest.mark.parametrize("step", BEFORE_THE_STOP)
@pytest.mark.parametrize("error", [crash(), ValueError("odd")])
def test_what_fails_before_the_stop_touches_nothing(
    box: FakeBox, step: str, error: Exception
) -> None:
    box.breaks[step] = error
    outcome = box.carry_out(request())
    assert (outcome.touched, outcome.back) == (False, None)
    assert box.active == box.enabled == {OLD}
    assert not [one for one in box.did if one.startswith(("stop", "start", "kill"))]
    assert not Path(paths.PENDING).exists()


def test_a_stranger_on_the_gpus_touches_nothing(box: FakeBox) -> None:
    box.strangers = ("python (pid 7) on GPU-1",)
    outcome = box.carry_out(request())
    assert (outcome.kind, outcome.touched, outcome.back) == (GPU_HELD, False, None)
    assert outcome.sentence == "held before anything was stopped: python (pid 7) on GPU-1"
    assert box.active == {OLD}


def test_a_wreck_is_kept_where_that_is_asked_for(box: FakeBox) -> None:
    box.breaks[WAITS] = crash()
    outcome = box.carry_out(request(rollback=False))
    assert (outcome.touched, outcome.back) == (True, None)
    assert box.active == {NEW}


def test_a_first_deploy_has_nothing_to_go_back_to(box: FakeBox) -> None:
    box.active.clear()
    box.breaks[WAITS] = crash()
    outcome = box.carry_out(request())
    assert (outcome.touched, outcome.back) == (True, None)
    assert f"start {OLD}" not in box.did


def test_a_way_back_that_fails_says_so_and_is_remembered(box: FakeBox) -> None:
    box.breaks = {WAITS: crash(), WAITS_AGAIN: crash("no memory")}
    outcome = box.carry_out(request())
    assert outcome.back is not None
    assert (outcome.back.ok, outcome.back.sentence) == (
        False,
        f"{OLD} does not answer: no memory",
    )
    assert old_services.unfinished() == (OLD_SERVICE,)


def test_each_old_service_comes_back_whatever_becomes_of_the_others(box: FakeBox) -> None:
    other = OldService(OTHER, URL, "other/model", timeout=30.0)
    box.active = {OLD, OTHER}
    box.answers = {OLD: "shared", OTHER: "shared", NEW: "new/model"}
    old = replace(OLD_SERVICE, model="shared")
    box.breaks = {"smoke": crash(), f"start {OLD}": RuntimeError("odd")}
    outcome = box.carry_out(request(old, replace(other, model="shared")))
    assert outcome.back is not None
    assert not outcome.back.ok
    assert outcome.back.sentence == (
        f"{OLD} was not seen to answer: RuntimeError: odd; {OTHER} answers again"
    )
    assert OTHER in box.active


def test_a_service_under_another_name_comes_back_under_that_one(box: FakeBox) -> None:
    box.answers[OLD] = "by/hand"
    box.breaks[WAITS] = crash()
    assert box.carry_out(request()).back is not None
    assert f"wait {OLD} by/hand" in box.did


def test_another_text_of_the_same_unit_is_put_back(
    box: FakeBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Path(paths.UNITS, NEW)
    write_whole(file, "new text")
    monkeypatch.setattr(record, "good_text", lambda _: "good text")
    box.active = box.outdated = {NEW}
    box.breaks["smoke"] = crash()
    outcome = box.carry_out(request())
    assert outcome.back is not None
    assert outcome.back.sentence == f"{NEW} answers again"
    assert file.read_text() == "good text"
    assert in_order(box.did, "smoke", f"stop {NEW}", "daemon-reload", f"start {NEW}", WAITS)


def test_what_an_unfinished_switch_had_stopped_comes_back(box: FakeBox) -> None:
    box.active.clear()
    old_services.remember(NEW, [OLD_SERVICE])
    box.breaks[WAITS] = crash()
    outcome = box.carry_out(request())
    assert outcome.back is not None
    assert outcome.back.ok
    assert box.active == {OLD}


@pytest.mark.parametrize("step", [f"enable {NEW}", f"disable {OLD}"])
@pytest.mark.parametrize("error", [crash("odd"), OSError("odd"), RuntimeError("odd")])
def test_nothing_goes_back_once_the_new_service_answers(
    box: FakeBox, step: str, error: Exception
) -> None:
    box.breaks[step] = error
    outcome = box.carry_out(request())
    assert (outcome.kind, outcome.sentence) == (UNFINISHED, "odd")
    assert box.active == {NEW}
    assert old_services.unfinished() == (OLD_SERVICE,)


def test_a_note_that_cannot_be_written_leaves_the_switch_unfinished(box: FakeBox) -> None:
    Path(paths.READY, NEW, "in-the-way").mkdir(parents=True)
    outcome = box.carry_out(request())
    assert outcome.kind == UNFINISHED
    assert (box.active, box.enabled) == ({NEW}, {NEW})


@pytest.mark.parametrize("error", [OSError("full"), ValueError("odd")])
def test_a_start_that_cannot_be_recorded_is_a_warning(box: FakeBox, error: Exception) -> None:
    box.breaks["record"] = error
    assert box.carry_out(request()).kind == DONE
    assert f"warning: this start is not on record: {error}" in box.said
    assert Path(paths.READY, NEW).exists()


@settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(
    st.dictionaries(
        st.sampled_from([*BEFORE_THE_STOP, *AFTER_THE_STOP, f"kill {NEW}", f"stop {NEW}"]),
        st.sampled_from([crash(), OSError("disk"), RuntimeError("odd")]),
    )
)
def test_a_box_that_served_serves_after_any_failure(
    box: FakeBox, breaks: dict[str, BaseException]
) -> None:
    box.active, box.enabled, box.breaks = {OLD}, {OLD}, breaks
    box.did.clear()
    outcome = box.carry_out(request())
    steps = set(BEFORE_THE_STOP) | set(AFTER_THE_STOP)
    expected = {NEW} if not breaks.keys() & steps else {OLD}
    assert box.active - {NEW} == expected - {NEW}
    assert (outcome.kind == DONE) == (expected == {NEW})
    assert box.enabled == expected


def test_the_note_of_an_unfinished_switch_is_what_the_next_one_reads() -> None:
    note = UnfinishedSwitch(NEW, (replace(OLD_SERVICE, text="[Unit]", max_model_len=8),))
    assert UnfinishedSwitch.from_json(note.to_json()) == note
