"""Eight simulated GPUs, the stub engine, and a login that has to use sudo."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inventory.catalogue import KIMI_K25, MINIMAX_M25
from tests.deploys.state import probed, unlike
from tests.lab import old_service
from tests.lab.base import Lab
from tests.lab.box import Box
from tests.lab.converge import pyinfra
from tests.lab.desired import host

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]


def visible(text: str) -> list[str]:
    """UUIDs that the shown unit pins."""
    (line,) = re.findall(r"\+Environment=CUDA_VISIBLE_DEVICES=(\S+)", text)
    return [str(uuid) for uuid in line.split(",")]


def nodes(box: Box) -> dict[str, str]:
    """NUMA node of each GPU, asked of the simulated machine itself."""
    rows = box.run(
        "nvidia-smi --query-gpu=uuid,pci.bus_id --format=csv,noheader,nounits"
    ).stdout.splitlines()
    found = {}
    for row in rows:
        uuid, bus = row.split(", ")
        path = f"/opt/simulated/sys/bus/pci/devices/{bus[4:].lower()}/numa_node"
        found[uuid] = box.run(f"cat {path}").stdout.strip()
    return found


def test_four_gpus_of_one_numa_node_are_chosen_by_uuid(gpu_box: Box) -> None:
    old_service.install(gpu_box)
    run = pyinfra("deploys/minimax.py", "--dry", "--diff", box=gpu_box.name)
    assert run.status == 0, run.text
    chosen, where = visible(run.text), nodes(gpu_box)
    assert len(set(chosen)) == 4
    assert len({where[uuid] for uuid in chosen}) == 1
    assert "--tensor-parallel-size 4" in run.text
    assert "+Environment=CUDA_DEVICE_ORDER=PCI_BUS_ID" in run.text


def test_kimi_takes_all_eight(gpu_box: Box) -> None:
    run = pyinfra("deploys/kimi.py", "--dry", "--diff", box=gpu_box.name)
    assert run.status == 0, run.text
    where = nodes(gpu_box)
    # The unit by hand already names them by index: the shown unit names them by UUID.
    assert set(visible(run.text)) == set(where)
    assert len(where) == 8


@pytest.mark.parametrize(
    ("arguments", "shows"),
    [
        (["facts.gpu.Gpus", "sysfs=/opt/simulated/sys"], lambda value, _: len(value["gpus"]) == 8),
        (["facts.gpu.NumaNodes", "sysfs=/opt/simulated/sys"], lambda value, _: len(value) == 2),
        (
            ["facts.parts.Disks", "paths=/shared/x,/opt"],
            lambda value, _: value[0]["parent"] == "/shared",
        ),
        (
            ["facts.parts.Units", "units=vllm-kimi-k25.service,no.service"],
            lambda value, _: [unit["load_state"] for unit in value] == ["loaded", "not-found"],
        ),
        (["facts.parts.Snapshots", "folder=/shared/none"], lambda value, _: not value["exists"]),
        (["facts.parts.Engines", "folder=/opt/vllm/none"], lambda value, _: not value["exists"]),
        (
            ["facts.parts.Listeners", "port=8000"],
            # Other boxes' listeners are seen too: they share this machine's network.
            lambda value, box: (
                [one["unit"] for one in value if one["address"] == box.address] == [KIMI_K25.unit]
            ),
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_each_fact_prints_plain_json(
    gpu_box: Box, arguments: list[str], shows: Callable[[Any, Box], bool]
) -> None:
    run = pyinfra("fact", *arguments, box=gpu_box.name)
    assert run.status == 0, run.text
    _, _, printed = run.text.partition("--> Fact data for: ")
    value, _ = json.JSONDecoder().raw_decode(printed[printed.index("{") :])
    assert shows(value[gpu_box.name], gpu_box)


def test_a_switch_by_an_ordinary_user_with_sudo(gpu_box: Box, lab: Lab) -> None:
    assert gpu_box.connection.ssh_user == "operator"
    run = pyinfra("deploys/minimax.py", "-y", box=gpu_box.name)
    assert run.status == 0, run.text
    holders = gpu_box.run(
        "nvidia-smi --query-compute-apps=gpu_uuid,process_name --format=csv,noheader"
    ).stdout.splitlines()
    assert len(holders) == 4
    before = probed(gpu_box, lab)
    again = pyinfra("deploys/minimax.py", "-y", box=gpu_box.name)
    assert (again.status, again.changed) == (0, []), again.text
    assert unlike(probed(gpu_box, lab), before) == []


def test_a_reboot_comes_back_serving_and_changes_nothing_but_the_note(gpu_box: Box) -> None:
    gpu_box.reboot()
    run = pyinfra("deploys/minimax.py", "-y", box=gpu_box.name)
    assert run.status == 0, run.text
    # Another start has to be seen to answer; nothing else is to be done.
    assert run.changed == ["vllm-minimax-m25: serving"]


@pytest.mark.parametrize(
    ("break_it", "changed"),
    [
        (
            f"systemctl stop {MINIMAX_M25.unit}",
            ["vllm-minimax-m25: serving"],
        ),
        (
            f"systemctl disable --quiet {MINIMAX_M25.unit}",
            ["vllm-minimax-m25: serving"],
        ),
        (f"systemctl start {KIMI_K25.unit}", ["vllm-minimax-m25: serving"]),
        (
            f"systemctl enable --quiet --runtime {KIMI_K25.unit}",
            ["vllm-minimax-m25: serving"],
        ),
        ("rm /shared/models/lab/tiny-minimax-m2/*/config.json", ["vllm-minimax-m25: snapshot"]),
        (
            "truncate -s 100 /shared/models/lab/tiny-minimax-m2/*/model-00001-of-00006.safetensors",
            ["vllm-minimax-m25: snapshot"],
        ),
        (
            "rm -r /opt/vllm/boxwright-stub-engine-0.32.0/boxwright.json",
            ["vllm-minimax-m25: engine 0.32.0"],
        ),
        ("rm /opt/boxwright/*/complete", ["boxwright's programs"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_thing_broken_is_one_thing_changed(
    gpu_box: Box, break_it: str, changed: list[str]
) -> None:
    gpu_box.run(break_it, user="root")
    run = pyinfra("deploys/minimax.py", "-y", box=gpu_box.name)
    assert run.status == 0, run.text
    assert [re.sub(r"(snapshot) [0-9a-f]{12}$", r"\1", name) for name in run.changed][
        :1
    ] == changed[:1]
    again = pyinfra("deploys/minimax.py", "-y", box=gpu_box.name)
    assert (again.status, again.changed) == (0, []), again.text


def test_a_flag_that_the_installed_engine_does_not_know_stops_before_the_switch(
    gpu_box: Box, lab: Lab, tmp_path: Path
) -> None:
    name, known = host(gpu_box.name, lab)
    override = {
        **known["override"],
        MINIMAX_M25.name: {"engine": {"extra_args": ["--no-such-flag"]}},
    }
    path = tmp_path / "inventory_of_a_test.py"
    path.write_text(f"boxes = [({name!r}, { ({**known, 'override': override})!r})]\n")
    started = gpu_box.run(f"systemctl show -P InvocationID {MINIMAX_M25.unit}").stdout
    run = pyinfra("deploys/minimax.py", "-y", inventory=path)
    assert run.status != 0
    assert "--no-such-flag is not among the" in run.text
    assert run.four_parts == ["wanted", "found", "why", "next"]
    assert "--no-such-flag" not in gpu_box.run(f"systemctl cat {MINIMAX_M25.unit}").stdout
    assert gpu_box.run(f"systemctl show -P InvocationID {MINIMAX_M25.unit}").stdout == started


def test_an_engine_that_crashes_fails_the_run_with_its_own_words(gpu_box: Box) -> None:
    gpu_box.run(f"systemctl stop {MINIMAX_M25.unit}", user="root")
    gpu_box.run(
        'echo \'{"crash": "sampler-oom", "load_seconds": 0.5}\' >/opt/simulated/plan.json',
        user="root",
    )
    run = pyinfra("deploys/minimax.py", "-y", box=gpu_box.name)
    gpu_box.run("rm /opt/simulated/plan.json", user="root")
    assert run.status != 0
    assert "its main process ended: exit status" in run.text
    assert "CUDA out of memory occurred when warming up sampler" in run.text
    # The cause, not its echoes, and the flag that removes it.
    assert re.search(r"next: .*--max-num-seqs \d+", run.text)
    assert run.four_parts == ["wanted", "found", "why", "next"]
