"""The matrices of a model: how large each is, and how many ranks split it.

Sharing follows vLLM's layers: projections are split, MLA's first projections, routers, norms and
the sparse indexer are whole on every rank (0.32.0, model_executor/models).
"""

from __future__ import annotations

from typing import NamedTuple, Self

from inventory.base import Unknown, known
from inventory.common.units import ceil_div, round_up
from inventory.fit.memory.ignored import Ignored, modules
from inventory.fit.model.architecture import Architecture, Quantisation
from inventory.fit.model.quantisation import quantisation
from inventory.fit.settings.settings import EngineSettings

MXFP4_PAD = 256
"""Widths of experts under MXFP4 are padded to this: gpt-oss-120b printed 64.38 GiB and 20b 13.47
where the plain width of 2880 gives 60.7 and 12.8 (llm-d-planner, docs/empirical-vllm-memory)."""

VISION_LIKELY, VISION_MOST = 0.9e9, 2.0e9
"""Bytes of an image encoder that the configuration does not describe. Printed weights less the
text model's: 0.91 GB Mistral-Small-3.1, 0.9 Kimi-K2.5, 1.2 gemma-3-27b (NOTES.md cases)."""

_ROTARY_BYTES = 2


class Piece(NamedTuple):
    """Matrices of one kind in one layer, or outside the layers."""

    name: str
    low: float
    likely: float
    high: float
    share: int
    """Ranks that split it; 1 where every rank has the whole."""
    stored: bool = True
    """Whether the files hold it; else loading makes it."""

    @classmethod
    def exact(cls, name: str, size: float, share: int, *, stored: bool = True) -> Self:
        """A piece without doubt."""
        return cls(name, size, size, size, share, stored)


class _Stored(NamedTuple):
    """Bytes of one weight."""

    low: float
    likely: float
    high: float

    def times(self, name: str, count: float, share: int) -> Piece:
        """So many of them."""
        return Piece(name, count * self.low, count * self.likely, count * self.high, share)


def absorbed(architecture: Architecture, settings: EngineSettings) -> float:
    """Bytes a rank of what MLA makes while loading: its second projection again, unquantised
    (vLLM 0.32.0 attention/mla_attention.py, W_UK and W_UV)."""
    mla, heads = architecture.mla, architecture.heads
    if mla is None or isinstance(heads, Unknown):
        return 0.0
    if isinstance(mla.nope, Unknown) or isinstance(mla.value, Unknown):
        return 0.0
    layers = sum(kind == "full" for kind in architecture.kinds)
    per_layer = mla.kv_rank * heads * (mla.nope + mla.value) * settings.element_bytes
    return per_layer * layers / settings.tp / settings.pp


def rotary(architecture: Architecture) -> float:
    """Bytes of the table of rotary positions, one for all layers."""
    width = architecture.mla.rope if architecture.mla else architecture.head_dim
    if isinstance(architecture.context, Unknown) or isinstance(width, Unknown):
        return 0.0
    return float(architecture.context * width * _ROTARY_BYTES)


