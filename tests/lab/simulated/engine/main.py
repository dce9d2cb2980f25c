"""The API server: the main process of the stub."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from ..gpus.books import start_time
from ..gpus.description import BOOKS, read_box, root
from . import report
from .channel import Channel, channel_pair
from .console import Console, traceback, write, write_error
from .core import Core
from .failures import CATALOGUE, NO_DEVICE, Failure
from .flags import parse, said
from .model import read_model
from .plan import Plan, PlanError, read_plan
from .processes import kill, leave, spawn
from .server import Server
from .setting import Setting

BUILD = Path(__file__).parent.parent / "build.json"
ENTRY = "vllm/entrypoints/launchers/api_server/entry.py"
STOP_STATUS = 78
"""EX_CONFIG: the plan is malformed. vLLM never ends with it, so a test sees its own mistake."""

ROUTES = (
    "/load, Methods: GET",
    "/version, Methods: GET",
    "/health, Methods: GET",
    "/metrics, Methods: GET",
    "/v1/models, Methods: GET",
    "/v1/chat/completions, Methods: POST",
    "/v1/completions, Methods: POST",
)


def read_build() -> dict[str, Any]:
    """Version and left-out flags of this build."""
    try:
        build: dict[str, Any] = json.loads(BUILD.read_text())
    except FileNotFoundError:
        return {"version": "0.32.0", "without": []}
    return build


def main() -> NoReturn:
    """Run the stub with the process's own arguments."""
    words = sys.argv[1:]
    build = read_build()
    arguments = parse(words[1:] if words[:1] == ["serve"] else words, build["without"])
    names = arguments.served_model_name
    try:
        plan = read_plan(names[0] if names else str(arguments.model))
        if plan.crash and plan.crash not in CATALOGUE:
            raise PlanError(f"no failure {plan.crash!r}; one of {', '.join(CATALOGUE)}")
    except (ValueError, TypeError) as error:
        write_error(f"stub plan: {error}\n")
        leave(STOP_STATUS)
    leave(_Main(build["version"], arguments, plan).run())


