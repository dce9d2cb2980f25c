"""What is asked of the box, what it keeps and says, and when there is anything to ask."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.actual import Actual
from inventory.catalogue import MINIMAX_M25
from inventory.common.record import RecordedEngine
from inventory.common.throughput import ThroughputRequest
from inventory.common.wire import WireError
from inventory.throughput import Throughput
from operations.remote.switch.record import save
from operations.remote.throughput.measure import keep_and_compare, requests_in_flight
from operations.remote.throughput.tool import arguments
from operations.throughput import throughput_differences, throughput_request
from tests.operations.boxes import box, unit
from tests.operations.remote.throughput.test_throughput_compare import LOAD, measured, start

SERVICE = MINIMAX_M25.model_copy(update={"throughput": Throughput()})


@given(st.text())
def test_any_metrics_are_a_number_of_requests(text: str) -> None:
    assert requests_in_flight(text) >= 0
    counted = f'{text}\nvllm:num_requests_waiting{{engine="0"}} 3.0\n'
    assert requests_in_flight(counted) == requests_in_flight(text) + 3


def request(**fields: Any) -> ThroughputRequest:
    return replace(throughput_request(SERVICE, "/shared/models/x", False), load=LOAD, **fields)


def test_the_request_is_read_as_it_was_written() -> None:
    engine = MINIMAX_M25.engine.model_copy(
        update={"extra_args": ("--tokenizer-mode=mistral", "--tokenizer", "/t", "--seed", "1")}
    )
    service = SERVICE.model_copy(update={"engine": engine})
    asked = throughput_request(service, "/shared/models/x", True)
    plain = json.loads(json.dumps(asked.to_json()))
    found = ThroughputRequest.from_json(plain)
    assert found == asked
    assert found.rungs == (1, 8, 32)
    assert found.more == ("--trust-remote-code", "--tokenizer-mode", "mistral")
    assert found.tokenizer == "/t"
    assert (found.accept, found.user, found.python) == (
        True,
        "vllm",
        "/opt/vllm/vllm-0.32.0/bin/python",
    )
    words = arguments(found, 8, seed=5)
    pairs = dict(pairwise(words))
    assert (pairs["--num-prompts"], pairs["--max-concurrency"], pairs["--seed"]) == ("32", "8", "5")
    assert words[-1] == "8.json"
    with pytest.raises(WireError):
        ThroughputRequest.from_json(plain | {"unheard-of": 1})


NOW = "f" * 32


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """boxwright's folder, with an earlier measured start and the present one."""
    before = start("a" * 32, measured({1: 100.0, 8: 400.0}), engine=RecordedEngine("", "0.31.0"))
    now = replace(start(NOW, engine=RecordedEngine("", "0.32.0")), ready=2000.0)
    for one in (before, now):
        save(replace(one, unit=SERVICE.unit), tmp_path / "record")
    (tmp_path / "record" / SERVICE.unit / "3000-eeeeeeee.json").write_text("{damaged")
    return tmp_path


def mark(root: Path) -> str:
    place = root / "measured" / SERVICE.unit
    return place.read_text() if place.exists() else ""


def kept(root: Path) -> dict[str, Any]:
    text = (root / "record" / SERVICE.unit / "2000-ffffffff.json").read_text()
    found: dict[str, Any] = json.loads(text)["throughput"]
    return found


def compare(
    wanted: ThroughputRequest, rates: dict[int, float], root: Path, *, invocation: str = NOW
) -> int:
    now = measured(rates, when=5000, accepted=False)
    return keep_and_compare(wanted, now, invocation, root / "record", root / "measured")


def test_good_figures_are_kept_and_the_start_is_measured(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = request()
    assert compare(wanted, {1: 90.0, 8: 500.0, 32: 900.0}, root) == 0
    assert "not slower than before at 1 stream, 8 streams" in capsys.readouterr().out
    assert mark(root) == f"{NOW} {wanted.digest}\n"
    assert (kept(root)["accepted"], len(kept(root)["rungs"])) == (True, 3)


def test_a_slower_start_fails_until_it_is_accepted_or_better(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        assert compare(request(), {1: 60.0, 8: 399.0}, root) == 1
        said = capsys.readouterr().out
        assert "slower: 1 stream: 60.0 tok/s now, 100.0 tok/s on" in said
        assert "8 streams" not in said
        assert "what changed between the two: engine 0.32.0 instead of 0.31.0" in said
        assert (mark(root), kept(root)["accepted"]) == ("", False)
    assert compare(request(), {1: 99.0}, root) == 0
    assert mark(root)


def test_accepted_figures_are_the_next_measure(root: Path) -> None:
    slow = {1: 60.0}
    assert compare(request(accept=True), slow, root) == 0
    assert mark(root).startswith(NOW)
    assert compare(request(), slow, root, invocation="b" * 32) == 0


def test_a_regression_is_not_the_next_measure(root: Path) -> None:
    slow = {1: 60.0}
    assert compare(request(), slow, root) == 1
    assert compare(request(), slow, root, invocation="b" * 32) == 1


def test_the_first_measurement_has_nothing_to_be_held_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(request(), {1: 1.0}, tmp_path) == 0
    said = capsys.readouterr().out
    assert "has no record" in said
    assert "no earlier start was measured under this load" in said
    assert mark(tmp_path)


def test_a_difference_is_a_start_that_was_not_measured() -> None:
    digest = Throughput().digest
    cases = {
        (NOW, f"{NOW} {digest}"): "",
        (NOW, ""): "this start was never measured and found good",
        (NOW, f"{'b' * 32} {digest}"): "this start was never measured and found good",
        (NOW, f"{NOW} 01234567"): "measured under another load",
        ("", f"{NOW} {digest}"): "known after the start",
    }
    for (ready, measure), have in cases.items():
        found = throughput_differences(SERVICE, actual(ready, measure))
        assert [difference.have for difference in found] == ([have] if have else [])
    assert throughput_differences(MINIMAX_M25, actual(NOW, "")) == ()


def actual(ready: str, measure: str) -> Actual:
    """A box whose service runs, was seen to answer, and was measured."""
    return box(
        units=unit(SERVICE.unit, invocation=NOW),
        ready=f"{SERVICE.unit} {ready}" if ready else "",
        measured=f"{SERVICE.unit} {measure}" if measure else "",
    )
