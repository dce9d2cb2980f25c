"""Two starts compared: the sums hold, the product holds, nothing missing becomes a number."""

from __future__ import annotations

from pathlib import Path

import pytest

from facts.history.comparison import Comparison, compare, history
from facts.history.measured import measure
from facts.history.parts import UNMEASURED
from facts.history.render import render
from facts.journal.formats import entry as entry_of
from facts.journal.lines import read_journal
from facts.journal.phases import phases
from inventory.base import Unknown
from operations.remote.switch.waiting.journal import JournalEntry
from operations.remote.switch.waiting.phases import PhaseTracker
from tests.facts.diagnosis.journals import text_of
from tests.facts.history.recorded import (
    DAY,
    EAGER,
    NOW,
    OLD,
    QWEN,
    TP4,
    TP8,
    example,
    measured,
    record,
    sums_hold,
    throughput,
)

KIMI = {
    "phases": {"import": 10.0, "workers": 30.0, "load": 610.0, "compile": 50.0, "server": 5.0},
    "weights_bytes": 540_000_000_000,
    "journal": ["2026-11-20T10:10:00+0000 box vllm[7]: (Worker_TP0 pid=7) INFO 11-20 10:10:00 "
                "[default_loader.py:501] Loading weights took 600.00 seconds"],
    "seconds": {"load": 780.0, "stop": 4.0},
}  # fmt: skip


def part(comparison: Comparison, name: str) -> tuple[float, float]:
    (found,) = [part for part in comparison.parts if part.name == name]
    return found.this, found.that


def names(comparison: Comparison) -> list[str]:
    return [part.name for part in comparison.parts]


def test_figures_of_a_recorded_start() -> None:
    start = measured(TP4)
    assert start.total == 189
    assert start.bytes_per_s == pytest.approx(230.113e9 / 64.2)
    assert (start.kv_cache_tokens, start.kv_cache_gib, start.max_concurrency) == (
        431_648,
        25.52,
        2.2,
    )
    assert (start.model_gib_per_rank, start.cudagraph_gib) == (53.75, 1.32)
    assert (start.compilation, start.eager, start.gpus) == ("cold", False, 4)
    assert (start.stop_s, start.release_s, start.downtime_s) == (3.9, 0.6, 193.6)
    assert start.throughput is None


def test_where_the_record_has_no_bytes_the_engine_does() -> None:
    assert measured(TP4, weights_bytes=None).weights_bytes == round(214.31 * (1 << 30))
    assert measured(OLD, weights_bytes=0).weights_bytes is None


@pytest.mark.parametrize("name", [TP4, TP8, OLD, QWEN, EAGER])
def test_the_lines_that_the_waiter_keeps_hold_all_figures(name: str) -> None:
    text = text_of(name)
    track = PhaseTracker(started=0.0)
    for line in text.splitlines():
        found = entry_of(line)
        assert found is not None
        assert found.time is not None
        track.take(JournalEntry(found.time, found.time, found.ident, found.pid, found.text))
    live = phases(read_journal("\n".join(track.lines)))
    whole = phases(read_journal(text))
    assert live.engine == whole.engine
    assert live.seconds == whole.seconds


def test_whether_code_was_compiled() -> None:
    assert [measured(name).compilation for name in (TP8, OLD, QWEN, EAGER)] == [
        *("cold", "cold", "warm", "none")
    ]
    assert measured(TP4, journal=[]).compilation is None
    assert measured(TP4, journal=[], argv=["--enforce-eager"]).compilation == "none"


def test_phases_are_read_from_the_journal_where_the_box_kept_none() -> None:
    assert measured(TP4, phases={}).phases == measured(TP4).phases
    bare = measured(TP4, phases={}, seconds={})
    assert bare.total == 189
    assert measured(TP4, phases={}, journal=[], seconds={}).total is None


def test_two_starts_of_one_service() -> None:
    found = compare(measured(TP4), measured(OLD))
    assert sums_hold(found)
    assert part(found, "weights") == (64.2, 81.4)
    assert part(found, "compile") == (40, 42)
    # The older engine says nothing of its kernels' warm-up: its time is in the graphs'.
    assert part(found, "kernels + graph capture") == (28, 28)
    assert part(found, UNMEASURED) == pytest.approx((0, 0))
    assert found.read is not None
    assert found.read.bytes == 1
    assert found.sentence == (
        "3 min 9 s against 3 min 35 s: as many bytes, 1.3x faster read (64.2 s against 81.4 s), "
        "processes 43.0 s against 48.0 s, all else 81.8 s against 85.6 s"
    )


