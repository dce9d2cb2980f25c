"""Which parallel sizes a model's shape allows. All of it is division.

The checks are the engine's own (vLLM 0.32.0): config/model.py:1546 heads, models/minimax_m2.py KV
heads, vocab_parallel_embedding.py:36 vocabulary, distributed/utils.py:54 the rest; blocks and
groups of quantised weights are in shape_blocks.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from inventory.base import Unknown
from inventory.fit.answer.verdict import Verdict
from inventory.fit.legality.shape_blocks import Problem, fp8_dense, fp8_experts, groups, quotient
from inventory.fit.model.architecture import Architecture
from inventory.fit.start.start import Start
from inventory.fit.start.version import Release

_LARGEST_TP = 16


def shape_verdicts(
    architecture: Architecture, start: Start, engine: Release | Unknown, gpus: int
) -> tuple[Verdict, ...]:
    """Everything about a start's parallel sizes that cannot work, or works only since lately.

    + engine: the version; unknown: what only some versions can do is a prediction
    + gpus: how many there are, for the choices
    """
    problems = list(_problems(architecture, start, engine))
    if not problems:
        return ()
    choices = legal_choices(architecture, start, engine, gpus)
    asked = _sizes(start)
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
    architecture: Architecture, start: Start, engine: Release | Unknown, gpus: int
) -> tuple[str, ...]:
    """The nearest legal settings: the next tensor parallel size below and above, and the same size
    with whole experts on each rank.

    + gpus: sizes beyond it are not offered, unless none fits
    """
    legal = legal_sizes(architecture, start, engine)
    below = [tp for tp in legal if tp < start.tp]
    above = [tp for tp in legal if start.tp < tp <= max(gpus, start.tp)]
    found = [f"TP={max(below)}"] if below else []
    found += [f"TP={min(above)}"] if above else []
    whole = start.model_copy(update={"ep": True})
    if not start.ep and architecture.experts and _is_legal(architecture, whole, engine):
        found.append(f"TP={start.tp} with --enable-expert-parallel")
    return tuple(found)


def legal_sizes(
    architecture: Architecture, start: Start, engine: Release | Unknown
) -> tuple[int, ...]:
    """Tensor parallel sizes up to 16 without a certain problem.

    + start: its other settings
    """
    return tuple(
        tp
        for tp in range(1, _LARGEST_TP + 1)
        if _is_legal(architecture, start.model_copy(update={"tp": tp}), engine)
    )


def _is_legal(architecture: Architecture, start: Start, engine: Release | Unknown) -> bool:
    return not any(problem.certain for problem in _problems(architecture, start, engine))


def _sizes(start: Start) -> str:
    parts = [f"tensor parallel size {start.tp}"]
    parts += [f"pipeline parallel size {start.pp}"] if start.pp > 1 else []
    parts += ["expert parallelism"] if start.ep else []
    parts += [f"decode context parallel size {start.dcp}"] if start.dcp > 1 else []
    return ", ".join(parts)


def _problems(
    architecture: Architecture, start: Start, engine: Release | Unknown
) -> Iterator[Problem]:
    checks: tuple[Callable[[Architecture, Start, Release | Unknown], Iterator[Problem]], ...] = (
        _heads,
        _kv_heads,
        _vocabulary,
        _state_heads,
        _vision_heads,
        _expert_count,
        fp8_experts,
        fp8_dense,
        groups,
        _stages,
        _context_parallel,
    )
    for check in checks:
        yield from check(architecture, start, engine)


def _heads(a: Architecture, start: Start, _engine: Release | Unknown) -> Iterator[Problem]:
    if isinstance(a.heads, int) and a.heads % start.tp:
        yield Problem(
            "heads",
            True,
            f"{a.heads} attention heads: {quotient(a.heads, start.tp)}, not a whole number",
            "each rank takes the same number of attention heads, and the engine refuses",
        )


def _kv_heads(a: Architecture, start: Start, _engine: Release | Unknown) -> Iterator[Problem]:
    if a.mla is not None:
        return
    for heads in {a.kv_heads, a.global_kv_heads} - {None}:
        if isinstance(heads, int) and heads % start.tp and start.tp % heads:
            yield Problem(
                "kv-heads",
                True,
                f"{heads} KV heads: neither {quotient(heads, start.tp)} nor "
                f"{quotient(start.tp, heads)} is a whole number",
                "KV heads are either split evenly or repeated evenly over the ranks",
            )


def _vocabulary(a: Architecture, start: Start, _engine: Release | Unknown) -> Iterator[Problem]:
    padded = a.padded_vocabulary
    if isinstance(padded, int) and padded % start.tp:
        yield Problem(
            "vocabulary",
            True,
            f"vocabulary of {padded} (padded to 64): {quotient(padded, start.tp)}, "
            "not a whole number",
            "the embedding is split evenly over the ranks",
        )


def _state_heads(a: Architecture, start: Start, _engine: Release | Unknown) -> Iterator[Problem]:
    if a.state is None or isinstance(a.state, Unknown):
        return
    if a.state.value_heads % start.tp:
        yield Problem(
            "linear-heads",
            True,
            f"{a.state.value_heads} heads of linear attention: "
            f"{quotient(a.state.value_heads, start.tp)}, not a whole number",
            "each rank takes the same number of them",
        )


def _vision_heads(a: Architecture, start: Start, _engine: Release | Unknown) -> Iterator[Problem]:
    if a.vision is None or start.vision_data_parallel or start.language_model_only:
        return
    heads = a.vision.heads
    if isinstance(heads, int) and heads % start.tp:
        yield Problem(
            "vision-heads",
            True,
            f"{heads} heads of the image encoder: {quotient(heads, start.tp)}, not a whole number",
            "the image encoder is split as the text model is, unless "
            "--mm-encoder-tp-mode data gives each rank a whole one",
        )


def _expert_count(a: Architecture, start: Start, _engine: Release | Unknown) -> Iterator[Problem]:
    moe = a.experts
    if moe is None:
        return
    ranks = start.tp * start.dp if start.ep else start.tp
    if ranks > moe.count:
        yield Problem(
            "experts",
            True,
            f"{moe.count} experts for {ranks} ranks",
            "the engine refuses more ranks than experts",
        )


def _stages(a: Architecture, start: Start, _engine: Release | Unknown) -> Iterator[Problem]:
    if isinstance(a.layers, int) and start.pp > a.layers:
        yield Problem(
            "pipeline",
            True,
            f"{start.pp} pipeline stages for {a.layers} layers",
            "every stage needs a layer",
        )


def _context_parallel(
    a: Architecture, start: Start, _engine: Release | Unknown
) -> Iterator[Problem]:
    if start.dcp == 1:
        return
    if start.tp % start.dcp:
        yield Problem(
            "context-parallel",
            True,
            f"{quotient(start.tp, start.dcp)}, not a whole number",
            "decode context parallelism divides the ranks of tensor parallelism",
        )
    elif a.mla is None and isinstance(a.kv_heads, int):
        most = start.tp // a.kv_heads
        if start.dcp > max(1, most):
            yield Problem(
                "context-parallel",
                True,
                f"{start.tp} ranks // {a.kv_heads} KV heads = {most}, less than {start.dcp}",
                "without MLA only ranks that repeat a KV head can share its context",
            )
