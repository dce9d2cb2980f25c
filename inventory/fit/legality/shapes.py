"""Which parallel sizes a model's shape allows. All of it is division.

The checks are the engine's own (vLLM 0.32.0): config/model.py:1546 heads, models/minimax_m2.py KV
heads, vocab_parallel_embedding.py:36 vocabulary, distributed/utils.py:54 the rest; blocks and
groups of quantised weights are in shape_blocks.py.
"""

from collections.abc import Iterator

from inventory.base import Unknown
from inventory.fit.answer.verdict import Verdict, certainty
from inventory.fit.legality.shape_blocks import Problem, fp8_dense, fp8_experts, groups, quotient
from inventory.fit.model.architecture import Architecture, Dimension, LinearState
from inventory.fit.settings.settings import EngineSettings, Release

_LARGEST_TP = 16


def shape_verdicts(
    architecture: Architecture, settings: EngineSettings, engine: Release | Unknown, gpus: int
) -> tuple[Verdict, ...]:
    """Parallel sizes that cannot work, or that work only in new engines.

    + engine: the version; with an unknown one a version's rule is a prediction
    """
    problems = list(_problems(architecture, settings, engine))
    if not problems:
        return ()
    choices = legal_choices(architecture, settings, engine, gpus)
    asked = _sizes(settings)
    next_step = f"choose {', or '.join(choices)}"
    if not choices:
        next_step = (
            f"no tensor parallel size up to {_LARGEST_TP} is legal for this model: check its "
            "config.json"
        )
    return tuple(
        certainty(one.rule, asked, one.found, one.why, next_step, *choices, certain=one.certain)
        for one in problems
    )


def legal_choices(
    architecture: Architecture, settings: EngineSettings, engine: Release | Unknown, gpus: int
) -> tuple[str, ...]:
    """The nearest legal settings: the next tensor parallel size below and above, and the same size
    with whole experts on each rank.

    + gpus: larger sizes are not offered
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
    """Tensor parallel sizes up to 16 without a certain problem."""
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
    yield from _divisions(a, settings)
    ranks = settings.tp * settings.dp if settings.ep else settings.tp
    if a.experts is not None and ranks > a.experts.count:
        yield Problem(
            "experts",
            f"{a.experts.count} experts for {ranks} ranks",
            "the engine refuses more ranks than experts",
        )
    yield from fp8_experts(a, settings, engine)
    yield from fp8_dense(a, settings)
    yield from groups(a, settings)
    if isinstance(a.layers, int) and settings.pp > a.layers:
        yield Problem(
            "pipeline",
            f"{settings.pp} pipeline stages for {a.layers} layers",
            "every stage needs a layer",
        )
    yield from _context_parallel(a, settings)


def _divisions(a: Architecture, settings: EngineSettings) -> Iterator[Problem]:
    """What every rank takes an equal share of."""

    def uneven(rule: str, number: Dimension, name: str, why: str) -> Iterator[Problem]:
        if isinstance(number, int) and number % settings.tp:
            found = f"{name.format(number)}: {quotient(number, settings.tp)}, not a whole number"
            yield Problem(rule, found, why)

    yield from uneven(
        "heads",
        a.heads,
        "{} attention heads",
        "each rank takes the same number of attention heads, and the engine refuses",
    )
    kv_heads = set() if a.mla else {a.kv_heads, a.global_kv_heads} - {None}
    for heads in kv_heads:
        if isinstance(heads, int) and heads % settings.tp and settings.tp % heads:
            yield Problem(
                "kv-heads",
                f"{heads} KV heads: neither {quotient(heads, settings.tp)} nor "
                f"{quotient(settings.tp, heads)} is a whole number",
                "KV heads are either split evenly or repeated evenly over the ranks",
            )
    yield from uneven(
        "vocabulary",
        a.padded_vocabulary,
        "vocabulary of {} (padded to 64)",
        "the embedding is split evenly over the ranks",
    )
    if isinstance(a.state, LinearState):
        yield from uneven(
            "linear-heads",
            a.state.value_heads,
            "{} heads of linear attention",
            "each rank takes the same number of them",
        )
    if a.vision and not (settings.vision_data_parallel or settings.language_model_only):
        yield from uneven(
            "vision-heads",
            a.vision.heads,
            "{} heads of the image encoder",
            "the image encoder is split as the text model is, unless "
            "--mm-encoder-tp-mode data gives each rank a whole one",
        )


def _context_parallel(a: Architecture, settings: EngineSettings) -> Iterator[Problem]:
    if settings.tp % settings.dcp:
        yield Problem(
            "context-parallel",
            f"{quotient(settings.tp, settings.dcp)}, not a whole number",
            "decode context parallelism divides the ranks of tensor parallelism",
        )
    elif a.mla is None and isinstance(a.kv_heads, int):
        most = settings.tp // a.kv_heads
        if settings.dcp > max(1, most):
            yield Problem(
                "context-parallel",
                f"{settings.tp} ranks // {a.kv_heads} KV heads = {most}, less than {settings.dcp}",
                "without MLA only ranks that repeat a KV head can share its context",
            )
