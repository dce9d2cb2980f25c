"""Units of a box that start as a test says, and the waiter that watches them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operations.tools import programs
from tests.lab.box import Box
from tests.lab.simulated import build_wheel

FOLDER = "/opt/waiting"
PORT = 8000
MODEL = "lab/new"

_UNPACK = f"""
import json, pathlib, sys
for name, text in json.load(sys.stdin).items():
    path = pathlib.Path("{FOLDER}", name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
"""

_WATCHES = """
import json, sys, time
from inventory.common.switch import Target
from operations.remote.switch.errors import SwitchError
from operations.remote.switch.waiting.expectation import Expectation
from operations.remote.switch.waiting.wait import wait
order = json.load(sys.stdin)
lines, began = [], time.monotonic()
seen = {"lines": lines, "began": began}
try:
    expect = Expectation(**order["expect"])
    say = lambda line: lines.append((time.monotonic(), line))
    ready = wait(Target(**order["target"]), expect, say)
    seen.update(kind="ready", sentence="", ready=vars(ready))
except SwitchError as error:
    seen.update(kind=error.kind, sentence=error.sentence)
seen["at"] = time.monotonic()
print(json.dumps(seen))
"""


@dataclass(frozen=True)
class Seen:
    """How a wait ended. Times by the box's monotonic clock, in seconds.

    + lines: what was said, and when
    + ready: the fields of Ready, where it was
    """

    kind: str
    sentence: str
    began: float
    at: float
    lines: list[tuple[float, str]]
    ready: dict[str, Any]


def prepare(box: Box, folder: Path) -> None:
    """Put the programs and the stub engine into a box."""
    files = {**programs(), "watches.py": _WATCHES}
    box.run(f"mkdir -p {FOLDER}; cat >{FOLDER}/unpack.py", stdin=_UNPACK)
    box.run(f"python3 {FOLDER}/unpack.py", stdin=json.dumps(files))
    wheel = build_wheel(folder)
    (box.root / "opt/waiting/stub.whl").write_bytes(wheel.read_bytes())
    box.run(
        f"cd {FOLDER}; python3 -m zipfile -e stub.whl .; mkdir -p model; "
        'echo \'{"architectures": ["MiniMaxM2ForCausalLM"]}\' >model/config.json; '
        "printf '\\002\\0\\0\\0\\0\\0\\0\\0{}' >model/model.safetensors"
    )


def engine(box: Box, plan: dict[str, Any], *, name: str = MODEL, more: str = "") -> str:
    """The command of a stub engine.

    It takes so little memory that another start fits beside what the last one has not given back.

    + plan: what it does
    + more: further arguments
    """
    text = json.dumps({"weights_gib": 1, "load_seconds": 0.4, **plan})
    return (
        f"/usr/bin/env PYTHONPATH={FOLDER} CUDA_VISIBLE_DEVICES=0,1 'STUB_PLAN={text}' "
        f"/usr/bin/python3 -m boxwright_stub_engine --model {FOLDER}/model --max-model-len 4096 "
        f"--tensor-parallel-size 2 --served-model-name {name} --host {box.address} "
        f"--port {PORT} --max-num-seqs 8 --gpu-memory-utilization 0.3 {more}"
    )


def write_unit(box: Box, unit: str, command: str, *lines: str) -> None:
    """Install a unit in place of one of that name, which is ended. It is not started.

    + command: for ExecStart
    + lines: further ones of its [Service], or of another section after its head
    """
    text = "\n".join(["[Service]", f"ExecStart={command}", *lines, ""])
    end = f"systemctl kill -s KILL {unit}; systemctl stop {unit}; systemctl reset-failed {unit}"
    box.run(
        f"({end}) 2>/dev/null; cat >/etc/systemd/system/{unit}; systemctl daemon-reload",
        stdin=text,
    )


def watch(
    box: Box,
    unit: str,
    *,
    during: str = "",
    first: str = "",
    length: int | None = None,
    environment: str = "",
    **expect: Any,
) -> Seen:
    """Run the waiter in the box.

    + first: commands before it begins
    + during: commands that run beside it
    + length: declared context length
    + environment: variables of its own
    + expect: fields of Expectation
    """
    target = {
        "unit": unit,
        "url": f"http://{box.address}:{PORT}",
        "model": MODEL,
        "max_model_len": length,
    }
    given = {"timeout": 30.0, **expect}
    beside = f"({during}) >/dev/null 2>&1 & " if during else ""
    done = box.run(
        f"cd {FOLDER}; cat >order.json; {first or ':'}; {beside}"
        f"{environment} python3 watches.py <order.json",
        stdin=json.dumps({"target": target, "expect": given}),
    )
    return Seen(**{"ready": {}, **json.loads(done.stdout.splitlines()[-1])})
