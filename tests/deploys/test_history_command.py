"""``boxwright history``: what is on a real box, and what is said where nothing can be read."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploys.history import PARTLY
from inventory.errors import MISTAKE
from operations.tools import run_module
from tests.facts.history.recorded import DAY, NOW, OLD, TP4, entry, record, throughput
from tests.lab import layer
from tests.lab.base import REPO, Lab
from tests.lab.box import Box

BOXWRIGHT = Path(sys.executable).with_name("boxwright")
UNIT = "vllm-minimax-m25.service"


def boxwright(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BOXWRIGHT, "history", *arguments], cwd=REPO, capture_output=True, text=True, check=False
    )


def inventory(folder: Path, *hosts: tuple[str, dict[str, object]]) -> str:
    path = folder / "boxes.py"
    path.write_text(f"boxes = {list(hosts)!r}\n")
    return str(path)


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    """A box with boxwright's programs, where an ordinary user with sudo logs in."""
    lab = Lab()
    layers = [layer.tools().ensure(lab)]
    with Box("recorded", lab, user="operator", simulated=True, layers=layers) as box:
        yield box


@pytest.mark.lab
@pytest.mark.timeout(120)
def test_two_starts_are_saved_on_a_box_and_compared(box: Box, tmp_path: Path) -> None:
    first = entry(OLD, UNIT, gpus=4, ready=NOW - DAY)
    second = entry(TP4, UNIT, gpus=4)
    for one in (second, first):
        saved = box.run(
            run_module("switch.record", "save", UNIT), stdin=json.dumps(one), user="root"
        )
        assert saved.stdout.startswith(f"/var/lib/boxwright/record/{UNIT}/{int(one['ready'])}-")
    more = throughput({1: 61.0})
    amend = run_module("switch.record", "amend", UNIT, str(second["invocation"]))
    box.run(amend, stdin=json.dumps(more), user="root")
    last = box.run(run_module("switch.record", "last", UNIT), user="operator").stdout
    assert json.loads(last) == record(TP4, UNIT, throughput=more).to_json()

    link = box.connection
    data = {key: value for key, value in vars(link).items() if key.startswith("ssh_")}
    hosts = inventory(tmp_path, (box.name, data))
    shown = boxwright(hosts)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "3 min 9 s against 3 min 35 s: as many bytes, 1.3x faster read" in shown.stdout
    assert "  61  " in shown.stdout

    # One that is torn is named; what is asked for in JSON is the whole answer.
    box.run(f"echo '{{' >/var/lib/boxwright/record/{UNIT}/1-0000000a.json", user="root")
    again = boxwright(hosts, "--json", "--unit", "vllm-minimax-m25", "--limit", box.name)
    assert again.returncode == PARTLY, again.stderr
    (told,) = json.loads(again.stdout)["boxes"]
    assert told["problems"] == [f"{UNIT}/1-0000000a.json: is not whole"]
    assert [start["ready"] for start in told["starts"]] == [NOW, NOW - DAY]
    assert sum(part["difference"] for part in told["comparisons"][0]["parts"]) == pytest.approx(-26)


def test_a_missing_inventory_is_said_in_four_parts(tmp_path: Path) -> None:
    done = boxwright(str(tmp_path / "none.py"))
    assert done.returncode == MISTAKE
    assert [line.split(":")[0].strip() for line in done.stderr.splitlines()] == [
        *("wanted", "found", "why", "next")
    ]


def test_a_box_that_does_not_answer_is_named(tmp_path: Path) -> None:
    # Port 9 of this machine: nobody listens.
    gone = ("gone", {"ssh_hostname": "127.0.0.1", "ssh_port": 9, "ssh_user": "root"})
    here: tuple[str, dict[str, object]] = ("@local", {})
    alone = boxwright(inventory(tmp_path, gone))
    assert alone.returncode == MISTAKE
    assert "Unable to connect to port 9" in alone.stderr
    assert alone.stderr.startswith("wanted: the records of the boxes in ")
    both = boxwright(inventory(tmp_path, gone, here), "--unit", "vllm-no-such-service")
    assert both.returncode == PARTLY
    assert "@local: no start was recorded" in both.stdout
    assert "gone: Could not connect" in both.stdout


def test_it_costs_the_other_commands_nothing() -> None:
    code = "import sys, deploys.cli; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True, check=False
    )
    loaded = set(done.stdout.split())
    assert "deploys.history" in loaded
    heavy = {"pyinfra", "facts.diagnosis", "facts.history", "facts.record", "rich"}
    assert loaded & heavy == set()
