"""Weights on a box through whole runs: sent by the controller, superseded, pruned, verified."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inventory.service import Model
from inventory.snapshot import lock_name
from tests.lab import hub_service
from tests.lab.base import Lab
from tests.lab.box import Box
from tests.lab.converge import pyinfra
from tests.lab.hub import RemoteHub, chosen
from tests.lab.model import MODELS

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

DEPLOY = "deploys/minimax.py"
TINY = MODELS["tiny-minimax-m2"].repo
HOME = f"/shared/models/{TINY}"


@pytest.fixture(scope="module")
def box(lab: Lab, installed: list[Path]) -> Iterator[Box]:
    """A box with engine and simulated GPUs, where an ordinary user with sudo logs in."""
    with Box("weights", lab, user="operator", simulated=True, layers=installed) as box:
        yield box


@pytest.fixture
def hub(lab: Lab) -> RemoteHub:
    served = hub_service.find(lab)
    assert served
    hub = RemoteHub(served.url)
    hub.forget_requests()
    return hub


def commit(lab: Lab) -> str:
    """What the lock file says."""
    text = (lab.root / "locks" / lock_name(Model(repo=TINY))).read_text()
    return str(json.loads(text)["commit"])


def reported(path: Path, box: Box) -> dict[str, Any]:
    """What the report of a run that has ended says of a box."""
    content = json.loads(path.read_text())
    assert content["ended"] is True
    box_report: dict[str, Any] = content["boxes"][box.name]
    return box_report


def weights_asked_for(hub: RemoteHub) -> set[str]:
    return {one.path for one in chosen(hub.requests(), where="cdn", method="GET")}


def test_sent_by_the_controller_it_is_proven_all_the_same(
    box: Box, lab: Lab, hub: RemoteHub, tmp_path: Path
) -> None:
    folder, report = lab.models / TINY, tmp_path / "report.json"
    run = pyinfra(
        DEPLOY, "-y", "--data", f"push={folder}", "--data", f"report={report}", box=box.name
    )
    assert run.status == 0, run.text
    assert "every byte hashed" in run.text
    assert weights_asked_for(hub) == set()
    assert box.run(f"sudo ls -A {HOME}").stdout.split() == [commit(lab)]
    told = reported(report, box)
    assert (told["outcome"], told["errors"]) == ("changed", [])
    done = {one["name"]: one for one in told["operations"]}
    assert [name for name, one in done.items() if one["outcome"] == "changed"] == run.changed
    assert all(one["seconds"] >= 0 for one in done.values())
    shown = {f"{one['resource']}: {one['attribute']}" for one in told["differences"]}
    assert shown
    assert all(line in run.text for line in shown)
    fetched = told["details"]["fetch"]
    assert fetched["commit"] == commit(lab)
    assert (fetched["downloaded"], fetched["reused"]) == (0, 0), "it was sent"
    assert fetched["bytes"] == sum(
        path.stat().st_size for path in folder.rglob("*") if path.is_file()
    )
    again = pyinfra(DEPLOY, "-y", box=box.name)
    assert (again.status, again.changed) == (0, []), again.text
    assert weights_asked_for(hub) == set()


def test_a_run_without_changes_and_one_that_may_make_none_are_told_apart(
    box: Box, tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    for option, outcome in (("-y", "unchanged"), ("--dry", "planned")):
        run = pyinfra(DEPLOY, option, "--data", f"report={report}", box=box.name)
        assert run.status == 0, run.text
        told = reported(report, box)
        assert (told["outcome"], told["differences"]) == (outcome, [])


def test_all_bytes_are_hashed_again_when_asked(box: Box) -> None:
    run = pyinfra(DEPLOY, "-y", "--data", "verify=true", box=box.name)
    assert run.status == 0, run.text
    assert "verify: " in run.text
    assert "GB/s" in run.text


def test_a_superseded_snapshot_stays_until_it_is_named(
    box: Box, lab: Lab, hub: RemoteHub, tmp_path: Path
) -> None:
    old = commit(lab)
    moved = tmp_path / "moved"
    shutil.copytree(lab.models / TINY, moved)
    (moved / "README.md").write_text("Another commit.\n")
    hub.add_repo(TINY, moved)
    try:
        report = tmp_path / "report.json"
        choice = ("--data", "upgrade=true", "--data", f"report={report}")
        run = pyinfra(DEPLOY, "-y", *choice, box=box.name)
        assert run.status == 0, run.text
        fetched = reported(report, box)["details"]["fetch"]
        assert fetched["downloaded"] + fetched["reused"] == fetched["bytes"]
        assert 0 < fetched["downloaded"] < fetched["reused"]
        new = commit(lab)
        assert new != old
        assert weights_asked_for(hub) == set(), "the weights are those of the older commit"
        assert set(box.run(f"sudo ls -A {HOME}").stdout.split()) == {old, new}
        marker = f"{HOME}/{old}/.boxwright/users/another"
        box.run(f"sudo touch {marker}")
        choice = ("--data", f"prune={old[:12]}", "--data", f"report={report}")
        held = pyinfra(DEPLOY, "-y", *choice, box=box.name)
        assert held.status != 0
        assert "in use: box another" in held.text
        told = reported(report, box)
        assert told["outcome"] == "failed"
        assert "in use: box another" in told["errors"][0]["found"]
        box.run(f"sudo rm {marker}")
        gone = pyinfra(DEPLOY, "-y", "--data", f"prune={old[:12]}", box=box.name)
        assert gone.status == 0, gone.text
        assert box.run(f"sudo ls -A {HOME}").stdout.split() == [new]
        assert pyinfra(DEPLOY, "-y", box=box.name).changed == []
    finally:
        hub.add_repo(TINY, lab.models / TINY)
        (lab.root / "locks" / lock_name(Model(repo=TINY))).unlink()
