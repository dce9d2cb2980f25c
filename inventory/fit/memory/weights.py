"""Bytes of weights on each rank under tensor, pipeline and expert parallelism.

Three sources, the best that there is: safetensors headers (exact), the size of the weight files
(the total is exact, its split follows the architecture), the architecture alone.
"""

from itertools import chain
from typing import Literal

from pydantic import Field

from inventory.base import Frozen, NotKnownError, Unknown, need
from inventory.common.units import ceil_div
from inventory.fit.memory.constants import HALF_PRECISION
from inventory.fit.memory.matrices import Matrices, Piece, absorbed, rotary
from inventory.fit.memory.span import Guess, Span
from inventory.fit.model.architecture import Architecture
from inventory.fit.settings.settings import EngineSettings

WeightsSource = Literal["headers", "files", "architecture", "given"]

_FILES_SPREAD = 0.01
"""How far the split may be off where only the total of the files is known."""
_DRAFT_THERE = 0.9
"""Share of the draft layers' bytes that the files must have to spare for them to be there."""
_UNSPLIT_SPREAD = 0.05
"""The same, where not even the architecture is known."""


class WeightPart(Frozen):
    """One kind of weights."""

    name: str
    total: int = Field(description="bytes in the whole model")
    per_rank: int = Field(description="bytes on the fullest rank")
    replicated: bool = Field(default=False, description="whole on every rank")


class Weights(Frozen):
    """The weights on the fullest rank."""

    per_rank: Span = Field(description="bytes")
    source: WeightsSource
    parts: tuple[WeightPart, ...] = ()
    remark: str = Field(default="", description="what the range is about")


def weights(architecture: Architecture, settings: EngineSettings) -> Weights | Unknown:
    """What the fullest rank holds."""
    found = _weights(architecture, settings)
    if isinstance(found, Unknown) or not settings.cpu_offload:
        return found
    on_card = found.per_rank.each(lambda end: max(0, end - settings.cpu_offload))
    return found.model_copy(update={"per_rank": on_card})


def _weights(architecture: Architecture, settings: EngineSettings) -> Weights | Unknown:
    converts = settings.element_bytes != HALF_PRECISION or (
        settings.quantization is not None and architecture.quantisation is None
    )
    if architecture.tensors is not None and not converts:
        return _from_headers(architecture, settings)
    size: int | Unknown = Unknown(unknown="no file listing was given")
    if converts:
        size = Unknown(unknown="the weights are converted when loaded")
    elif architecture.checkpoint is not None:
        size = architecture.checkpoint.size
    try:
        stages = _stages(architecture, settings)
    except NotKnownError as error:
        unknown = error.reason.unknown
        if isinstance(size, Unknown):
            return Unknown(unknown=f"{unknown}; {size.unknown}")
        share = size // (settings.tp * settings.pp)
        return Weights(
            per_rank=Span(low=share, likely=share, high=round(share * (1 + _UNSPLIT_SPREAD))),
            source="files",
            remark=f"split evenly, because {unknown}",
        )
    fullest = max(stages, key=lambda stage: _sum(stage).likely)
    computed = _sum(fullest)
    parts = _weight_parts(fullest, stages)
    if isinstance(size, Unknown):
        return Weights(
            per_rank=computed,
            source="architecture",
            parts=parts,
            remark="" if computed.is_exact else _why_wide(architecture),
        )
    whole = [piece for piece in chain.from_iterable(stages) if piece.stored]
    # Bytes of the draft layers in the files that are not used, so not loaded.
    alone = settings.model_copy(update={"tp": 1, "ep": False})
    unused = [] if settings.draft else Matrices(architecture, alone).draft()
    draft = round(sum(piece.size.likely for piece in unused))
    # Some configurations name draft layers that the files do not hold (MiniMax-M2).
    if size < sum(piece.size.low for piece in whole) + _DRAFT_THERE * draft:
        draft = 0
    return Weights(
        per_rank=_scaled(computed, whole, size - draft, settings),
        source="files",
        parts=parts,
        remark="the total is that of the files; its split follows the architecture",
    )


