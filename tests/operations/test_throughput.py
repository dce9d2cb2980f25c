"""What is asked of the box, what it keeps and says, and when there is anything to ask."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.actual import Actual
from inventory.catalogue import MINIMAX_M25
from inventory.throughput import Throughput
from operations.remote.throughput.measure import (
    Request,
    keep_and_compare,
    read_request,
    requests_in_flight,
)
from operations.throughput import throughput_differences, throughput_request
from tests.operations.boxes import box, unit
from tests.operations.remote.throughput.test_throughput_compare import LOAD, entry, rung

SERVICE = MINIMAX_M25.model_copy(update={"throughput": Throughput()})


@given(st.text())
def test_any_metrics_are_a_number_of_requests(text: str) -> None:
    assert requests_in_flight(text) >= 0
    counted = f'{text}\nvllm:num_requests_waiting{{engine="0"}} 3.0\n'
    assert requests_in_flight(counted) == requests_in_flight(text) + 3


def request(**fields: Any) -> Request:
    plain = json.loads(json.dumps(throughput_request(SERVICE, "/shared/models/x", False)))
    plain["load"] |= LOAD
    return read_request(plain | fields)


def test_the_request_is_read_as_it_was_written() -> None:
    engine = MINIMAX_M25.engine.model_copy(
        update={"extra_args": ("--tokenizer-mode=mistral", "--tokenizer", "/t", "--seed", "1")}
    )
    service = SERVICE.model_copy(update={"engine": engine})
    plain = json.loads(json.dumps(throughput_request(service, "/shared/models/x", True)))
    found = read_request(plain)
    assert found.load.rungs == (1, 8, 32)
    assert found.load.more == ("--trust-remote-code", "--tokenizer-mode", "mistral")
    assert found.load.tokenizer == "/t"
    assert (found.accept, found.user, found.python) == (
        True,
        "vllm",
        "/opt/vllm/vllm-0.32.0/bin/python",
    )
    words = found.load.arguments(8, seed=5)
    pairs = dict(pairwise(words))
    assert (pairs["--num-prompts"], pairs["--max-concurrency"], pairs["--seed"]) == ("32", "8", "5")
    assert words[-1] == "8.json"
    with pytest.raises(TypeError):
        read_request(plain | {"unheard-of": 1})


NOW = "f" * 32


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """boxwright's folder, with an earlier measured start and the present one."""
    folder = tmp_path / "record" / SERVICE.unit
    folder.mkdir(parents=True)
    before = entry({1: 100.0, 8: 400.0}, invocation="a" * 32, engine={"version": "0.31.0"})
    (folder / "1000-aaaaaaaa.json").write_text(json.dumps(before))
    now = {"invocation": NOW, "format": 1, "engine": {"version": "0.32.0"}}
    (folder / "2000-ffffffff.json").write_text(json.dumps(now))
    (folder / "3000-eeeeeeee.json").write_text("{damaged")
    return tmp_path


def measured(root: Path) -> str:
    place = root / "measured" / SERVICE.unit
    return place.read_text() if place.exists() else ""


def kept(root: Path) -> dict[str, Any]:
    text = (root / "record" / SERVICE.unit / "2000-ffffffff.json").read_text()
    found: dict[str, Any] = json.loads(text)["throughput"]
    return found


def test_good_figures_are_kept_and_the_start_is_measured(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = request()
    rungs = [rung(1, 90.0), rung(8, 500.0), rung(32, 900.0)]
    assert keep_and_compare(wanted, rungs, 5000, 0, NOW, root) == 0
    assert "not slower than before at 1 stream, 8 streams" in capsys.readouterr().out
    assert measured(root) == f"{NOW} {wanted.digest}\n"
    assert (kept(root)["accepted"], len(kept(root)["rungs"])) == (True, 3)


def test_a_slower_start_fails_until_it_is_accepted_or_better(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = [rung(1, 60.0), rung(8, 399.0)]
    for _ in range(2):
        assert keep_and_compare(request(), slow, 5000, 0, NOW, root) == 1
        said = capsys.readouterr().out
        assert "slower: 1 stream: 60.0 tok/s now, 100.0 tok/s on" in said
        assert "8 streams" not in said
        assert "what changed between the two: engine 0.32.0 instead of 0.31.0" in said
        assert (measured(root), kept(root)["accepted"]) == ("", False)
    assert keep_and_compare(request(), [rung(1, 99.0)], 6000, 0, NOW, root) == 0
    assert measured(root)


def test_accepted_figures_are_the_next_measure(root: Path) -> None:
    slow = [rung(1, 60.0)]
    assert keep_and_compare(request(accept=True), slow, 5000, 0, NOW, root) == 0
    assert measured(root).startswith(NOW)
    assert keep_and_compare(request(), slow, 6000, 0, "b" * 32, root) == 0


def test_a_regression_is_not_the_next_measure(root: Path) -> None:
    slow = [rung(1, 60.0)]
    assert keep_and_compare(request(), slow, 5000, 0, NOW, root) == 1
    assert keep_and_compare(request(), slow, 6000, 0, "b" * 32, root) == 1


def test_the_first_measurement_has_nothing_to_be_held_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert keep_and_compare(request(), [rung(1, 1.0)], 5000, 0, NOW, tmp_path) == 0
    said = capsys.readouterr().out
    assert "has no record" in said
    assert "no earlier start was measured under this load" in said
    assert measured(tmp_path)


def test_a_difference_is_a_start_that_was_not_measured() -> None:
    digest = Throughput().digest
    cases = {
        (NOW, f"{NOW} {digest}"): "",
        (NOW, ""): "this start was never measured and found good",
        (NOW, f"{'b' * 32} {digest}"): "this start was never measured and found good",
        (NOW, f"{NOW} 01234567"): "measured under another load",
        ("", f"{NOW} {digest}"): "known after the start",
    }
    for (ready, mark), have in cases.items():
        found = throughput_differences(SERVICE, actual(ready, mark))
        assert [difference.have for difference in found] == ([have] if have else [])
    assert throughput_differences(MINIMAX_M25, actual(NOW, "")) == ()


def actual(ready: str, mark: str) -> Actual:
    """A box whose service runs, was seen to answer, and was measured."""
    return box(
        units=unit(SERVICE.unit, invocation=NOW),
        ready=f"{SERVICE.unit} {ready}" if ready else "",
        measured=f"{SERVICE.unit} {mark}" if mark else "",
    )
