"""The report of a run: what each box's outcome is called, and a file that is whole or not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inventory.common.files import write_whole
from operations.report import BoxReport, Done, as_json, outcome_of


@pytest.mark.parametrize(
    ("outcomes", "failed", "ended", "executed", "expected"),
    [
        (["changed", "unchanged"], False, True, True, "changed"),
        (["unchanged"], False, True, True, "unchanged"),
        (["changed", "failed"], True, True, True, "failed"),
        ([], True, True, False, "failed"),
        (["changed", "not run"], False, False, True, "running"),
        (["not run"], False, True, False, "planned"),
        # Left in the middle: interrupted, or another box ended the run.
        (["changed", "not run"], False, True, True, "failed"),
    ],
)
def test_an_outcome(
    outcomes: list[str], failed: bool, ended: bool, executed: bool, expected: str
) -> None:
    operations = [Done(str(number), one) for number, one in enumerate(outcomes)]
    assert outcome_of(operations, failed=failed, ended=ended, executed=executed) == expected


def test_it_is_plain_json_with_every_box_by_name() -> None:
    boxes = {"one": BoxReport("vllm-a", "changed", [Done("unit file", "changed", 0.5)])}
    content = json.loads(as_json(boxes, 1.0, 62.0, ended=True))
    assert content["ended"] is True
    assert (content["started"], content["written"]) == (
        "1970-01-01T00:00:01+00:00",
        "1970-01-01T00:01:02+00:00",
    )
    one = content["boxes"]["one"]
    assert (one["service"], one["outcome"]) == ("vllm-a", "changed")
    assert one["operations"] == [{"name": "unit file", "outcome": "changed", "seconds": 0.5}]


def test_a_file_is_replaced_whole_and_its_folder_made(tmp_path: Path) -> None:
    path = tmp_path / "reports" / "run.json"
    write_whole(path, "old")
    write_whole(path, "new")
    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]
