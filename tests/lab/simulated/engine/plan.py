"""What a stub engine is to do, told by a test.

Looked for in ``STUB_PLAN`` (JSON), in the file that ``STUB_PLAN_FILE`` names, and in
``/opt/simulated/plan.json``; the first that is there counts. A plan is an object with the
fields of :class:`Plan`; ``"services"`` in it holds further fields for one served model name.

Example: the second service runs out of memory in its warm-up, the first one loads for 3 s::

    {"load_seconds": 3, "services": {"lab/minimax": {"crash": "sampler-oom"}}}
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ..gpus.description import root

PHASES: Mapping[str, float] = {
    "start": 0.04,
    "config": 0.06,
    "init": 0.10,
    "load": 0.40,
    "compile": 0.20,
    "profile": 0.05,
    "capture": 0.10,
    "warmup": 0.05,
}
"""The phases of a start, in order, with their share of its time."""

PLAN_FILE = "opt/simulated/plan.json"
SERVING = frozenset({"answer", "hang", "silent", "garbage", "not-json", "empty", "error", "die"})


class PlanError(ValueError):
    """The plan is malformed."""


@dataclass(frozen=True)
class Plan:
    """One start.

    + load_seconds: from the start to readiness
    + seconds: of single phases, in place of their share
    + crash: a failure of ``failures.CATALOGUE``; empty for none
    + at: the phase of the crash, in place of the failure's own
    + exit: status of the main process after the crash, in place of vLLM's own
    + hang_at: the phase that never ends
    + serve: ``answer``; ``hang`` (completions never come, /health is 200); ``silent``
      (connections are taken, nothing is answered); ``garbage`` (text of one sign);
      ``not-json``; ``empty`` (no text); ``error`` (500); ``die`` (the engine dies of the first
      request, and the server with it, status 0)
    + sigterm_while_loading: ``ignore`` as vLLM does, or ``leave``
    + orphans: the engine outlives a server that is killed, as vLLM's does
    + weights_gib: of the whole model; None for the size of its files
    + overhead_gib: of each rank beside weights and KV cache
    + context_gib: of each rank before anything is loaded
    + tokens_per_second: of one request; 0 for no delay
    + text: what the model says
    """

    load_seconds: float = 1.0
    seconds: Mapping[str, float] = field(default_factory=dict)
    crash: str = ""
    at: str = ""
    exit: int | None = None
    hang_at: str = ""
    serve: str = "answer"
    sigterm_while_loading: str = "ignore"
    orphans: bool = True
    weights_gib: float | None = None
    overhead_gib: float = 4.0
    context_gib: float = 0.66
    tokens_per_second: float = 0.0
    text: str = "Paris is the capital of France."

    def __post_init__(self) -> None:
        phases = {self.at, self.hang_at, *self.seconds} - {""}
        if not phases <= PHASES.keys():
            raise PlanError(f"no phase {sorted(phases - PHASES.keys())}; one of {list(PHASES)}")
        if self.serve not in SERVING:
            raise PlanError(f"serve is {self.serve!r}; one of {sorted(SERVING)}")

    def duration(self, phase: str) -> float:
        """Seconds of one phase."""
        return self.seconds.get(phase, PHASES[phase] * self.load_seconds)


def plan_from(given: Mapping[str, Any], served_name: str) -> Plan:
    """The plan of one service. Raises PlanError with the name of a field that is none."""
    merged = dict(given)
    services = merged.pop("services", {})
    merged.update(services.get(served_name, {}))
    known = {item.name for item in fields(Plan)}
    if unknown := merged.keys() - known:
        raise PlanError(f"unknown in a plan: {', '.join(sorted(unknown))}")
    return Plan(**merged)


def read_plan(served_name: str) -> Plan:
    """The plan for this start."""
    text = os.environ.get("STUB_PLAN")
    if text is None:
        path = os.environ.get("STUB_PLAN_FILE")
        file = Path(path) if path else root() / PLAN_FILE
        text = file.read_text() if file.exists() else "{}"
    return plan_from(json.loads(text), served_name)
