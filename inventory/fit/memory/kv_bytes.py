"""Bytes that one layer keeps on a rank: of a token, or of a sequence's state."""

from __future__ import annotations

from inventory.base import Unknown
from inventory.common.units import ceil_div
from inventory.fit.model.architecture import Architecture, LinearState
from inventory.fit.settings.settings import EngineSettings

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


def element_bytes(architecture: Architecture, settings: EngineSettings) -> float | Unknown:
    """Bytes of one number in the cache."""
    name = settings.kv_cache_dtype.lower()
    if name == "auto":
        # Checkpoints that ship scales for an fp8 cache get one (g47-ok, r6-glm51-*).
        fp8 = architecture.quantisation is not None and architecture.quantisation.kv_cache_fp8
        return 1 if fp8 else settings.element_bytes
    for beginning, size in _ELEMENT_BYTES:
        if name.startswith(beginning):
            return size
    return Unknown(unknown=f"the size of kv_cache_dtype {name[:20]!r} is not known")


def token_bytes(architecture: Architecture, settings: EngineSettings, kind: str) -> int | Unknown:
    """Bytes of a token in one layer of a rank."""
    a = architecture
    size = element_bytes(a, settings)
    if isinstance(size, Unknown):
        return size
    if a.mla is not None:
        latent = round((a.mla.kv_rank + a.mla.rope) * size)
        sparse = a.indexer is not None
        if settings.kv_cache_dtype == "nvfp4_ds_mla":
            latent = SPARSE_NVFP4
        elif settings.kv_cache_dtype == "fp8_ds_mla" or (sparse and size == 1):
            latent = SPARSE_FP8
        return latent + (a.indexer.head_dim + INDEXER_SCALE if a.indexer else 0)
    heads, dim, value = a.kv_heads, a.head_dim, a.value_dim
    if kind == "full" and a.global_kv_heads:
        heads = a.global_kv_heads
    if kind == "full" and a.global_head_dim:
        dim = value = a.global_head_dim
    if isinstance(heads, Unknown):
        return heads
    if isinstance(dim, Unknown):
        return dim
    if isinstance(value, Unknown):
        return value
    # A rank holds at least one head: beyond as many ranks as heads the cache shrinks no more.
    return round(max(1, heads // settings.tp) * (dim + value) * size)


def state_bytes(state: LinearState | Unknown | None, settings: EngineSettings) -> int | Unknown:
    """Bytes of one layer's state for one request on a rank."""
    if state is None:
        return 0
    if isinstance(state, Unknown):
        return state
    convolution = ceil_div(state.conv_channels, settings.tp) * (state.conv_kernel - 1)
    heads = ceil_div(state.value_heads, settings.tp)
    recurrent = heads * state.key_dim * state.value_dim
    return convolution * state.conv_bytes + recurrent * state.state_bytes
