"""How well the fit predicts published starts: one row a case, and the shares that count.

A case is scored on what it tells. Its outcome counts where it gives what the arithmetic needs
(version, memory, utilisation, length, sequences, the model's shape); its tokens where it prints
the memory that they follow from; its memory where the overhead can be predicted at all.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import Field

from inventory.base import Frozen, Unknown
from inventory.common.units import GIB, from_gib
from inventory.fit.fit import Fit, fit
from inventory.fit.memory.kv import KvLayout
from inventory.fit.memory.span import exactly
from inventory.fit.memory.weights import Weights, weights
from inventory.fit.settings.card import Card
from tests.benchmarks.published.cases import Case, case_of, printed_bytes, printed_gib
from tests.benchmarks.published.judge import Verdict, judge, missing_inputs

SURE_WEIGHTS = 0.03
"""Width of the range of computed weights below which they count as known."""


class Row(Frozen):
    """One case."""

    id: str
    version: str
    card: str
    model: str
    published: str
    predicted: str
    outcome: Verdict
    reason: str = Field(default="", description="why it is not scored, or why it missed")
    weights: tuple[float, float] | None = Field(
        default=None, description="GiB a rank: published, computed from the architecture"
    )
    memory: tuple[float, float] | None = Field(
        default=None, description="GiB of KV cache: published, predicted"
    )
    memory_counts: bool = False
    within_range: bool | None = Field(default=None, description="published lies in the range")
    tokens: tuple[int, int] | None = Field(
        default=None, description="published, computed from the published memory"
    )
    concurrency: tuple[float, float] | None = None
    hybrid: bool = False
    several: bool = Field(default=False, description="the lines come from different ranks")


class Totals(NamedTuple):
    """The shares."""

    scored: int
    right: int
    tokens: int
    tokens_near: int
    memory: int
    memory_median: float
    memory_within_1: int
    in_range: int


def score(
    cases: Iterable[Mapping[str, Any]],
    models: Mapping[str, Mapping[str, Any]],
    set_aside: Mapping[str, str],
) -> tuple[Row, ...]:
    """A row for every case.

    + cases, models: cases.json and models.json
    + set_aside: case (or a pattern with ``*``) -> why its outcome says nothing about arithmetic:
      coin flips, version faults, shared GPUs
    """
    return tuple(_row(case_of(raw, models), set_aside) for raw in cases)


def totals(rows: Iterable[Row]) -> Totals:
    """The shares over all rows."""
    rows = tuple(rows)
    scored = [row for row in rows if row.outcome != "not scored"]
    tokens = [row for row in rows if row.tokens and not row.hybrid and not row.several]
    counted = [row for row in rows if row.memory and row.memory_counts]
    errors = [abs(row.memory[1] - row.memory[0]) for row in counted if row.memory]
    return Totals(
        scored=len(scored),
        right=sum(row.outcome == "right" for row in scored),
        tokens=len(tokens),
        tokens_near=sum(token_error(row) <= 0.005 for row in tokens),
        memory=len(errors),
        memory_median=statistics.median(errors) if errors else 0.0,
        memory_within_1=sum(error <= 1 for error in errors),
        in_range=sum(row.within_range is True for row in counted),
    )


def token_error(row: Row) -> float:
    """Relative error of the tokens; 0 for a case without tokens."""
    return abs(row.tokens[1] / row.tokens[0] - 1) if row.tokens else 0.0


def _row(case: Case, set_aside: Mapping[str, str]) -> Row:
    outcome = case.outcome
    loaded = printed_gib(outcome, "model_loading_gib")
    computed = weights(case.architecture, case.settings)
    sure = not isinstance(computed, Unknown) and (
        computed.per_rank.high - computed.per_rank.low <= SURE_WEIGHTS * computed.per_rank.likely
    )
    # Where the entry does not tell the weights, the printed ones stand for the headers that a real
    # checkpoint has.
    load = (
        Weights(per_rank=exactly(from_gib(loaded)), source="given")
        if loaded is not None and not sure
        else None
    )
    answer = fit(case.architecture, case.settings, _shared(case), load=load)
    missing = missing_inputs(case, answer, sure=sure)
    verdict, reason = judge(case, answer, missing, set_aside)
    memory = _memory(case, answer)
    return Row(
        id=case.id,
        version=str(case.raw.get("vllm_version") or "?"),
        card=_card(case),
        model=str(case.raw.get("model") or "?"),
        published=str(outcome.get("failure_class") or outcome.get("status")),
        predicted=_predicted(answer),
        outcome=verdict,
        reason=reason,
        weights=(loaded, computed.per_rank.likely / GIB)
        if loaded is not None and not isinstance(computed, Unknown)
        else None,
        memory=memory,
        memory_counts=memory is not None
        and not [gap for gap in missing if gap != "length"]
        and case.settings.kv_cache_memory is None,
        within_range=_in_range(answer, memory),
        tokens=_tokens(case, answer),
        concurrency=_concurrency(case, answer),
        hybrid=_layout(answer) is None or not _is_uniform(answer),
        several=case.settings.pp > 1,
    )


def _shared(case: Case) -> tuple[Card, ...]:
    """The cards; where others use them, with what the start found free."""
    free = printed_bytes(case.outcome, "free_at_init_gib") if case.raw.get("gpu_shared") else None
    if free is None:
        return case.cards
    return tuple(
        card.model_copy(update={"free": free, "nvml_total": card.total.likely})
        for card in case.cards
    )


def _predicted(answer: Fit) -> str:
    if answer.failure is None:
        return answer.outcome
    return f"{'refused' if answer.failure.certain else 'fails'}: {answer.failure.rule}"


def _memory(case: Case, answer: Fit) -> tuple[float, float] | None:
    published = printed_gib(case.outcome, "available_kv_gib")
    if published is None or isinstance(answer.memory, Unknown):
        return None
    return published, answer.memory.available.likely / GIB


def _in_range(answer: Fit, memory: tuple[float, float] | None) -> bool | None:
    if memory is None or isinstance(answer.memory, Unknown):
        return None
    span = answer.memory.available
    # The published figure is rounded to two decimals.
    return span.low / GIB - 0.005 <= memory[0] <= span.high / GIB + 0.005


def _layout(answer: Fit) -> KvLayout | None:
    if isinstance(answer.memory, Unknown) or isinstance(answer.memory.kv, Unknown):
        return None
    return answer.memory.kv


def _is_uniform(answer: Fit) -> bool:
    layout = _layout(answer)
    return layout is not None and layout.is_uniform


def _length(answer: Fit) -> int:
    length = answer.resolved.max_model_len
    return length if isinstance(length, int) else 1


def _tokens(case: Case, answer: Fit) -> tuple[int, int] | None:
    layout, published = _layout(answer), case.outcome.get("kv_tokens")
    memory = printed_bytes(case.outcome, "available_kv_gib")
    if layout is None or memory is None or not isinstance(published, int):
        return None
    return published, layout.tokens(memory, _length(answer))


def _concurrency(case: Case, answer: Fit) -> tuple[float, float] | None:
    layout, published = _layout(answer), printed_gib(case.outcome, "max_concurrency")
    memory = printed_bytes(case.outcome, "available_kv_gib")
    if layout is None or memory is None or published is None or case.settings.pp > 1:
        return None
    return published, layout.concurrency(memory, _length(answer))


def _card(case: Case) -> str:
    gpu = case.raw.get("gpu")
    name = gpu.get("name") if isinstance(gpu, Mapping) else None
    return f"{len(case.cards) or '?'} x {name or '?'}"
