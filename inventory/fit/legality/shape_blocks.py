"""Where quantisation forbids a split: FP8 blocks and groups of weights that share a scale.

The checks are the engine's own (vLLM 0.32.0 fp8_utils.py:1325-1373, distributed/utils.py:76).
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from inventory.base import Unknown, known
from inventory.fit.memory.ignored import Ignored, modules
from inventory.fit.model.architecture import Architecture
from inventory.fit.settings.settings import NEWEST_READ, EngineSettings, Release, shown

REFINES_SINCE: Release = (0, 32, 0)
"""From here on the engine splits the scales of experts' FP8 blocks to fit
(fused_moe/oracle/fp8.py:288-391); read in 0.32.0."""
REFINES_NOT_BEFORE: Release = (0, 27, 0)
"""Until 0.26 it certainly does not: vllm-project/vllm#48173, July 2026, still shows the failure."""
REFINED_LEAST = 32


class Problem(NamedTuple):
    """One size that does not work."""

    rule: str
    found: str
    why: str
    certain: bool = True


def quotient(value: int, by: int) -> str:
    """The division, as people write it."""
    return f"{value} / {by} = {value / by:.6g}"


def fp8_experts(
    a: Architecture, settings: EngineSettings, engine: Release | Unknown
) -> Iterator[Problem]:
    """Experts whose share of a rank cuts an FP8 block, and whether the engine makes them finer."""
    moe, scheme = a.experts, a.quantisation
    if moe is None or scheme is None or scheme.block is None or settings.ep or settings.tp == 1:
        return
    if isinstance(moe.intermediate, Unknown) or not moe.layers:
        return
    if _leaves_alone(a, "experts", moe.layers[-1]):
        return
    share, rest = divmod(moe.intermediate, settings.tp)
    block = next((size for size in scheme.block if rest or share % size), None)
    if block is None:
        return
    hidden = a.hidden if isinstance(a.hidden, int) else 0
    finer = math.gcd(*scheme.block, share, hidden) if not rest else 0
    what = f"{quotient(moe.intermediate, settings.tp)}, not a multiple of {block}"
    why = f"FP8 weights have one scale for each {block} rows or columns of an expert"
    version = known(engine, NEWEST_READ)
    if finer >= REFINED_LEAST and version >= REFINES_SINCE:
        yield Problem(
            "fp8-block-refined",
            what,
            f"{why}; {shown(version)} refines the blocks to {finer} x {finer}, which only the "
            "Triton kernels take, and they are slower at it",
            certain=False,
        )
        return
    sure = finer < REFINED_LEAST or version < REFINES_NOT_BEFORE
    yield Problem("fp8-block", what, f"{why}, and {shown(version)} does not split them", sure)


def fp8_dense(a: Architecture, settings: EngineSettings) -> Iterator[Problem]:
    """The first dense matrix whose share of a rank cuts an FP8 block."""
    scheme = a.quantisation
    if scheme is None or scheme.block is None or settings.tp == 1:
        return
    rows, columns = scheme.block
    for name, total, out in _split_dimensions(a, settings):
        size = rows if out else columns
        if total % (settings.tp * size):
            yield Problem(
                "fp8-block",
                f"{name}: {quotient(total, settings.tp)}, not a multiple of {size}",
                "FP8 weights have one scale for each block, and a block cannot be split",
            )
            return


def _split_dimensions(a: Architecture, settings: EngineSettings) -> Iterator[tuple[str, int, bool]]:
    """Dimensions of the dense quantised layers that ranks split: name, size, whether it is an
    output."""
    layer = (a.layers if isinstance(a.layers, int) else 1) - 1
    if not _leaves_alone(a, "attention", layer) and a.mla is None and "linear" not in a.kinds:
        if isinstance(a.heads, int) and isinstance(a.head_dim, int):
            yield "attention queries", a.heads * a.head_dim, True
        if isinstance(a.kv_heads, int) and isinstance(a.head_dim, int):
            yield "attention keys", max(a.kv_heads, settings.tp) * a.head_dim, True
    dense = a.experts is None or len(a.experts.layers) < (layer + 1)
    if dense and isinstance(a.intermediate, int) and not _leaves_alone(a, "dense", 0):
        yield "MLP", a.intermediate, True
    moe = a.experts
    if moe is not None and moe.shared_intermediate and not _leaves_alone(a, "shared", layer):
        yield "shared experts", moe.shared_intermediate, True


def groups(a: Architecture, settings: EngineSettings) -> Iterator[Problem]:
    """Matrices whose share of a rank cuts a group of weights (GPTQ, AWQ, INT4)."""
    scheme = a.quantisation
    if scheme is None or scheme.group is None or scheme.block is not None or settings.tp == 1:
        return
    if isinstance(scheme.weight_bits, Unknown) or scheme.method == "mxfp4":
        return
    moe = a.experts
    last = (a.layers if isinstance(a.layers, int) else 1) - 1
    inputs: list[tuple[str, int, bool]] = []
    if (
        a.mla is None
        and "linear" not in a.kinds
        and isinstance(a.heads, int)
        and isinstance(a.value_dim, int)
        and not _leaves_alone(a, "attention", last)
    ):
        inputs.append(("attention output", a.heads * a.value_dim, True))
    if (moe is None or len(moe.layers) <= last) and isinstance(a.intermediate, int):
        inputs.append(("MLP", a.intermediate, True))
    if moe is not None and isinstance(moe.intermediate, int) and not settings.ep:
        # The experts' kernels halve the group until it fits (moe_wna16.py): slower, not wrong.
        inputs.append(("experts", moe.intermediate, False))
    for name, total, certain in inputs:
        if total % (settings.tp * scheme.group):
            yield Problem(
                "group-size",
                f"{name}: {quotient(total, settings.tp)}, not a multiple of the group size "
                f"{scheme.group}",
                "weights of one group share a scale, and a group cannot be split over ranks",
                certain,
            )


def _leaves_alone(a: Architecture, role: str, layer: int) -> bool:
    """Whether the checkpoint keeps a role unquantised. If it does not say, attention and shared
    experts may be."""
    scheme = a.quantisation
    if scheme is None:
        return True
    if isinstance(scheme.ignored, Unknown):
        return role in {"attention", "shared"} and a.experts is not None
    ignored = Ignored(scheme.ignored)
    return any(ignored.covers(module) for module in modules(role, layer, a.experts))
