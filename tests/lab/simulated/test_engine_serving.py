"""A stub engine that starts and serves: readiness, answers, its processes, its end."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.lab.simulated.driver import Running, engine
from tests.lab.simulated.gpus.books import Books, start_time
from tests.lab.simulated.gpus.description import BOOKS, MIB, eight_gpus

GIB = 1024 * MIB
UUIDS = [gpu.uuid for gpu in eight_gpus().gpus]
ORDER = (
    "non-default args: {",
    "Initializing a V1 LLM engine (v0.32.0) with config: ",
    "vLLM is using nccl==",
    "Loading model from scratch...",
    "Filesystem type for checkpoints: ",
    "Loading safetensors checkpoint shards:",
    "Loading weights took ",
    "Model loading took 20.00 GiB memory and ",
    "torch.compile took ",
    "Available KV cache memory: ",
    "GPU KV cache size: ",
    "Graph capturing finished in ",
    "CUDA graph pool memory: ",
    "Free memory on device (94.31/94.97 GiB) on startup. Desired GPU memory utilization is ",
    "init engine (profile, create kv cache, warmup model) took ",
    "Supported tasks: ['generate']",
    "Starting vLLM server on http://127.0.0.1:",
    "Application startup complete.",
)
"""Lines of a start, in the order in which vLLM logs them."""


def books(root: Path) -> Books:
    """The books of the box."""
    return Books(root / BOOKS, 1.0)


def test_a_start_from_bound_to_gone(root: Path, site: Path) -> None:
    with engine(root, site, plan={"weights_gib": 40, "load_seconds": 0.8}) as stub:
        stub.wait_for("Loading model from scratch...")
        with pytest.raises(OSError, match="refused"):
            stub.get("/health")
        stub.wait_ready()
        # The ranks do not wait for each other's lines: look at those of the first.
        log = "\n".join(line for line in stub.log.splitlines() if "(Worker_TP1" not in line)
        places = [log.index(line) for line in ORDER]
        assert places == sorted(places)
        assert stub.get("/health")[0] == 200
        assert stub.get("/version") == (200, {"version": "0.32.0"})
        [model] = stub.get("/v1/models")[1]["data"]
        assert (model["id"], model["max_model_len"]) == ("lab/model", 196608)
        status, answer = stub.ask()
        assert status == 200
        assert answer["choices"][0]["message"]["content"] == "Paris is the capital of"
        assert answer["usage"]["completion_tokens"] == 5
        metrics = stub.get("/metrics")[1]
        assert 'vllm:generation_tokens_total{engine="0",model_name="lab/model"} 5.0' in metrics

        holders = books(root).holders()
        assert [holder.gpu for holder in holders] == UUIDS[:2]
        assert all(holder.size > 80 * GIB for holder in holders)
        names = [Path(f"/proc/{holder.pid}/cmdline").read_bytes() for holder in holders]
        assert [name.rstrip(b"\0") for name in names] == [b"VLLM::Worker_TP0", b"VLLM::Worker_TP1"]
        comm = Path(f"/proc/{parent(holders[0].pid)}/comm").read_text()
        assert comm == "VLLM::EngineCor\n", "as the kernel cuts it"

        start = time.monotonic()
        stub.process.send_signal(signal.SIGTERM)
        assert stub.end() == 0
        assert time.monotonic() - start < 2
        assert "[shutdown] API server: shutdown triggered" in stub.log
    assert [holder.alive for holder in books(root).holders()] == [False, False]


def parent(pid: int) -> int:
    """The parent of a process."""
    text = Path(f"/proc/{pid}/stat").read_text()
    return int(text[text.rindex(")") :].split()[2])


def test_one_rank_lives_in_the_engine(root: Path, site: Path) -> None:
    flags = ("--tensor-parallel-size", "1", "--enforce-eager", "--api-key", "secret")
    with engine(root, site, *flags, devices=UUIDS[6]) as stub:
        stub.wait_ready()
        [holder] = books(root).holders()
        assert holder.gpu == UUIDS[6]
        assert parent(holder.pid) == stub.process.pid
        assert "torch.compile" not in stub.log
        assert stub.get("/health")[0] == 200, "open without a key"
        assert stub.get("/v1/models")[0] == 401
        assert stub.get("/v1/models", Authorization="Bearer secret")[0] == 200


def test_a_box_without_gpus(fresh: Path, site: Path) -> None:
    (fresh / "opt/simulated/box.json").unlink()
    with engine(fresh, site, devices=None) as stub:
        stub.wait_ready()
        assert "CPU KV cache size: " in stub.log
        assert books(fresh).holders() == []


def test_requests_that_are_refused(root: Path, site: Path) -> None:
    with engine(root, site) as stub:
        stub.wait_ready()
        status, answer = stub.ask(model="other")
        assert (status, answer["error"]["message"]) == (404, "The model `other` does not exist.")
        assert stub.get("/v1/unheard-of")[0] == 404
        status, text = stub.ask(stream=True)
        parts = [json.loads(line[6:]) for line in text.split("\n\n") if line.startswith("data: {")]
        words = [part["choices"][0]["delta"]["content"] for part in parts[:-1]]
        assert "".join(words) == "Paris is the capital of"
        assert parts[-1]["usage"]["completion_tokens"] == 5


SERVING = {
    "garbage": (200, "!!!!!"),
    "not-json": (200, "<html>"),
    "empty": (200, "'content': None"),
    "error": (500, "EngineCore encountered an issue"),
    "die": (500, "EngineCore encountered an issue"),
}


def test_serving_badly(root: Path, site: Path) -> None:
    with ExitStack() as stack:
        stubs = started(stack, root, site, {name: {"serve": name} for name in SERVING})
        for name, (wanted, words) in SERVING.items():
            stubs[name].wait_ready()
            assert stubs[name].get("/health")[0] == 200
            status, answer = stubs[name].ask()
            assert (status, words in str(answer)) == (wanted, True), name
        assert stubs["die"].end() == 0, "as vLLM ends after the death of its engine"
        log = stubs["die"].log
        cause = log.index("torch.AcceleratorError: CUDA error: an illegal memory access")
        assert cause < log.index("EngineCore encountered a fatal error.")
        assert "EngineDeadError" in log


def started(
    stack: ExitStack, root: Path, site: Path, plans: Mapping[str, Mapping[str, Any]]
) -> dict[str, Running]:
    """Stubs beside each other, each on one card."""
    return {
        name: stack.enter_context(
            engine(root, site, "--tensor-parallel-size", "1", plan=plan, devices=str(card))
        )
        for card, (name, plan) in enumerate(plans.items())
    }


def test_serving_nothing(root: Path, site: Path) -> None:
    with ExitStack() as stack:
        stubs = started(stack, root, site, {name: {"serve": name} for name in ("hang", "silent")})
        stubs["hang"].wait_ready()
        with pytest.raises(TimeoutError):
            stubs["hang"].ask(seconds=0.3)
        assert stubs["hang"].get("/health")[0] == 200
        metrics = stubs["hang"].get("/metrics")[1]
        assert 'vllm:num_requests_running{engine="0",model_name="lab/model"} 1.0' in metrics
        stubs["silent"].wait_ready()
        with pytest.raises(TimeoutError):
            stubs["silent"].get("/health", seconds=0.3)


def test_a_killed_worker_ends_the_server_with_0(root: Path, site: Path) -> None:
    with engine(root, site) as stub:
        stub.wait_ready()
        os.kill(books(root).holders()[1].pid, signal.SIGKILL)
        assert stub.end() == 0
        assert "Worker proc VllmWorker-1 died unexpectedly (exit code: -9)" in stub.log
        assert "AsyncLLM output_handler failed." in stub.log


def test_a_killed_server_leaves_orphans(root: Path, site: Path) -> None:
    with ExitStack() as stack:
        plans = {"orphans": {"orphans": True}, "none": {"orphans": False}}
        stubs = started(stack, root, site, plans)
        for stub in stubs.values():
            stub.wait_ready()
        pids = {holder.gpu: holder.pid for holder in books(root).holders()}
        for stub in stubs.values():
            stub.process.kill()
            stub.process.wait()
        until = time.monotonic() + 10
        while start_time(pids[UUIDS[1]]):
            assert time.monotonic() < until
            time.sleep(0.05)
        time.sleep(0.3)
        alive = {holder.gpu: holder.alive for holder in books(root).holders()}
        assert alive[UUIDS[0]]
        assert not alive.get(UUIDS[1], False)
        log = stubs["orphans"].log
        assert "shutdown" not in log, "nobody told the engine"


LOADING = "Loading model from scratch..."


def test_sigterm_before_it_serves(root: Path, site: Path) -> None:
    slow = {"seconds": {"load": 1.0}}
    plans: dict[str, dict[str, Any]] = {
        "ignore": slow,
        "leave": {"seconds": {"load": 60}, "sigterm_while_loading": "leave"},
        "early": {"hang_at": "config"},
    }
    with ExitStack() as stack:
        stubs = started(stack, root, site, plans)
        for name, words in (("ignore", LOADING), ("leave", LOADING), ("early", "non-default args")):
            stubs[name].wait_for(words)
            stubs[name].process.send_signal(signal.SIGTERM)
        assert stubs["leave"].end() == 0
        assert "Application startup complete." not in stubs["leave"].log
        assert stubs["early"].end() == -signal.SIGINT
        assert "KeyboardInterrupt: terminated" in stubs["early"].log
        assert stubs["ignore"].end() == 0
        assert "Application startup complete." in stubs["ignore"].log


def test_a_hang(root: Path, site: Path) -> None:
    with engine(root, site, plan={"hang_at": "init"}) as stub:
        stub.wait_for("vLLM is using nccl==")
        time.sleep(0.4)
        assert stub.process.poll() is None
        assert LOADING not in stub.log
        with pytest.raises(OSError, match="refused"):
            stub.get("/health")
