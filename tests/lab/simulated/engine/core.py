"""The engine's process: starts the workers, leads them through the phases, watches them."""

from __future__ import annotations

import signal
import time
from types import FrameType

from .budget import BLOCK
from .channel import Channel, channel_pair
from .console import Console
from .failures import Failure
from .processes import ended, leave, spawn
from .report import ILLEGAL_ACCESS, by_engine, fatal_in_engine, fault_in_worker, worker_died
from .setting import Setting
from .worker import TICK, Worker, run_worker

PHASES = ("init", "load", "compile", "profile", "capture", "warmup")
EAGER = frozenset({"compile", "capture"})
"""Phases that ``--enforce-eager`` leaves out."""

SILENCE = 60.0
"""Seconds after which the engine says that it waits for its workers."""


WAITING = (
    "No available shared memory broadcast block found in 60 seconds. This typically happens "
    "when some processes are hanging or doing some time-consuming work (e.g. compilation, "
    "weight/kv cache quantization)."
)


class Core:
    """The engine.

    + server: the channel to the API server
    """

    def __init__(self, setting: Setting, server: Channel) -> None:
        self.setting = setting
        self.server = server
        self.console = Console("EngineCore")
        self.workers: dict[int, tuple[int, Channel]] = {}
        self.inside: Worker | None = None

    def run(self) -> int:
        """Start, serve, end. Returns the exit status."""
        signal.signal(signal.SIGTERM, self._terminated)
        arguments = self.setting.arguments
        self.console.say(
            "core.py:133",
            f"Initializing a V1 LLM engine (v{self.setting.version}) with config: "
            f"model='{arguments.model}', tensor_parallel_size={arguments.tensor_parallel_size}, "
            f"pipeline_parallel_size={arguments.pipeline_parallel_size}, "
            f"enforce_eager={bool(arguments.enforce_eager)}, "
            f"kv_cache_dtype={arguments.kv_cache_dtype}, "
            f"served_model_name={self.setting.served_name}",
        )
        self._start_workers()
        spent = {}
        for phase in PHASES:
            if arguments.enforce_eager and phase in EAGER:
                continue
            start = time.monotonic()
            failure = self._phase(phase)
            spent[phase] = time.monotonic() - start
            if failure is not None:
                self._stop_workers()
                by_engine(self.console, failure, self.setting.ranks)
                return 1
        init = sum(spent.get(phase, 0.0) for phase in PHASES[2:])
        compiled = f" (compilation: {spent['compile']:.2f} s)" if "compile" in spent else ""
        self.console.say(
            "core.py:395",
            f"init engine (profile, create kv cache, warmup model) took {init:.2f} s{compiled}",
        )
        self.server.send({"ready": True, "workers": [pid for pid, _ in self.workers.values()]})
        return self._serve()

    def _start_workers(self) -> None:
        ranks = self.setting.ranks
        if ranks == 1:
            # A single rank lives in the engine's own process.
            self.inside = Worker(self.setting, 0, time.sleep)
            return
        self.console.say(
            "multiproc_executor.py:153",
            "DP group leader: node_rank=0, node_rank_within_dp=0, master_addr=127.0.0.1, "
            f"mq_connect_ip=127.0.0.1 (local), world_size={ranks}, local_world_size={ranks}",
        )
        pairs = [channel_pair() for _ in range(ranks)]
        for rank, (ours, theirs) in enumerate(pairs):

            def work(rank: int = rank, channel: Channel = theirs) -> int:
                self.server.close()
                for one, other in pairs:
                    one.close()
                    if other is not channel:
                        other.close()
                return run_worker(self.setting, rank, channel)

            self.workers[rank] = (spawn(f"VLLM::Worker_TP{rank}", work), ours)
        for _, theirs in pairs:
            theirs.close()

    def _stop_workers(self) -> None:
        for pid, channel in self.workers.values():
            channel.close()
            while ended(pid) is None:
                time.sleep(0.01)

    def _phase(self, name: str) -> Failure | None:
        """Let every rank go through a phase."""
        if self.inside is not None:
            failure = self.inside.phase(name)
            room = [self.inside.figures.kv] if self.inside.figures else []
        else:
            for _, channel in self.workers.values():
                channel.send({"do": name})
            failure, room = self._answers(name)
        if failure is None and name == "profile":
            self._kv_line(min(room))
        return failure

    def _answers(self, phase: str) -> tuple[Failure | None, list[int]]:
        """Wait for every worker. Returns the first failure, and each rank's KV cache."""
        failures, room, since = [], [], time.monotonic()
        for _, channel in self.workers.values():
            answer = None
            while answer is None:
                try:
                    answer = channel.receive(TICK)
                except EOFError:
                    return Failure("killed", phase, ""), []
                if time.monotonic() - since > SILENCE:
                    since = time.monotonic()
                    self.console.say("shm_broadcast.py:871", WAITING)
            room.append(answer["kv"])
            if answer["failure"]:
                failures.append(Failure(**answer["failure"]))
        return next(iter(failures), None), room

    def _kv_line(self, room: int) -> None:
        model, arguments = self.setting.model, self.setting.arguments
        each = model.kv_bytes_per_token(arguments.tensor_parallel_size, arguments.kv_cache_dtype)
        length = arguments.max_model_len or model.number("max_position_embeddings")
        tokens = room // (each * BLOCK) * BLOCK
        self.console.say(
            "kv_cache_utils.py:2327",
            f"{'GPU' if self.setting.box else 'CPU'} KV cache size: {tokens:,} tokens, Maximum "
            f"concurrency for {length:,} tokens per request: {tokens / length:.2f}x",
        )

    def _serve(self) -> int:
        """Do what the server asks; outlive it unless the plan says otherwise."""
        orphaned = False
        while True:
            message = None
            if orphaned:
                time.sleep(TICK)
            else:
                try:
                    message = self.server.receive(TICK)
                except EOFError:
                    if not self.setting.plan.orphans:
                        return 0
                    orphaned = True
            if self.inside is not None:
                self.inside.beat()
            if message is not None:
                return self._die()
            for rank, (pid, _) in self.workers.items():
                status = ended(pid)
                if status is not None:
                    worker_died(self.console, rank, status)
                    fatal_in_engine(self.console, "Executor failed.")
                    return 1

    def _die(self) -> int:
        """Die of a request."""
        for _, channel in self.workers.values():
            channel.send({"do": "fault"})
        self._stop_workers()
        if self.inside is not None:
            fault_in_worker(self.console)
        fatal_in_engine(
            self.console,
            f"Worker failed with error '{ILLEGAL_ACCESS}', please check the stack trace above for "
            "the root cause",
        )
        return 1

    def _terminated(self, number: int, _: FrameType | None) -> None:
        name = signal.Signals(number).name
        self.console.say("core.py:1454", f"[shutdown] EngineCore: trigger received signal={name}")
        leave(0)
