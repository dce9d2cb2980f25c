"""How an engine is to be started: its version, and the settings that the fit depends on."""

import re
from typing import Literal

from pydantic import Field

from inventory.base import Frozen, Unknown
from inventory.fit.settings.card import LinkKind

Release = tuple[int, int, int]

NEWEST_READ: Release = (0, 32, 0)
"""The newest engine whose source the rules were read from."""

Runner = Literal["V0", "V1", "V2"]
Sampler = Literal["native", "flashinfer"]


class EngineSettings(Frozen):
    """Settings of the engine. ``None`` leaves a setting to the engine, or to the derivation."""

    engine: str | None = Field(default=None, description="vLLM's version")
    tp: int = Field(default=1, ge=1, description="tensor parallel size")
    pp: int = Field(default=1, ge=1, description="pipeline parallel size")
    dp: int = Field(default=1, ge=1, description="data parallel size")
    ep: bool = Field(default=False, description="--enable-expert-parallel")
    dcp: int = Field(default=1, ge=1, description="decode context parallel size")
    gpu_memory_utilization: float | None = Field(default=None, gt=0, le=1)
    kv_cache_memory: int | None = Field(default=None, gt=0, description="bytes a GPU, as given")
    max_model_len: int | None = Field(default=None, ge=1, description="tokens; None: the model's")
    max_num_seqs: int | None = Field(default=None, ge=1)
    max_num_batched_tokens: int | None = Field(default=None, ge=1)
    kv_cache_dtype: str = "auto"
    block_size: int | None = Field(default=None, ge=1, description="tokens of a KV block")
    dtype: str = Field(default="auto", description="type of the unquantised weights")
    quantization: str | None = Field(default=None, description="--quantization")
    runner: Runner | None = Field(default=None, description="model runner; None: the version's")
    sampler: Sampler | None = Field(default=None, description="None: the version's")
    enforce_eager: bool = Field(default=False, description="no CUDA graphs")
    graph_estimate: bool | None = Field(
        default=None, description="whether the budget is charged with estimated CUDA graphs"
    )
    draft: bool = Field(default=False, description="speculates with the model's own draft layers")
    draft_tokens: int = Field(default=0, ge=0, description="speculated tokens a step")
    cpu_offload: int = Field(default=0, ge=0, description="bytes of weights kept in host memory")
    hybrid_kv: bool = Field(default=True, description="the hybrid KV cache manager is in use")
    prefix_caching: bool = True
    language_model_only: bool = Field(default=False, description="without the image encoder")
    vision_data_parallel: bool = Field(default=False, description="--mm-encoder-tp-mode data")
    server: bool = Field(default=True, description="vllm serve; false: LLM(), with other defaults")
    link: LinkKind | None = Field(default=None, description="None: what the cards usually have")
    trust_remote_code: bool = False
    tool_call_parser: str | None = None
    reasoning_parser: str | None = None
    load_seconds: int | None = Field(
        default=None, description="that a load may need; None: follows from the weights"
    )
    flags: tuple[str, ...] = Field(default=(), description="every flag of the command line")

    @property
    def gpus(self) -> int:
        """GPUs that it needs."""
        return self.tp * self.pp * self.dp

    @property
    def element_bytes(self) -> int:
        """Bytes of an unquantised weight. ``auto`` loads 32-bit checkpoints as 16 bit
        (vLLM 0.32.0 config/model.py)."""
        return 4 if self.dtype in {"float32", "float"} else 2


def release(text: str | Unknown | None) -> Release | Unknown:
    """The first release number in a text.

    + text: a version as ``pip`` prints it, or as a report quotes it. Release candidates and
      development builds count as the release that they lead to. A missing patch is 0.

    >>> release("0.20.2rc1.dev249 (fork)")
    (0, 20, 2)
    >>> release("0.28.x")
    (0, 28, 0)
    >>> release("main d56e952").unknown
    "no release number in 'main d56e952'"
    """
    if isinstance(text, Unknown):
        return text
    if text is None:
        return Unknown(unknown="no engine version was given")
    found = re.search(r"(?<![\w.])v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", text)
    if found is None:
        return Unknown(unknown=f"no release number in {text[:40]!r}")
    major, minor, patch = found.groups()
    return (int(major), int(minor), int(patch or 0))


def shown(version: Release | Unknown) -> str:
    """A release for people."""
    if isinstance(version, Unknown):
        return "an unknown version"
    return ".".join(str(part) for part in version)