def test_against_the_service_that_gave_way() -> None:
    found = compare(measured(TP4), measured(TP4, **KIMI))
    assert sums_hold(found)
    assert found.read is not None
    assert found.read.bytes == pytest.approx(540 / 230.113)
    assert found.read.seconds == pytest.approx(600 / 64.2)
    # What that start does not show apart is compared together, and what it does not show at all
    # is no part of any.
    assert part(found, "processes + the rest of loading") == pytest.approx((47.8, 50))
    assert part(found, "KV cache + kernels + graph capture + the rest") == (37, 5)
    assert part(found, UNMEASURED) == pytest.approx((0, 75))
    assert found.sentence == (
        "3 min 9 s against 13 min 0 s: 2.3x fewer bytes, 4.0x faster read "
        "(64.2 s against 10 min 0 s), KV cache + kernels + graph capture + the rest 37.0 s "
        "against 5.0 s, not measured 0.0 s against 75.0 s, all else 87.8 s against 1 min 40 s"
    )


def test_compilation_against_none() -> None:
    found = compare(measured(TP4), measured(EAGER))
    assert part(found, "compile") == (40, 0)
    assert part(found, "graph capture") == (19, 0)
    assert "compile 40.0 s cold against none" in found.sentence
    assert sums_hold(found)


def test_a_start_without_phases_is_not_measured_rather_than_free() -> None:
    found = compare(measured(TP4), measured(TP4, phases={}, journal=[], seconds={"load": 780.0}))
    assert names(found) == [UNMEASURED]
    assert found.read is None
    assert (
        found.sentence == "3 min 9 s against 13 min 0 s: not measured 3 min 9 s against 13 min 0 s"
    )


def test_a_start_without_a_total_is_not_compared_in_parts() -> None:
    found = compare(measured(TP4), measured(TP4, phases={}, journal=[], seconds={}, warm=None))
    assert found.parts == ()
    assert "not clocked" in found.sentence
    assert [figure.name for figure in found.figures] == ["weights"]


def test_throughput_where_both_have_it_under_the_same_load() -> None:
    start = record(TP4, throughput=throughput({1: 61.0, 8: 300.0, 32: 900.0}))
    one = measure(start)
    other = measured(OLD, throughput=throughput({1: 30.5, 8: 400.0, 64: 2000.0}))
    longer = measured(OLD, throughput=throughput({1: 30.5, 8: 400.0}, output_tokens=1024))
    rates = [figure for figure in compare(one, other).figures if figure.unit == "tok/s"]
    assert [(rate.name, rate.ratio) for rate in rates] == [("one user", 2.0), ("8 users", 0.75)]
    for unlike in (longer, measured(OLD)):
        assert "tok/s" not in {figure.unit for figure in compare(one, unlike).figures}
    row = render(history({"gpu1": (start,)})).splitlines()[1]
    assert row.split()[-4:] == ["61", "900", "at", "32"]


def test_throughput_in_json_is_what_users_get() -> None:
    found = measured(TP4, throughput=throughput({1: 68.0, 32: 1130.0}))
    assert found.to_json()["throughput"] == {
        "rungs": [{"users": 1, "tokens_per_s": 68.0}, {"users": 32, "tokens_per_s": 1130.0}],
        "load": "input_tokens 1024, output_tokens 256, requests 4",
    }
    without = measured(TP4)
    assert without.to_json()["throughput"] == {"rungs": [], "load": ""}


def test_which_starts_are_held_against_each_other() -> None:
    records = (
        record(OLD, "a.service", ready=NOW - DAY),
        record(TP4, "a.service", ready=NOW),
        record(OLD, "a.service", ready=NOW - 3 * DAY),
        Unknown(unknown="c.service/1-x.json: is not whole"),
        record(TP8, "b.service", ready=NOW - 2 * DAY, gpus=8),
        record(TP8, "b.service", ready=NOW - DAY / 2, gpus=8),
    )
    (box,) = history({"gpu1": records}).boxes
    assert [start.ready for start in box.starts] == sorted(
        (start.ready for start in box.starts), reverse=True
    )
    pairs = [(one.this.ready, one.that.unit, one.that.ready) for one in box.comparisons]
    assert pairs == [(NOW, "a.service", NOW - DAY), (NOW, "b.service", NOW - DAY / 2)]
    assert box.problems == ("c.service/1-x.json: is not whole",)


def test_the_documented_example_is_what_is_printed() -> None:
    page = (Path(__file__).parents[3] / "docs" / "history.md").read_text()
    assert f"```\n$ boxwright history\n{render(history({'gpu1': example()}))}```\n" in page


def test_boxes_without_a_record() -> None:
    found = history({"a": (), "b": Unknown(unknown="sudo: no"), "c": (record(TP4),)})
    text = render(found)
    assert "a: no start was recorded\n" in text
    assert "b: sudo: no\n" in text
    assert found.boxes[2].comparisons == ()
    assert "c     vllm-minimax-m25" in text
