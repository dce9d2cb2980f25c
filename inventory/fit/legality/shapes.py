"""Which parallel sizes a model's shape allows. All of it is division.

The checks are the engine's own (vLLM 0.32.0): config/model.py:1546 heads, models/minimax_m2.py KV
heads, vocab_parallel_embedding.py:36 vocabulary, distributed/utils.py:54 the rest; blocks and
groups of quantised weights are in shape_blocks.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from inventory.base import Unknown
from inventory.fit.answer.verdict import Verdict
from inventory.fit.legality.shape_blocks import Problem, fp8_dense, fp8_experts, groups, quotient
from inventory.fit.model.architecture import Architecture
from inventory.fit.settings.settings import EngineSettings, Release

_LARGEST_TP = 16


def shape_verdicts(
    architecture: Architecture, settings: EngineSettings, engine: Release | Unknown, gpus: int
) -> tuple[Verdict, ...]:
    """Everything about a start's parallel sizes that cannot work, or works only since lately.

    + engine: the version; unknown: what only some versions can do is a prediction
    + gpus: how many there are, for the choices
    """
    problems = list(_problems(architecture, settings, engine))
    if not problems:
        return ()
    choices = legal_choices(architecture, settings, engine, gpus)
    asked = _sizes(settings)
    next_step = (
        f"choose {', or '.join(choices)}"
        if choices
        else "no tensor parallel size up to "
        f"{_LARGEST_TP} is legal for this model: check its config.json"
    )
    return tuple(
        Verdict(
            rule=problem.rule,
            certain=problem.certain,
            wanted=asked,
            found=problem.found,
            why=problem.why,
            next_step=next_step,
            choices=choices,
        )
        for problem in problems
    )


def legal_choices(
    architecture: Architecture, settings: EngineSettings, engine: Release | Unknown, gpus: int
) -> tuple[str, ...]:
    """The nearest legal settings: the next tensor parallel size below and above, and the same size
    with whole experts on each rank.

    + gpus: sizes beyond it are not offered, unless none fits
    """
    legal = legal_sizes(architecture, settings, engine)
    below = [tp for tp in legal if tp < settings.tp]
    above = [tp for tp in legal if settings.tp < tp <= max(gpus, settings.tp)]
    found = [f"TP={max(below)}"] if below else []
    found += [f"TP={min(above)}"] if above else []
    whole = settings.model_copy(update={"ep": True})
    if not settings.ep and architecture.experts and _is_legal(architecture, whole, engine):
        found.append(f"TP={settings.tp} with --enable-expert-parallel")
    return tuple(found)


def legal_sizes(
    architecture: Architecture, settings: EngineSettings, engine: Release | Unknown
) -> tuple[int, ...]:
    """Tensor parallel sizes up to 16 without a certain problem.

    + settings: its other settings
    """
    return tuple(
        tp
        for tp in range(1, _LARGEST_TP + 1)
        if _is_legal(architecture, settings.model_copy(update={"tp": tp}), engine)
    )


def _is_legal(
    architecture: Architecture, settings: EngineSettings, engine: Release | Unknown
) -> bool:
    return not any(problem.certain for problem in _problems(architecture, settings, engine))


def _sizes(settings: EngineSettings) -> str:
    parts = [f"tensor parallel size {settings.tp}"]
    parts += [f"pipeline parallel size {settings.pp}"] if settings.pp > 1 else []
    parts += ["expert parallelism"] if settings.ep else []
    parts += [f"decode context parallel size {settings.dcp}"] if settings.dcp > 1 else []
    return ", ".join(parts)


def _problems(
    a: Architecture, settings: EngineSettings, engine: Release | Unknown
) -> Iterator[Problem]:
    return chain(
        _heads(a, settings),
        _kv_heads(a, settings),
        _vocabulary(a, settings),
        _state_heads(a, settings),
        _vision_heads(a, settings),
        _expert_count(a, settings),
        fp8_experts(a, settings, engine),
        fp8_dense(a, settings),
        groups(a, settings),
        _stages(a, settings),
        _context_parallel(a, settings),
    )


def _heads(a: Architecture, settings: EngineSettings) -> Iterator[Problem]:
    if isinstance(a.heads, int) and a.heads % settings.tp:
        yield Problem(
            "heads",
            True,
            f"{a.heads} attention heads: {quotient(a.heads, settings.tp)}, not a whole number",
            "each rank takes the same number of attention heads, and the engine refuses",
        )


def _kv_heads(a: Architecture, settings: EngineSettings) -> Iterator[Problem]:
    if a.mla is not None:
        return
    for heads in {a.kv_heads, a.global_kv_heads} - {None}:
        if isinstance(heads, int) and heads % settings.tp and settings.tp % heads:
            yield Problem(
                "kv-heads",
                True,
                f"{heads} KV heads: neither {quotient(heads, settings.tp)} nor "
                f"{quotient(settings.tp, heads)} is a whole number",
                "KV heads are either split evenly or repeated evenly over the ranks",
            )


def _vocabulary(a: Architecture, settings: EngineSettings) -> Iterator[Problem]:
    padded = a.padded_vocabulary
    if isinstance(padded, int) and padded % settings.tp:
        yield Problem(
            "vocabulary",
            True,
            f"vocabulary of {padded} (padded to 64): {quotient(padded, settings.tp)}, "
            "not a whole number",
            "the embedding is split evenly over the ranks",
        )


def _state_heads(a: Architecture, settings: EngineSettings) -> Iterator[Problem]:
    if a.state is None or isinstance(a.state, Unknown):
        return
    if a.state.value_heads % settings.tp:
        yield Problem(
            "linear-heads",
            True,
            f"{a.state.value_heads} heads of linear attention: "
            f"{quotient(a.state.value_heads, settings.tp)}, not a whole number",
            "each rank takes the same number of them",
        )


def _vision_heads(a: Architecture, settings: EngineSettings) -> Iterator[Problem]:
    if a.vision is None or settings.vision_data_parallel or settings.language_model_only:
        return
    heads = a.vision.heads
    if isinstance(heads, int) and heads % settings.tp:
        yield Problem(
            "vision-heads",
            True,
            f"{heads} heads of the image encoder: {quotient(heads, settings.tp)}, "
            "not a whole number",
            "the image encoder is split as the text model is, unless "
            "--mm-encoder-tp-mode data gives each rank a whole one",
        )


def _expert_count(a: Architecture, settings: EngineSettings) -> Iterator[Problem]:
    moe = a.experts
    if moe is None:
        return
    ranks = settings.tp * settings.dp if settings.ep else settings.tp
    if ranks > moe.count:
        yield Problem(
            "experts",
            True,
            f"{moe.count} experts for {ranks} ranks",
            "the engine refuses more ranks than experts",
        )


def _stages(a: Architecture, settings: EngineSettings) -> Iterator[Problem]:
    if isinstance(a.layers, int) and settings.pp > a.layers:
        yield Problem(
            "pipeline",
            True,
            f"{settings.pp} pipeline stages for {a.layers} layers",
            "every stage needs a layer",
        )


def _context_parallel(a: Architecture, settings: EngineSettings) -> Iterator[Problem]:
    if settings.dcp == 1:
        return
    if settings.tp % settings.dcp:
        yield Problem(
            "context-parallel",
            True,
            f"{quotient(settings.tp, settings.dcp)}, not a whole number",
            "decode context parallelism divides the ranks of tensor parallelism",
        )
    elif a.mla is None and isinstance(a.kv_heads, int):
        most = settings.tp // a.kv_heads
        if settings.dcp > max(1, most):
            yield Problem(
                "context-parallel",
                True,
                f"{settings.tp} ranks // {a.kv_heads} KV heads = {most}, less than {settings.dcp}",
                "without MLA only ranks that repeat a KV head can share its context",
            )
