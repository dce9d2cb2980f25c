"""What a start depends on in a model.

The reader is :func:`inventory.fit.model.config.read_architecture`. A number that the files do not
tell is :class:`~inventory.base.Unknown`; a part that the model does not have is ``None``.
"""

from typing import Literal

from pydantic import Field

from inventory.base import Frozen, Unknown
from inventory.common.units import round_up

Dimension = int | Unknown
LayerKind = Literal["full", "sliding", "chunked", "linear", "none"]
"""How a layer looks back: at everything; through a window; within its chunk; by a state of fixed
size (linear attention, Mamba, short convolutions); not at all (an MLP that counts as a layer)."""

_NOT_SAID = Unknown(unknown="not in config.json")


class Mla(Frozen):
    """Multi-head latent attention: one compressed vector per token instead of keys and values."""

    kv_rank: int = Field(description="kv_lora_rank")
    rope: int = Field(description="qk_rope_head_dim")
    q_rank: int | None = Field(default=None, description="q_lora_rank; None has no compression")
    nope: Dimension = Field(default=_NOT_SAID, description="qk_nope_head_dim")
    value: Dimension = Field(default=_NOT_SAID, description="v_head_dim")


class Indexer(Frozen):
    """The small attention that picks tokens for sparse MLA (DeepSeek V3.2, GLM-5)."""

    head_dim: int
    heads: Dimension = _NOT_SAID


class Experts(Frozen):
    """Mixture of experts."""

    count: int
    per_token: Dimension = _NOT_SAID
    intermediate: Dimension = Field(default=_NOT_SAID, description="width of one expert")
    shared_intermediate: int = Field(default=0, description="width of all shared experts together")
    layers: tuple[int, ...] = Field(description="indices of the layers that have experts")


class LinearState(Frozen):
    """The state that a linear attention layer keeps per running sequence."""

    key_heads: int
    value_heads: int
    key_dim: int
    value_dim: int
    conv_kernel: int
    conv_channels: int = Field(description="width of the convolution over all heads")
    state_bytes: int = Field(description="of one element of the recurrent state")
    conv_bytes: int = Field(description="of one element of the convolution's state")


class Quantisation(Frozen):
    """How the weights are stored."""

    method: str = Field(description="quant_method, with modelopt's algorithm: modelopt-nvfp4")
    weight_bits: float | Unknown = Field(description="of one weight, without its scales")
    scale_bits: float = Field(default=0.0, description="of the scales and zeros, per weight")
    block: tuple[int, int] | None = Field(
        default=None, description="FP8 block (rows of the output, columns of the input)"
    )
    group: int | None = Field(default=None, description="weights that share a scale")
    ignored: tuple[str, ...] | Unknown = Field(description="modules left in the model's own type")
    only: tuple[str, ...] = Field(
        default=(), description="where given, the modules that are quantised; all others are not"
    )
    expert_bits: float | None = Field(
        default=None, description="of an expert's weight with its scales, where it differs"
    )
    kv_cache_fp8: bool = Field(default=False, description="ships scales for an fp8 KV cache")


class Vision(Frozen):
    """The encoder for images."""

    heads: Dimension = _NOT_SAID
    layers: Dimension = _NOT_SAID
    hidden: Dimension = _NOT_SAID
    intermediate: Dimension = _NOT_SAID


class Checkpoint(Frozen):
    """The weight files."""

    size: int | Unknown = Field(description="bytes of all weight files")
    shards: int = 0


class TensorSums(Frozen):
    """Bytes of the weights by how ranks share them, from the safetensors headers."""

    experts: int = Field(default=0, description="weights of routed experts")
    sharded: int = Field(default=0, description="split over the ranks of tensor parallelism")
    replicated: int = Field(default=0, description="whole on every rank")
    first_stage: int = Field(default=0, description="embedding: first pipeline stage, split")
    last_stage: int = Field(default=0, description="output matrix: last pipeline stage, split")
    vision: int = Field(default=0, description="image encoder")
    draft: int = Field(default=0, description="multi-token prediction, loaded only when used")

    @property
    def total(self) -> int:
        """All bytes."""
        return sum(self.model_dump().values())


class Architecture(Frozen):
    """A model, read from its files."""

    name: str | Unknown = Field(description="class, e.g. MiniMaxM2ForCausalLM")
    model_type: str | Unknown = _NOT_SAID
    layers: Dimension = _NOT_SAID
    hidden: Dimension = _NOT_SAID
    heads: Dimension = Field(default=_NOT_SAID, description="query heads")
    kv_heads: Dimension = _NOT_SAID
    head_dim: Dimension = _NOT_SAID
    value_dim: Dimension = Field(default=_NOT_SAID, description="of a value head, mostly head_dim")
    global_head_dim: int | None = Field(
        default=None, description="of the full layers, where the window layers have another"
    )
    global_kv_heads: int | None = Field(default=None, description="of the full layers, likewise")
    intermediate: Dimension = Field(default=_NOT_SAID, description="width of a dense MLP")
    gated: bool = Field(default=True, description="the MLP has a gate: three matrices, not two")
    gated_attention: bool = Field(
        default=False, description="full layers project a gate beside the queries"
    )
    vocabulary: Dimension = _NOT_SAID
    tied: bool = Field(default=False, description="embedding and output share one matrix")
    context: Dimension = Field(default=_NOT_SAID, description="tokens")
    kinds: tuple[LayerKind, ...] = Field(default=(), description="one per layer")
    kv_shared_layers: int = Field(default=0, description="last layers that reuse another's cache")
    window: Dimension | None = Field(default=None, description="tokens of a sliding layer")
    chunk: Dimension | None = Field(default=None, description="tokens of a chunked layer")
    state: LinearState | Unknown | None = None
    mla: Mla | None = None
    indexer: Indexer | None = None
    experts: Experts | None = None
    draft_layers: int = Field(default=0, description="multi-token prediction layers that it ships")
    quantisation: Quantisation | None = None
    vision: Vision | None = None
    custom_code: bool = Field(default=False, description="auto_map: Python code in the repository")
    compressed_kv: bool = Field(
        default=False, description="a KV layout that config.json does not describe (DeepSeek V4)"
    )
    checkpoint: Checkpoint | None = None
    tensors: TensorSums | None = Field(
        default=None, description="bytes by kind, from the safetensors headers"
    )
    notes: tuple[str, ...] = Field(default=(), description="what could not be read, and why")

    @property
    def padded_vocabulary(self) -> Dimension:
        """Vocabulary as the engine lays it out: a multiple of 64
        (vLLM 0.32.0 layers/vocab_parallel_embedding.py:36)."""
        if isinstance(self.vocabulary, Unknown):
            return self.vocabulary
        return round_up(self.vocabulary, 64)

    @property
    def unknown_fields(self) -> tuple[str, ...]:
        """Names of the numbers that the files do not tell."""
        return tuple(
            name for name in type(self).model_fields if isinstance(getattr(self, name), Unknown)
        )
