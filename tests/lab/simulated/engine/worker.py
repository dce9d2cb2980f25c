"""One rank: what it logs, how long it takes, and the memory that it books."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import asdict

from .budget import Budget, gib
from .channel import Channel
from .console import Console, write_error
from .failures import Failure
from .processes import leave
from .report import by_worker, fault_in_worker
from .setting import Setting, role

TICK = 0.1
"""Seconds between two signs of life in the books."""


class Worker:
    """A rank, in a process of its own or inside the engine's.

    + rest: waits up to a tick, and may end the process where its parent is gone
    """

    def __init__(self, setting: Setting, rank: int, rest: Callable[[float], None]) -> None:
        self.setting = setting
        self.rank = rank
        self.rest = rest
        self.console = Console("Worker" if setting.ranks > 1 else "EngineCore")
        self.figures: Budget | None = None

    def phase(self, name: str) -> Failure | None:
        """Go through one phase. Returns how it failed; None if it did not."""
        if self.figures is None:
            self.figures = self.setting.budget(self.rank)
            self._book(self.figures.context)
        figures = self.figures
        start = time.monotonic()
        self._before(name)
        if self.setting.plan.hang_at == name:
            self.wait(float("inf"))
        duration = self.setting.plan.duration(name)
        if name == "load":
            self._load(figures, duration)
        else:
            self.wait(duration)
        failure = self.setting.failure(name, figures, self.rank)
        if failure is not None:
            return self._fail(failure)
        self._after(name, figures, time.monotonic() - start)
        return None

    def _fail(self, failure: Failure) -> Failure | None:
        if failure.stage == "killed":
            if self.rank == self.setting.ranks - 1:
                os.kill(os.getpid(), signal.SIGKILL)
            return None
        if failure.stage != "engine" and self.setting.ranks > 1:
            by_worker(self.console, failure)
        return failure

    def wait(self, seconds: float) -> None:
        """Live on for a time."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.rest(min(left, TICK))
            self.beat()

    def beat(self) -> None:
        """A sign of life in the books."""
        if self.figures is not None and self.setting.box is not None:
            self.setting.books.beat(self.setting.gpus[self.rank].uuid)

    def _book(self, size: int) -> None:
        if self.setting.box is not None:
            self.setting.books.hold(self.setting.gpus[self.rank].uuid, size, beating=True)

    def _load(self, figures: Budget, duration: float) -> None:
        """Read the shards; memory fills as they come."""
        shards = max(1, len(list(self.setting.model.path.glob("*.safetensors"))))
        steps = min(shards, 10)
        for step in range(1, steps + 1):
            self.wait(duration / steps)
            wanted = figures.context + figures.weights * step // steps
            self._book(min(wanted, figures.total - figures.others))
            if self.rank == 0:
                done = shards * step // steps
                write_error(
                    "\rLoading safetensors checkpoint shards: "
                    f"{100 * step // steps:3}% Completed | {done}/{shards}"
                )
        if self.rank == 0:
            write_error("\n")

    def _before(self, name: str) -> None:
        """The lines at the start of a phase."""
        say, ranks = self.console.say, self.setting.ranks
        if name == "init":
            say(
                "parallel_state.py:1906",
                f"world_size={ranks} rank={self.rank} local_rank={self.rank} "
                "distributed_init_method=tcp://127.0.0.1:51237 backend=nccl",
            )
            if self.rank == 0 and ranks > 1:
                say("pynccl.py:148", "vLLM is using nccl==2.28.9")
        if name == "load":
            self.console.role = role(self.setting, self.rank)
            if self.rank == 0:
                say("model_runner.py:392", "Loading model from scratch...")
                say(
                    "weight_utils.py:1108",
                    "Filesystem type for checkpoints: EXT4. Checkpoint size: "
                    f"{gib(self.setting.model.weights)} GiB. Available RAM: 488.60 GiB.",
                )
        if name == "compile":
            say("monitor.py:40", "Starting torch.compile")

    def _after(self, name: str, figures: Budget, seconds: float) -> None:
        """The lines at the end of a phase, and what it leaves in memory."""
        say = self.console.say
        match name:
            case "init" if self.rank == 0:
                say(
                    "parallel_state.py:2350",
                    f"rank 0 in world size {self.setting.ranks} is assigned as DP rank 0, PP rank "
                    "0, PCP rank 0, TP rank 0, ETP rank 0, EP rank 0, EPLB rank N/A",
                )
                say("gpu_worker.py:518", "Using V2 Model Runner")
            case "load":
                if self.rank == 0:
                    say("default_loader.py:501", f"Loading weights took {seconds:.2f} seconds")
                say(
                    "model_runner.py:424",
                    f"Model loading took {gib(figures.weights)} GiB memory and "
                    f"{seconds:.6f} seconds",
                )
            case "compile":
                say("monitor.py:62", f"torch.compile took {seconds:.2f} s in total")
            case "profile":
                if self.rank == 0:
                    say("gpu_worker.py:759", f"Available KV cache memory: {gib(figures.kv)} GiB")
                self._book(figures.context + figures.weights + figures.overhead + figures.kv)
            case "capture":
                say(
                    "model_runner.py:1127",
                    f"Graph capturing finished in {seconds:.0f} secs, took 1.32 GiB",
                )
                say(
                    "gpu_worker.py:971",
                    "CUDA graph pool memory: 1.32 GiB (actual), 2.61 GiB (estimated), "
                    "difference: 1.29 GiB (97.7%).",
                )
            case "warmup":
                self._advice(figures)

    def _advice(self, figures: Budget) -> None:
        """The line that looks like the free-memory error and is none."""
        kept = max(0, figures.kv - 150 * 1024 * 1024)
        more = figures.free - figures.weights - figures.overhead
        self.console.say(
            "gpu_worker.py:1034",
            f"Free memory on device ({gib(figures.free)}/{gib(figures.total)} GiB) on startup. "
            f"Desired GPU memory utilization is ({figures.utilization}, "
            f"{gib(figures.requested)} GiB). Actual usage is {gib(figures.weights)} GiB for "
            f"consumed memory (weights + non-torch), {gib(figures.overhead)} GiB for peak "
            "activation, and 1.32 GiB for CUDAGraph memory. Replace gpu_memory_utilization config "
            f"with `--kv-cache-memory={kept}` ({gib(kept)} GiB) to fit into requested memory, or "
            f"`--kv-cache-memory={more}` ({gib(more)} GiB) to fully utilize gpu memory. Current "
            f"kv cache memory in use is {gib(figures.kv)} GiB.",
        )


def run_worker(setting: Setting, rank: int, channel: Channel) -> int:
    """The process of one rank: does what the engine asks, and ends with it."""

    def rest(seconds: float) -> None:
        try:
            channel.receive(seconds)
        except EOFError:
            leave(0)

    worker = Worker(setting, rank, rest)
    while True:
        try:
            message = channel.receive(TICK)
        except EOFError:
            worker.console.say(
                "multiproc_executor.py:843", "Parent process exited, terminating worker queues"
            )
            return 0
        worker.beat()
        if message is None:
            continue
        if message["do"] == "fault":
            fault_in_worker(worker.console)
            return 1
        failure = worker.phase(message["do"])
        kv = worker.figures.kv if worker.figures else 0
        channel.send({"failure": asdict(failure) if failure else None, "kv": kv})
