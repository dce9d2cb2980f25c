"""A service: what a box should be serving.

**Example:**

.. code:: python

    Service(
        name="vllm-minimax-m25",
        model=Model(repo="MiniMaxAI/MiniMax-M2.5", under="/shared/models"),
        engine=Vllm(version="0.32.0", max_num_seqs=256, tool_call_parser="minimax_m2"),
        placement=Placement(gpus=4, within="numa-node"),
    )
"""

import re
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from inventory.desired import AbsolutePath, Desired, OneLine, Repository, Revision, UnitName
from inventory.engine import Vllm
from inventory.errors import DesiredStateError
from inventory.start_limits import StartLimits, start_limits
from inventory.throughput import Throughput

Proximity = Literal["numa-node", "socket", "nvlink", "host"]
"""How close the GPUs of one service must be to each other."""


class Model(Desired):
    """A model repository on the Hub, and where its snapshots live on the box."""

    repo: Repository
    revision: Revision = "main"
    """Branch, tag or commit. A branch or tag is resolved once, into the lock file."""
    under: AbsolutePath = "/shared/models"
    """Folder that holds the snapshots; one directory per repository and commit below it."""
    endpoint: str | None = Field(default=None, pattern=r"^https?://[A-Za-z0-9.:\-\[\]]+(/\S*)?$")
    """URL of another Hub or a mirror; None is the Hub that huggingface_hub is configured for."""

    source: AbsolutePath | None = None
    """Folder on the box that holds the files by their paths, for a box that reaches no Hub. They
    are hashed all the same."""
    caches: tuple[AbsolutePath, ...] = ()
    """Caches of huggingface_hub on the box (each holds ``models--…`` folders) whose files are
    taken over instead of downloaded, beside the service user's own."""
    pickled_weights: bool = False
    """Fetch weights in formats that run code when they are loaded (.bin, .pt, .pth, …) too."""
    also: tuple[OneLine, ...] = ()
    """Globs over paths of the repository: further files to fetch, beside safetensors and text."""
    verify: Annotated[str, Field(pattern=r"^[A-Za-z0-9 *:,./~\-]+$")] | None = None
    """When to hash every byte again, as systemd's OnCalendar says it (``Sun 03:00``). None never
    does by itself."""

    @property
    def home(self) -> str:
        """Folder of the repository: the snapshots of its commits are side by side in it."""
        return f"{self.under}/{self.repo}"


class Placement(Desired):
    """On which GPUs the service runs."""

    gpus: int = Field(ge=0, le=1024)
    """How many; 0 serves from the CPU."""
    within: Proximity = "numa-node"
    """The GPUs share this; ``host`` takes any."""
    uuids: tuple[OneLine, ...] = ()
    """Exactly these GPUs, by NVML UUID; empty lets boxwright choose."""
    exclude: tuple[OneLine, ...] = ()
    """GPUs never to take, by UUID."""

    @field_validator("uuids")
    @classmethod
    def _distinct(cls, uuids: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(uuids)) != len(uuids):
            raise ValueError("a GPU is named twice")
        return uuids


class Endpoint(Desired):
    """Where the service listens."""

    host: Annotated[str, Field(pattern=r"^[0-9A-Za-z.:\-]+$")] = "127.0.0.1"
    """Address to bind. The default is reachable from the box alone: the engine's own API key
    leaves several of its routes open, so that a proxy belongs in front."""
    port: int = Field(default=8000, ge=1, le=65535)
    served_model_name: OneLine | None = None
    """Name that clients ask for; None is the repository's name."""

    @property
    def connect_host(self) -> str:
        """Address at which the box itself reaches the service."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104

    @property
    def url(self) -> str:
        """Base URL as seen from the box itself."""
        host = self.connect_host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


class Service(Desired):
    """A served model: one systemd unit on one box."""

    name: UnitName
    """The unit's name without ``.service``."""
    model: Model
    engine: Vllm
    placement: Placement
    listen: Endpoint = Endpoint()
    environment: dict[str, OneLine] = Field(default_factory=dict)
    """Environment variables of the engine. Readable by every user of the box: no secrets."""
    user: UnitName = "vllm"
    """System user that the engine runs as and that owns the snapshot; made if absent."""
    load_seconds: int | None = Field(default=None, ge=1, le=86_400)
    """Longest time that a load may need, in seconds: sizes the start limit and the patience of the
    readiness check. None follows from the bytes of the weights."""
    throughput: Throughput | None = None
    """Measure each start once it is ready, against the one before. None measures nothing."""

    @model_validator(mode="after")
    def _measurable(self) -> Self:
        if self.throughput is None or self.engine.max_model_len is None:
            return self
        tokens = self.throughput.input_tokens + self.throughput.output_tokens
        if tokens > self.engine.max_model_len:
            raise ValueError(
                f"throughput.input_tokens and output_tokens are {tokens} together, more than "
                f"engine.max_model_len ({self.engine.max_model_len})"
            )
        return self

    @field_validator("environment")
    @classmethod
    def _variable_names(cls, environment: dict[str, str]) -> dict[str, str]:
        for name in environment:
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                raise ValueError(f"{name!r} is not a name for an environment variable")
        return environment

    @property
    def start_limits(self) -> StartLimits:
        """When systemd and the switch give up a start; also where nothing is known of the load."""
        return start_limits(self.load_seconds)

    @property
    def unit(self) -> str:
        """The unit's full name."""
        return f"{self.name}.service"

    @property
    def served_model_name(self) -> str:
        """Name that the engine answers to."""
        return self.listen.served_model_name or self.model.repo


def tensor_parallel_size(service: Service) -> int | None:
    """The tensor parallel size of a service. None on the CPU, unless the engine names one.

    + service: its GPUs are shared out over data, pipeline and tensor parallelism, in that order
    + raises: DesiredStateError where the sizes do not use exactly the GPUs of the placement

    >>> from inventory.catalogue import MINIMAX_M25
    >>> tensor_parallel_size(MINIMAX_M25)
    4
    """
    engine, gpus = service.engine, service.placement.gpus
    if gpus == 0:
        return engine.tensor_parallel_size
    others = engine.pipeline_parallel_size * engine.data_parallel_size
    size = engine.tensor_parallel_size or max(1, gpus // others)
    if size * others != gpus:
        raise DesiredStateError(
            wanted=f"{service.name} on exactly {gpus} GPUs",
            found=f"tensor {size} x pipeline {engine.pipeline_parallel_size} x data "
            f"{engine.data_parallel_size} parallel = {size * others} GPUs",
            why="the engine starts one worker for each of these and fails, or leaves GPUs idle",
            next_step=f"set placement.gpus={size * others}, or leave tensor_parallel_size out and "
            "choose the other sizes so that their product divides the number of GPUs",
        )
    return size