def _scaled(computed: Span, whole: list[Piece], loaded: int, settings: EngineSettings) -> Span:
    """The computed share, brought to the total that the files have."""
    low = sum(piece.size.low for piece in whole)
    middle = sum(piece.size.likely for piece in whole)
    high = sum(piece.size.high for piece in whole)
    # Between the least, the likely and the most that the architecture allows the files decide;
    # what they have beyond that is split like any matrix.
    if loaded < middle:
        place = max(0.0, (loaded - low) / (middle - low)) if middle > low else 1.0
        share = computed.low + place * (computed.likely - computed.low)
        rest = loaded - (low + place * (middle - low))
    else:
        place = min(1.0, (loaded - middle) / (high - middle)) if high > middle else 0.0
        share = computed.likely + place * (computed.high - computed.likely)
        rest = loaded - (middle + place * (high - middle))
    likely = round(share + rest / (settings.tp * settings.pp))
    likely = max(likely, loaded // (settings.tp * settings.pp))
    spread = round(likely * _FILES_SPREAD)
    return Span(low=likely - spread, likely=likely, high=likely + spread)


def _from_headers(architecture: Architecture, settings: EngineSettings) -> Weights:
    sums = architecture.tensors
    assert sums is not None  # noqa: S101
    vision_share = 1 if settings.vision_data_parallel else settings.tp
    expert_share = settings.tp * settings.dp if settings.ep else settings.tp
    rows = (
        ("experts", sums.experts, expert_share, settings.pp),
        ("layers", sums.sharded, settings.tp, settings.pp),
        ("replicated", sums.replicated, 1, settings.pp),
        ("embedding and output", sums.first_stage + sums.last_stage, settings.tp, 1),
        ("vision", 0 if settings.language_model_only else sums.vision, vision_share, 1),
        ("draft", sums.draft if settings.draft else 0, settings.tp, 1),
    )
    parts = tuple(
        WeightPart(
            name=name,
            total=total,
            per_rank=ceil_div(ceil_div(total, share), stages),
            replicated=share == 1,
        )
        for name, total, share, stages in rows
        if total
    )
    loading = absorbed(architecture, settings) + rotary(architecture)
    likely = sum(part.per_rank for part in parts) + round(loading)
    # Pipeline stages hold whole layers: the fullest has up to one more than the mean.
    layers = architecture.layers
    uneven = 0
    if settings.pp > 1 and not isinstance(layers, Unknown):
        uneven = (sums.experts + sums.sharded) // settings.tp // layers
    return Weights(
        per_rank=Span(low=likely, likely=likely, high=likely + uneven),
        source="headers",
        parts=parts,
    )


def _stages(architecture: Architecture, settings: EngineSettings) -> list[list[Piece]]:
    """The pieces of every pipeline stage."""
    layers, matrices = need(architecture.layers), Matrices(architecture, settings)
    matrix = need(architecture.padded_vocabulary) * need(architecture.hidden)
    loading = rotary(architecture) + absorbed(architecture, settings)
    stages: list[list[Piece]] = []
    first = 0
    for stage, count in enumerate(layers_per_stage(layers, settings.pp)):
        pieces = [piece for layer in range(first, first + count) for piece in matrices.layer(layer)]
        first += count
        if stage == 0:
            pieces.append(matrices.plain("embedding", matrix, settings.tp))
            pieces += matrices.vision()
        if stage == settings.pp - 1:
            if not architecture.tied or settings.pp > 1:
                pieces.append(matrices.plain("output", matrix, settings.tp))
            if settings.draft:
                pieces += matrices.draft()
        pieces.append(Piece("made by loading", Guess.exactly(loading), 1, stored=False))
        stages.append(pieces)
    return stages


def layers_per_stage(layers: int, stages: int) -> list[int]:
    """How the engine spreads layers over pipeline stages: what does not divide goes to the stages
    before the last (vLLM 0.32.0 distributed/utils.py, get_pp_indices).

    >>> layers_per_stage(61, 4)
    [15, 15, 16, 15]
    """
    base, rest = divmod(layers, stages)
    counts = [base] * stages
    for place in range(2, rest + 2):
        counts[-place] += 1
    return counts


def _sum(pieces: list[Piece]) -> Span:
    return Span(
        low=round(sum(piece.size.low / piece.share for piece in pieces)),
        likely=round(sum(piece.size.likely / piece.share for piece in pieces)),
        high=round(sum(piece.size.high / piece.share for piece in pieces)),
    )


def _weight_parts(fullest: list[Piece], stages: list[list[Piece]]) -> tuple[WeightPart, ...]:
    totals: dict[str, float] = {}
    shares: dict[str, float] = {}
    for piece in fullest:
        shares[piece.name] = shares.get(piece.name, 0.0) + piece.size.likely / piece.share
    for piece in chain.from_iterable(stages):
        totals[piece.name] = totals.get(piece.name, 0.0) + piece.size.likely
    whole = {piece.name for piece in fullest if piece.share == 1}
    return tuple(
        WeightPart(
            name=name, total=round(totals[name]), per_rank=round(share), replicated=name in whole
        )
        for name, share in shares.items()
        if share
    )


def _why_wide(architecture: Architecture) -> str:
    scheme = architecture.quantisation
    if scheme is not None and isinstance(scheme.weight_bits, Unknown):
        return scheme.weight_bits.unknown
    if scheme is not None and isinstance(scheme.ignored, Unknown):
        return scheme.ignored.unknown
    return "the image encoder is estimated"