class _Main:
    """One start of the stub."""

    def __init__(self, version: str, arguments: Any, plan: Plan) -> None:
        self.version = version
        self.arguments = arguments
        self.plan = plan
        self.console = Console("APIServer")
        self.told_to_stop = False
        self.engine = 0

    def run(self) -> int:
        """Start, serve, stop. Returns the exit status."""
        signal.signal(signal.SIGTERM, self._interrupt)
        self._phase("start")
        self.console.say("api_utils.py:347", f"  version {self.version}")
        self.console.say("api_utils.py:347", f"  model   {self.arguments.model}")
        self.console.say("api_utils.py:286", f"non-default args: {said(self.arguments)}")
        bound = self._bind()
        if bound is None:
            return 1
        self._phase("config")
        setting = self._configure()
        if setting is None:
            return 1 if self.plan.exit is None else self.plan.exit
        signal.signal(signal.SIGTERM, self._remember)
        ours, theirs = channel_pair()

        def engine() -> int:
            ours.close()
            return Core(setting, theirs).run()

        self.engine = spawn("VLLM::EngineCore", engine, close=[bound.fileno()])
        theirs.close()
        workers = self._await_engine(ours)
        if workers is None:
            report.by_server()
            return 1 if self.plan.exit is None else self.plan.exit
        return self._serve(setting, bound, ours, workers)

    def _phase(self, name: str) -> None:
        """Let a phase of the server itself pass."""
        if self.plan.hang_at == name:
            time.sleep(1e9)
        time.sleep(self.plan.duration(name))

    def _bind(self) -> socket.socket | None:
        host = self.arguments.host or "0.0.0.0"
        bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, self.arguments.port))
        except OSError as error:
            frames = (
                (ENTRY, 176, "run_server"),
                ("vllm/entrypoints/launchers/launcher.py", 348, "create_server_socket"),
            )
            write_error(traceback(frames, f"OSError: {error}") + "\n")
            return None
        return bound

    def _configure(self) -> Setting | None:
        """Read model and devices. None after a failure that has been told."""
        path = str(self.arguments.model)
        try:
            model = read_model(Path(path))
        except FileNotFoundError:
            error = (
                "huggingface_hub.errors.HFValidationError: Repo id must be in the form "
                f"'repo_name' or 'namespace/repo_name': '{path}'. Use `repo_type` argument if "
                "needed."
            )
            report.of_server(Failure("server", "config", error))
            return None
        box = read_box()
        gpus = box.visible(self._selection()) if box else ()
        setting = Setting(self.version, self.arguments, self.plan, model, box, gpus)
        failure = self._device_failure(setting)
        if failure is not None:
            report.of_server(failure)
            return None
        self.console.say("model.py:733", f"Resolved architecture: {model.architecture}")
        length = self.arguments.max_model_len or model.number("max_position_embeddings")
        self.console.say("model.py:2152", f"Using max model len {length}")
        return setting

    def _selection(self) -> str | None:
        devices = self.arguments.device_ids
        return devices if devices else os.environ.get("CUDA_VISIBLE_DEVICES")

    def _device_failure(self, setting: Setting) -> Failure | None:
        if self.plan.crash == "no-device":
            return NO_DEVICE
        if setting.box is None:
            return None
        # A unit with PrivateDevices=yes sees no /dev of the box, and so no card.
        seen = len(setting.gpus) if (root() / BOOKS).is_dir() else 0
        if seen == 0:
            return NO_DEVICE
        if seen < setting.ranks:
            return Failure(
                "server",
                "config",
                "pydantic_core._pydantic_core.ValidationError: 1 validation error for "
                f"ParallelConfig\n  Value error, World size ({setting.ranks}) is larger than the "
                f"number of available GPUs ({seen}) in this node. If this is intentional and you "
                "are using:\n- ray, set '--distributed-executor-backend ray'.\n"
                "- multiprocessing, set '--nnodes' appropriately.",
                (("vllm/engine/arg_utils.py", 2528, "create_engine_config"),),
            )
        return None

    def _await_engine(self, channel: Channel) -> list[int] | None:
        """Wait until the engine is ready. None if it failed."""
        while True:
            try:
                message = channel.receive(0.1)
            except EOFError:
                os.waitpid(self.engine, 0)
                return None
            if message is not None:
                return list(message["workers"])
            if self.told_to_stop and self.plan.sigterm_while_loading == "leave":
                kill([self.engine])
                leave(0)

    def _serve(
        self, setting: Setting, bound: socket.socket, channel: Channel, workers: list[int]
    ) -> int:
        say = self.console.say
        server = Server(setting, bound)
        host, port = bound.getsockname()[:2]
        say("entry.py:136", "Supported tasks: ['generate']")
        say("entry.py:140", f"Starting vLLM server on http://{host}:{port}")
        say("launcher.py:186", "Available routes are:")
        for route in ROUTES:
            say("launcher.py:195", f"Route: {route}")
        write(f"INFO:     Started server process [{os.getpid()}]\n")
        write("INFO:     Waiting for application startup.\n")
        server.listen()
        write("INFO:     Application startup complete.\n")
        while True:
            try:
                channel.receive(0.05)
            except EOFError:
                return self._engine_dead(server)
            if server.fatal.is_set():
                channel.send({"do": "die"})
                server.fatal.clear()
            if self.told_to_stop:
                return self._shut_down(workers)

    def _engine_dead(self, server: Server) -> int:
        """The engine's death ends the server, with status 0."""
        report.engine_dead(self.console)
        server.died.set()
        until = time.monotonic() + 1.0
        while server.running and time.monotonic() < until:
            time.sleep(0.01)
        self._farewell()
        self._client_lines()
        return 0

    def _shut_down(self, workers: list[int]) -> int:
        say = self.console.say
        say("launcher.py:254", "[shutdown] API server: shutdown triggered")
        say(
            "launcher.py:270",
            "[shutdown] API server: stopping engine client mode=abort timeout=0s",
        )
        self._client_lines(workers)
        say("launcher.py:304", "[shutdown] API server: shutting down FastAPI HTTP server")
        self._farewell()
        return 0

    def _client_lines(self, workers: Sequence[int] = ()) -> None:
        """Stop what is left of the engine, as the engine's client logs it."""
        say = self.console.say
        say("core_client.py:770", "[shutdown] MPClient: start timeout=0s")
        say("core_client.py:772", "[shutdown] MPClient: stopping engine manager")
        say("utils.py:628", "[shutdown] Process manager: send sigterm to process EngineCore")
        kill([self.engine])
        until = time.monotonic() + 2.0
        while any(start_time(pid) for pid in workers) and time.monotonic() < until:
            time.sleep(0.01)
        say("core_client.py:774", "[shutdown] MPClient: engine manager stopped")
        say("core_client.py:777", "[shutdown] MPClient: complete")

    def _farewell(self) -> None:
        write("INFO:     Shutting down\n")
        write("INFO:     Waiting for application shutdown.\n")
        write("INFO:     Application shutdown complete.\n")
        write(f"INFO:     Finished server process [{os.getpid()}]\n")

    def _interrupt(self, _: int, __: FrameType | None) -> NoReturn:
        """SIGTERM while the configuration is read: the process ends by SIGINT."""
        report.interrupted()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
        leave(1)

    def _remember(self, _: int, __: FrameType | None) -> None:
        """SIGTERM later: looked at where the plan allows it."""
        self.told_to_stop = True