class Matrices:
    """The matrices of one architecture, as one set of settings loads them."""

    def __init__(self, architecture: Architecture, settings: EngineSettings) -> None:
        self._a = architecture
        self._start = settings
        self._plain = float(settings.element_bytes)
        scheme = architecture.quantisation
        if scheme is None and settings.quantization is not None:
            scheme = quantisation({"quant_method": settings.quantization})
        self._scheme: Quantisation | None = scheme
        named = scheme.ignored if scheme else ()
        self._doubt = isinstance(named, Unknown)
        self._ignored = Ignored(() if isinstance(named, Unknown) else named)
        self._only = Ignored(scheme.only) if scheme is not None and scheme.only else None
        self._expert_layers = frozenset(architecture.experts.layers if architecture.experts else ())

    def layer(self, index: int) -> list[Piece] | Unknown:
        """The pieces of one layer; unknown where a dimension is."""
        hidden = self._a.hidden
        if isinstance(hidden, Unknown):
            return hidden
        attention = self._attention(index, hidden)
        if isinstance(attention, Unknown):
            return attention
        mlp = self._mlp(index, hidden)
        if isinstance(mlp, Unknown):
            return mlp
        split, whole = attention
        each = self._stored("attention", index)
        return [
            each.times("attention", split, self._start.tp),
            each.times("attention, first projections", whole, 1),
            Piece.exact("norms", 2 * hidden * self._plain, 1),
            *mlp,
        ]

    def vision(self) -> list[Piece]:
        """The image encoder, by the rule of a plain transformer."""
        encoder = self._a.vision
        if encoder is None or self._start.language_model_only:
            return []
        share = 1 if self._start.vision_data_parallel else self._start.tp
        scale = self._plain / 2
        if isinstance(encoder.layers, Unknown) or isinstance(encoder.hidden, Unknown):
            return [Piece("vision", 0.0, VISION_LIKELY * scale, VISION_MOST * scale, share)]
        inner = encoder.intermediate
        inner = 4 * encoder.hidden if isinstance(inner, Unknown) else inner
        size = encoder.layers * encoder.hidden * (4 * encoder.hidden + 2 * inner) * self._plain
        # The projector into the text model and a gated MLP, where there is one, come on top.
        return [Piece("vision", size, 1.15 * size, 1.5 * size, share)]

    def draft(self) -> list[Piece]:
        """Layers of multi-token prediction: the last layer again, and two matrices to join."""
        a = self._a
        if not a.draft_layers or isinstance(a.layers, Unknown) or isinstance(a.hidden, Unknown):
            return []
        last = self.layer(a.layers - 1)
        if isinstance(last, Unknown):
            return []
        joining = 2 * a.hidden * a.hidden * self._plain
        pieces = [Piece.exact("draft", a.draft_layers * joining, self._start.tp)]
        for piece in last:
            low, high = a.draft_layers * piece.low, a.draft_layers * piece.high
            if piece.name == "experts" and self._scheme is not None and self._doubt:
                # Quantisers of 4 bits mostly leave these layers alone (GLM-5.1-NVFP4-MTP).
                high = low * self._plain * 8 / (self._packed() * 8)
            pieces.append(Piece("draft", low, high, high, piece.share))
        return pieces

    def _packed(self) -> float:
        """Bytes of one quantised weight with its scales."""
        scheme = self._scheme
        if scheme is None or isinstance(scheme.weight_bits, Unknown):
            return self._plain
        packed = (scheme.weight_bits + scheme.scale_bits) / 8
        if scheme.block:
            packed += 4 / (scheme.block[0] * scheme.block[1])
        return packed

    def _stored(self, role: str, layer: int) -> _Stored:
        plain = self._plain
        if self._scheme is None:
            return _Stored(plain, plain, plain)
        if isinstance(self._scheme.weight_bits, Unknown):
            return _Stored(plain / 4, plain / 2, plain)
        names = modules(role, layer, self._a.experts)
        if any(self._ignored.covers(module) for module in names):
            return _Stored(plain, plain, plain)
        if self._only is not None and not any(self._only.covers(module) for module in names):
            return _Stored(plain, plain, plain)
        packed = self._packed()
        if role == "experts" and self._scheme.expert_bits is not None:
            packed = self._scheme.expert_bits / 8
        if self._doubt and role in {"attention", "shared"}:
            # Where the exceptions are not said: checkpoints of mixtures of experts mostly
            # quantise the experts alone (nvidia/MiniMax-M2.5-NVFP4, moonshotai/Kimi-K2.5), dense
            # ones everything (RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic).
            return _Stored(packed, plain if self._a.experts else packed, plain)
        return _Stored(packed, packed, packed)

    def _mlp(self, index: int, hidden: int) -> list[Piece] | Unknown:
        a, settings = self._a, self._start
        if a.kinds and a.kinds[index] == "none":
            return []
        moe = a.experts
        if moe is None or index not in self._expert_layers:
            if isinstance(a.intermediate, Unknown):
                return a.intermediate
            count = (3 if a.gated else 2) * hidden * a.intermediate
            return [self._stored("dense", index).times("dense MLP", count, settings.tp)]
        if isinstance(moe.intermediate, Unknown):
            return moe.intermediate
        width = moe.intermediate
        if self._scheme is not None and self._scheme.method == "mxfp4":
            width = round_up(ceil_div(width, settings.tp), MXFP4_PAD) * settings.tp
        share = settings.tp * settings.dp if settings.ep else settings.tp
        pieces = [
            self._stored("experts", index).times("experts", 3 * hidden * width * moe.count, share),
            Piece.exact("router", hidden * moe.count * self._router_bytes(), 1),
        ]
        if moe.shared_intermediate:
            count = 3 * hidden * moe.shared_intermediate
            pieces.append(self._stored("shared", index).times("shared experts", count, settings.tp))
        return pieces

    def _router_bytes(self) -> float:
        # MiniMax-M2 keeps its routers in 32 bit (vLLM 0.32.0 models/minimax_m2.py).
        name = self._a.name
        return 4.0 if isinstance(name, str) and "MiniMaxM2" in name else self._plain

    def _attention(self, index: int, hidden: int) -> tuple[float, float] | Unknown:
        """Weights of a layer's attention: split over ranks, whole on each."""
        a = self._a
        kind = a.kinds[index] if a.kinds else "full"
        if kind == "none":
            return 0.0, 0.0
        if kind == "linear":
            return self._linear(hidden)
        if a.mla is not None:
            return self._latent(hidden)
        return self._grouped(kind, hidden)

    def _grouped(self, kind: str, hidden: int) -> tuple[float, float] | Unknown:
        """Attention with keys and values, of as many heads as queries or fewer."""
        a = self._a
        heads, kv, dim, value = a.heads, a.kv_heads, a.head_dim, a.value_dim
        if kind == "full" and a.global_kv_heads:
            kv = a.global_kv_heads
        if kind == "full" and a.global_head_dim:
            dim = value = a.global_head_dim
        for number in (heads, kv, dim, value):
            if isinstance(number, Unknown):
                return number
        heads, kv, dim, value = (known(number, 0) for number in (heads, kv, dim, value))
        # A rank holds at least one pair of key and value: with more ranks than heads they repeat.
        kv = max(kv, self._start.tp)
        queries = 2 if a.gated_attention and kind == "full" else 1
        return float(hidden * (queries * heads * dim + kv * (dim + value) + heads * value)), 0.0

    def _latent(self, hidden: int) -> tuple[float, float] | Unknown:
        mla, heads = self._a.mla, self._a.heads
        if mla is None or isinstance(heads, Unknown):
            return Unknown(unknown="num_attention_heads is not in config.json")
        if isinstance(mla.nope, Unknown):
            return mla.nope
        if isinstance(mla.value, Unknown):
            return mla.value
        query = mla.nope + mla.rope
        split = heads * mla.value * hidden + mla.kv_rank * heads * (mla.nope + mla.value)
        whole = hidden * (mla.kv_rank + mla.rope)
        if mla.q_rank is None:
            split += hidden * heads * query
        else:
            split += mla.q_rank * heads * query
            whole += hidden * mla.q_rank
        indexer = self._a.indexer
        if indexer is not None and not isinstance(indexer.heads, Unknown):
            whole += (mla.q_rank or hidden) * indexer.heads * indexer.head_dim
            whole += hidden * (indexer.head_dim + indexer.heads)
        return float(split), float(whole)

    def _linear(self, hidden: int) -> tuple[float, float] | Unknown:
        state = self._a.state
        if state is None:
            return Unknown(unknown="a linear layer without a state")
        if isinstance(state, Unknown):
            return state
        values = state.value_heads * state.value_dim
        # Inputs of the convolution, the gate, two numbers a head, and the output.
        inner = hidden * (state.conv_channels + 2 * values + 2 * state.value_heads)
        return float(inner + state.conv_channels * state.conv_kernel), 0.0
