"""Whether one prediction came true, and which cases say nothing about arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Literal

from inventory.base import Unknown
from inventory.fit.fit import Fit
from inventory.fit.settings.settings import release
from tests.benchmarks.published.cases import Case, printed_gib
from tests.benchmarks.published.classes import RULES_OF_CLASS, SHAPE_CLASSES

Verdict = Literal["right", "wrong", "not scored"]

COIN_FLIP = 0.1
"""GiB: a margin below this is decided by chance (NOTES.md section 2)."""


def judge(
    case: Case, answer: Fit, missing: list[str], set_aside: Mapping[str, str]
) -> tuple[Verdict, str]:
    """Whether the fit foretold how a start ended, and why it did not or is not scored.

    + missing: what :func:`missing_inputs` found
    + set_aside: as in :func:`tests.benchmarks.published.score.score`
    """
    aside = _aside(case, set_aside)
    klass = case.outcome.get("failure_class")
    if klass in SHAPE_CLASSES:
        return _judge_shape(case, answer, str(klass))
    if klass == "free_lt_requested" and answer.failure is not None:
        fires = answer.failure.rule == "free-memory"
        return ("right" if fires else "wrong"), "" if fires else "the free memory did not fire"
    if aside:
        return "not scored", aside
    if answer.outcome == "unknown" and not missing:
        missing = ["KV layout"]
    if missing:
        return "not scored", f"insufficient inputs: {', '.join(missing)}"
    return _judge_memory(case, answer, str(klass))


def _judge_memory(case: Case, answer: Fit, klass: str) -> tuple[Verdict, str]:
    failed = case.outcome.get("status") == "failure"
    if failed != (answer.outcome == "fails"):
        return "wrong", _why(answer)
    rule = answer.failure.rule if failed and answer.failure is not None else ""
    if rule and rule not in RULES_OF_CLASS.get(klass, frozenset()):
        return "right", f"fails, for another reason than {klass}: {rule}"
    return "right", ""


def _aside(case: Case, set_aside: Mapping[str, str]) -> str:
    """Why arithmetic does not decide a case's outcome; empty if it does."""
    named = next((why for name, why in set_aside.items() if fnmatchcase(case.id, name)), "")
    if named:
        return named
    if case.raw.get("gpu_shared"):
        return "shared GPU: neighbours' memory is not known"
    needed = printed_gib(case.outcome, "needed_kv_gib")
    available = printed_gib(case.outcome, "available_kv_gib")
    if needed is not None and available is not None and abs(needed - available) < COIN_FLIP:
        return "coin flip: the printed need and memory are less than 0.1 GiB apart"
    return ""


def _judge_shape(case: Case, answer: Fit, klass: str) -> tuple[Verdict, str]:
    if {verdict.rule for verdict in answer.certainties} & RULES_OF_CLASS[klass]:
        return "right", ""
    if isinstance(case.architecture.name, Unknown):
        return "not scored", "insufficient inputs: the model's shape"
    return "wrong", "the shape rule did not fire"


def _why(answer: Fit) -> str:
    if answer.failure is not None:
        return answer.failure.found
    if isinstance(answer.memory, Unknown):
        return answer.memory.unknown
    nearest = min(answer.memory.margins, key=lambda margin: margin.left.likely)
    return f"nearest: {nearest.mode}, {nearest.left.shown()} left"


def missing_inputs(case: Case, answer: Fit, *, sure: bool) -> list[str]:
    """What the arithmetic needs and the case does not give."""
    raw, a = case.raw, case.architecture
    gaps: list[str] = []
    if isinstance(release(case.settings.engine), Unknown):
        gaps.append("version")
    if not case.cards:
        gaps.append("card")
    if raw.get("gpu_memory_utilization") is None and case.settings.kv_cache_memory is None:
        gaps.append("utilisation")
    if case.settings.max_num_seqs is None:
        gaps.append("sequences")
    if isinstance(answer.resolved.max_model_len, Unknown):
        gaps.append("length")
    if isinstance(a.layers, Unknown) or (isinstance(a.kv_heads, Unknown) and a.mla is None):
        gaps.append("the model's layers")
    if not sure and printed_gib(case.outcome, "model_loading_gib") is None:
        gaps.append("weights")
    return gaps
