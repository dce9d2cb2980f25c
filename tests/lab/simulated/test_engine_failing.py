"""A stub engine that fails: by the plan, and by the box."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.lab.simulated import install
from tests.lab.simulated.driver import engine, free_port
from tests.lab.simulated.engine.failures import CATALOGUE
from tests.lab.simulated.engine.plan import PlanError, plan_from
from tests.lab.simulated.gpus.books import Books
from tests.lab.simulated.gpus.description import BOOKS, MIB, eight_gpus

GIB = 1024 * MIB
CARD = eight_gpus().gpus[0].uuid
ECHO = "RuntimeError: Engine core initialization failed. See root cause above."

CAUSES = {
    "free-memory": "GiB) on startup is less than desired GPU memory utilization (0.92, 87.37 GiB).",
    "weights-oom": "Failed to load model - not enough GPU memory. ",
    "no-cache-blocks": "ValueError: No available memory for the cache blocks.",
    "kv-too-small": "To serve at least one request with the model's max seq len (196608), (",
    "sampler-oom": "CUDA out of memory occurred when warming up sampler with 1024 dummy requests.",
    "warm-up-oom": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 781.50 MiB. GPU",
    "graph-oom": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.10 GiB. GPU",
    "moving-baseline": "AssertionError: Error in memory profiling. Initial free memory 94.31 GiB",
    "driver-too-old": "The NVIDIA driver on your system is too old (found version 12080)",
    "nccl-error": "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for",
    "missing-shard": "FileNotFoundError: Weight files referenced in index but missing: {'",
    "broken-shard": "SafetensorError: Error while deserializing header: incomplete metadata",
    "no-device": "RuntimeError: Failed to infer device type, please set the environment variable",
    "killed": "WorkerProc initialization failed due to an exception in a background process.",
}
"""Failure -> words by which a diagnosis knows it."""


@dataclass(frozen=True)
class Case:
    """One start that fails.

    + words: of its cause, in the log
    + status: of the main process
    """

    words: str
    status: int = 1
    flags: tuple[str, ...] = ()
    plan: Mapping[str, Any] = field(default_factory=dict)
    model: Path | None = None
    devices: str | None = "0,1"
    port: int | None = None


def outcomes(root: Path, site: Path, cases: Mapping[str, Case]) -> dict[str, str]:
    """Run starts beside each other to their ends. Returns their logs; statuses are checked."""
    logs = {}
    with ExitStack() as stack:
        started = {
            name: stack.enter_context(
                engine(
                    root,
                    site,
                    *case.flags,
                    plan={"load_seconds": 0.1, **case.plan},
                    devices=case.devices,
                    port=case.port,
                    model=case.model,
                )
            )
            for name, case in cases.items()
        }
        for name, stub in started.items():
            status = stub.end(40)
            logs[name] = stub.log
            assert status == cases[name].status, (name, status, logs[name])
            assert cases[name].words in logs[name], (name, logs[name])
            assert "Application startup complete" not in logs[name], name
    return logs


def test_every_failure_on_cue(fresh: Path, site: Path) -> None:
    assert CAUSES.keys() == CATALOGUE.keys()
    (fresh / "opt/simulated/box.json").unlink()
    cases = {name: Case(words, plan={"crash": name}) for name, words in CAUSES.items()}
    cases["status"] = Case(CAUSES["graph-oom"], 7, plan={"crash": "graph-oom", "exit": 7})
    logs = outcomes(fresh, site, cases)
    for name, log in logs.items():
        assert (ECHO in log) == (name != "no-device"), name
        if name not in {"no-device", "killed", "no-cache-blocks", "kv-too-small"}:
            # The cause comes from the worker, before every echo.
            assert log.index("(Worker") < log.index(CAUSES.get(name, "CUDA out of memory"))
            assert log.index(" ERROR ") < log.index("EngineCore failed to start.")
    assert "(Worker pid=" in line_of(logs["free-memory"], CAUSES["free-memory"])
    assert "(Worker_TP" in line_of(logs["sampler-oom"], CAUSES["sampler-oom"])
    assert logs["sampler-oom"].count(CAUSES["sampler-oom"]) > 4, "a failed call is told twice"


def line_of(log: str, words: str) -> str:
    """The first line that holds some words."""
    return next(line for line in log.splitlines() if words in line)


def test_memory_that_does_not_suffice(fresh: Path, site: Path) -> None:
    install(fresh, replace(eight_gpus(), release_seconds=0))
    Books(fresh / BOOKS, 0).hold(CARD, 10 * GIB)
    high = ("--gpu-memory-utilization", "0.97")
    logs = outcomes(
        fresh,
        site,
        {
            "taken": Case(f"cuda:0 (84.31/94.97 {CAUSES['free-memory']}"),
            "weights": Case(CAUSES["weights-oom"], plan={"weights_gib": 200}, devices="2,3"),
            "nothing": Case(
                CAUSES["no-cache-blocks"],
                plan={"weights_gib": 170, "overhead_gib": 8},
                devices="4,5",
            ),
            "context": Case(
                CAUSES["kv-too-small"],
                plan={"weights_gib": 120, "overhead_gib": 20},
                devices="6,7",
            ),
        },
    )
    # 87.37 - 60 - 20 GiB for the cache, 126,976 bytes a token, in blocks of 16.
    assert "the estimated maximum model length is 62320." in logs["context"]
    case = Case(CAUSES["warm-up-oom"], flags=high, devices="2,3")
    outcomes(fresh, site, {"sampler": case})
    with engine(fresh, site, *high, "--max-num-seqs", "256", devices="4,5") as stub:
        stub.wait_ready()


def test_what_is_wrong_before_any_memory(fresh: Path, site: Path) -> None:
    torn, holes = fresh / "torn", fresh / "holes"
    for copy in (torn, holes):
        copy.mkdir()
        for source in (fresh / "model").glob("*.*"):
            (copy / source.name).write_bytes(source.read_bytes())
    shard = torn / "model-00002-of-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1])
    (holes / shard.name).unlink()
    with engine(fresh, site, devices="6,7", port=free_port()) as other:
        other.wait_ready()
        port = int(other.url.rpartition(":")[2])
        logs = outcomes(
            fresh,
            site,
            {
                "torn": Case(CAUSES["broken-shard"], model=torn),
                "holes": Case(f"{CAUSES['missing-shard']}{holes}/{shard.name}'}}", model=holes),
                "folder": Case(
                    f"HFValidationError: Repo id must be in the form 'repo_name' or "
                    f"'namespace/repo_name': '{fresh}/none'",
                    model=fresh / "none",
                ),
                "flag": Case(
                    "api_server.py: error: unrecognized arguments: --enable-turbo",
                    2,
                    ("--enable-turbo",),
                ),
                "port": Case("OSError: [Errno 98] Address already in use", port=port),
                "few": Case(
                    "World size (2) is larger than the number of available GPUs (1) in this node.",
                    devices="3",
                ),
                "none": Case(CAUSES["no-device"], devices=""),
                "plan": Case("stub plan: unknown in a plan: loud", 78, plan={"loud": True}),
                "crash": Case("stub plan: no failure 'x'", 78, plan={"crash": "x"}),
            },
        )
    assert logs["flag"].startswith("usage: api_server.py [-h]")
    assert "--max-num-seqs MAX_NUM_SEQS" in logs["flag"]


def test_plans() -> None:
    given = {"load_seconds": 2, "services": {"a": {"serve": "hang"}, "b": {"crash": "killed"}}}
    assert (plan_from(given, "a").serve, plan_from(given, "a").load_seconds) == ("hang", 2)
    assert (plan_from(given, "b").crash, plan_from(given, "c").crash) == ("killed", "")
    assert plan_from({"load_seconds": 10, "seconds": {"load": 1}}, "x").duration("load") == 1
    assert plan_from({"load_seconds": 10}, "x").duration("load") == pytest.approx(4)
    with pytest.raises(PlanError, match="no phase"):
        plan_from({"hang_at": "lunch"}, "x")
    with pytest.raises(PlanError, match="serve is 'tea'"):
        plan_from({"serve": "tea"}, "x")
