"""The KV cache: how many bytes a block takes, how many tokens fit, how much one request needs.

The engine puts layers of one kind into groups of equal size; all groups draw blocks of the same
bytes from one pool (vLLM 0.32.0 v1/core/kv_cache_utils.py:1362-1502 and
v1/kv_cache_interface.py:546-1094).
"""

from collections import Counter
from typing import Literal

from pydantic import Field

from inventory.base import Frozen, NotKnownError, Unknown, known, need
from inventory.common.units import ceil_div, round_up
from inventory.fit.model.architecture import Architecture, LinearState
from inventory.fit.settings.settings import NEWEST_READ, EngineSettings, Release

GroupKind = Literal["full", "sliding", "chunked", "linear"]

DEFAULT_BLOCK = 16
"""Tokens of a block (config/cache.py, DEFAULT_BLOCK_SIZE)."""
PADDED_GROUPS_FROM: tuple[tuple[Release, float], ...] = (((0, 30, 0), 1.5), ((0, 0, 0), 1.25))
"""Below this ratio of layer counts the smaller kind is padded instead of the larger one split."""
HYBRID_SINCE: Release = (0, 10, 0)
"""Since when window layers keep only their window: before, every layer kept everything."""
CHUNKED_HYBRID_SINCE: Release = (0, 13, 0)
"""The same for chunked layers: off by default from vllm-project/vllm#21761 to #29627."""
STATE_COPIES_SINCE: Release = (0, 21, 0)
"""Since when prefix caching keeps two states a request instead of one: q27-5090 (0.26) prints
1.16 where one would give 1.19; gb10-q38-768k without prefix caching prints 1.04, as one does."""
NULL_BLOCK_SINCE: Release = (0, 32, 0)
"""Since when the check leaves out the one block that is held back (kv_cache_utils.py:1126)."""
TOKENS_BY_CONCURRENCY_SINCE: Release = (0, 21, 0)
"""Since when the printed token count is concurrency times length (kv_cache_utils.py:2300)."""

SPARSE_FP8, SPARSE_NVFP4 = 656, 352
"""Bytes of a token of sparse MLA in fp8_ds_mla and nvfp4_ds_mla (v1/kv_cache_interface.py:546)."""
INDEXER_SCALE = 4
"""Bytes of the scale beside each indexer key, which is kept in fp8."""

_ELEMENT_BYTES: tuple[tuple[str, float], ...] = (
    ("fp8", 1),
    ("int8", 1),
    ("int4", 0.5),
    ("nvfp4", 0.5 + 1 / 16),
    ("bfloat16", 2),
    ("float16", 2),
    ("half", 2),
    ("float", 4),
)
"""Beginning of kv_cache_dtype -> bytes of one number; the first that matches."""


class KvGroup(Frozen):
    """Layers that share a block table."""

    kind: GroupKind
    layers: int
    block_tokens: int
    reach: int | None = Field(default=None, description="tokens of the window or chunk")


class KvLayout(Frozen):
    """How the cache of one rank is laid out."""

    groups: tuple[KvGroup, ...]
    block_bytes: int = Field(description="of one block of the pool, over all layers of a group")
    dcp: int = 1
    batched_tokens: int = Field(description="max_num_batched_tokens: what a window holds besides")
    states: int = Field(default=1, description="state blocks of a running request")
    null_block: bool = Field(default=False, description="one block is held back (0.32)")
    by_concurrency: bool = Field(default=False, description="prints tokens as concurrency x length")

    @property
    def is_uniform(self) -> bool:
        """Whether all layers keep every token: then bytes per token are a plain number."""
        return len(self.groups) == 1 and self.groups[0].kind == "full"

    @property
    def bytes_per_token(self) -> int:
        """Bytes a token takes on a rank when nothing is dropped; of groups, their mean."""
        group = self.groups[0]
        return self.block_bytes // group.block_tokens // self.dcp

    def blocks(self, memory: int) -> int:
        """Blocks that fit into some bytes."""
        return max(0, memory // self.block_bytes)

    def blocks_per_request(self, length: int) -> int:
        """Blocks that one request of full length holds."""
        return sum(self._held(group, length) for group in self.groups)

    def needed(self, length: int) -> int:
        """Bytes that must be there for one request of full length."""
        return self.blocks_per_request(length) * self.block_bytes

    def concurrency(self, memory: int, length: int) -> float:
        """Requests of full length at once."""
        return self.blocks(memory) / self.blocks_per_request(length)

    def tokens(self, memory: int, length: int) -> int:
        """Tokens as the engine prints them.

        + length: max_model_len, on which the print depends in newer engines
        """
        if self.by_concurrency and not self.is_uniform:
            return int(self.concurrency(memory, length) * length)
        per_group = self.blocks(memory) // len(self.groups)
        return per_group * self.groups[0].block_tokens * self.dcp

    def longest(self, memory: int, most: int) -> int:
        """The longest request that fits; 0 if one token does not fit.

        + most: the largest length to try
        """
        held_back = self.block_bytes if self.null_block else 0
        if self.needed(1) > memory - held_back:
            return 0
        low, high = 1, most
        while low < high:
            middle = (low + high + 1) // 2
            if self.needed(middle) <= memory - held_back:
                low = middle
            else:
                high = middle - 1
        return low

    def _held(self, group: KvGroup, length: int) -> int:
        if group.kind == "linear":
            return self.states
        if group.kind == "full" or group.reach is None:
            return ceil_div(ceil_div(length, self.dcp), group.block_tokens)
        if group.kind == "chunked":
            return ceil_div(min(group.reach + self.batched_tokens, length), group.block_tokens)
        held = min(group.reach - 1 + self.batched_tokens, length)
        return ceil_div(held, group.block_tokens) + 1


def kv_layout(
    architecture: Architecture,
    settings: EngineSettings,
    engine: Release | Unknown,
    batched_tokens: int,
) -> KvLayout | Unknown:
    """The layout of the cache on the rank with most layers.

    + engine: the version, whose rules apply; unknown: the newest
    """
    if architecture.compressed_kv:
        return Unknown(unknown="config.json does not describe this model's compressed cache")
    try:
        return _layout(architecture, settings, known(engine, NEWEST_READ), batched_tokens)
    except NotKnownError as error:
        return error.reason


def _layout(a: Architecture, settings: EngineSettings, version: Release, batched: int) -> KvLayout:
    counts = Counter(_kinds(a, settings, version))
    token: dict[GroupKind, int] = {
        kind: _state_bytes(a.state, settings)
        if kind == "linear"
        else _token_bytes(a, settings, kind)
        for kind in counts
    }
    block = settings.block_size or DEFAULT_BLOCK
    attention = max((size for kind, size in token.items() if kind != "linear"), default=0)
    page = attention * block
    if counts["linear"] and attention:
        # The block grows until a page of attention holds one state (platforms/interface.py).
        block = max(block, round_up(ceil_div(token["linear"], attention), DEFAULT_BLOCK))
        page = attention * block
    elif counts["linear"]:
        page = token["linear"]
    layers = counts.total()
    if len(counts) > 1:
        layers = _group_size(list(counts.values()), version)
    return KvLayout(
        groups=_groups(a, counts, token, page, block, layers),
        # A pipeline stage has its share of every group's layers.
        block_bytes=page * ceil_div(layers, settings.pp),
        dcp=settings.dcp,
        batched_tokens=batched,
        states=(2 if settings.prefix_caching and version >= STATE_COPIES_SINCE else 1)
        + settings.draft_tokens,
        null_block=version >= NULL_BLOCK_SINCE,
        by_concurrency=version >= TOKENS_BY_CONCURRENCY_SINCE,
    )


def _groups(
    architecture: Architecture,
    counts: Counter[GroupKind],
    token: dict[GroupKind, int],
    page: int,
    block: int,
    layers: int,
) -> tuple[KvGroup, ...]:
    """The block tables: as many of a kind as its layers fill groups of one size."""
    groups: list[KvGroup] = []
    for kind, count in counts.items():
        own = block
        if kind != "linear" and page % (token[kind] * block) == 0:
            own = page // token[kind]
        reach = need({"sliding": architecture.window, "chunked": architecture.chunk}.get(kind))
        group = KvGroup(kind=kind, layers=layers, block_tokens=own, reach=reach)
        groups += [group] * ceil_div(count, layers)
    # Full layers first: the engine's token count follows the first group.
    return tuple(sorted(groups, key=lambda group: group.kind != "full"))


def _kinds(
    architecture: Architecture, settings: EngineSettings, version: Release
) -> list[GroupKind]:
    """Kinds of the layers that keep a cache."""
    need(architecture.layers)
    hybrid = settings.hybrid_kv and version >= HYBRID_SINCE and settings.runner != "V0"
    whole = {"sliding"} if not hybrid else set()
    if not hybrid or version < CHUNKED_HYBRID_SINCE:
        whole.add("chunked")
    own = architecture.kinds[: len(architecture.kinds) - architecture.kv_shared_layers]
    kinds: list[GroupKind] = ["full" if kind in whole else kind for kind in own if kind != "none"]
    if settings.draft:
        kinds += ["full"] * architecture.draft_layers
    if not kinds:
        raise NotKnownError(Unknown(unknown="no layer keeps a cache"))
    return kinds


def _group_size(counts: list[int], version: Release) -> int:
    smallest, largest = min(counts), max(counts)
    ratio = next(ratio for since, ratio in PADDED_GROUPS_FROM if version >= since)
    return largest if largest < smallest * ratio else smallest


def _element_bytes(architecture: Architecture, settings: EngineSettings) -> float:
    """Bytes of one number in the cache."""
    name = settings.kv_cache_dtype.lower()
    if name == "auto":
        # Checkpoints that ship scales for an fp8 cache get one (g47-ok, r6-glm51-*).
        fp8 = architecture.quantisation is not None and architecture.quantisation.kv_cache_fp8
        return 1 if fp8 else settings.element_bytes
    for beginning, size in _ELEMENT_BYTES:
        if name.startswith(beginning):
            return size
    raise NotKnownError(Unknown(unknown=f"the size of kv_cache_dtype {name[:20]!r} is not known"))


def kv_shape(a: Architecture, kind: str) -> tuple[int, int, int]:
    """Heads of keys and values in a layer, and the widths of a key and of a value.

    + kind: of the layer: in some models the full layers differ from the others
    """
    heads, dim, value = a.kv_heads, a.head_dim, a.value_dim
    if kind == "full" and a.global_kv_heads:
        heads = a.global_kv_heads
    if kind == "full" and a.global_head_dim:
        dim = value = a.global_head_dim
    return need(heads), need(dim), need(value)


def _token_bytes(a: Architecture, settings: EngineSettings, kind: str) -> int:
    """Bytes of a token in one layer of a rank."""
    size = _element_bytes(a, settings)
    if a.mla is not None:
        latent = round((a.mla.kv_rank + a.mla.rope) * size)
        sparse = a.indexer is not None
        if settings.kv_cache_dtype == "nvfp4_ds_mla":
            latent = SPARSE_NVFP4
        elif settings.kv_cache_dtype == "fp8_ds_mla" or (sparse and size == 1):
            latent = SPARSE_FP8
        return latent + (a.indexer.head_dim + INDEXER_SCALE if a.indexer else 0)
    heads, dim, value = kv_shape(a, kind)
    # A rank holds at least one head: beyond as many ranks as heads the cache shrinks no more.
    return round(max(1, heads // settings.tp) * (dim + value) * size)


def _state_bytes(state: LinearState | Unknown | None, settings: EngineSettings) -> int:
    """Bytes of one layer's state for one request on a rank."""
    state = need(state)
    if state is None:
        return 0
    convolution = ceil_div(state.conv_channels, settings.tp) * (state.conv_kernel - 1)
    heads = ceil_div(state.value_heads, settings.tp)
    recurrent = heads * state.key_dim * state.value_dim
    return convolution * state.conv_bytes + recurrent * state.state_bytes
