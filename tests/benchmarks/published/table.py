"""The table of docs/fit.md: every published start, what the fit says of it, and every miss.

``python -m tests.benchmarks.published.table > docs/fit.md`` in the checkout writes it anew;
``--cases``, ``--models`` and ``--set-aside`` score other starts of the same form.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from inventory.fit.memory import constants as c
from tests.benchmarks.published.score import Row, Totals, score, token_error, totals

FIXTURES = Path("tests/fixtures/fit")
TOKEN_MISS = 0.005
MEMORY_MISS = 1.0
CONCURRENCY_MISS = 0.01


def table(rows: Sequence[Row], remarks: Mapping[str, str]) -> str:
    """The page.

    + rows: from :func:`tests.benchmarks.published.score.score`
    + remarks: case -> why it missed, in words
    """
    found = totals(rows)
    parts = [
        "# Does it fit: predictions against published starts",
        "",
        "Made by `python -m tests.benchmarks.published.table > docs/fit.md`; a test compares it "
        "with what the code says now. The cases are `tests/fixtures/fit/cases.json`, with the "
        "address of each report; `NOTES.md` beside it tells how they were collected. GiB are per "
        "rank.",
        "",
        "## Shares",
        "",
        *_shares(found, rows),
        "",
        "## How it is scored",
        "",
        *_method(),
        "",
        "## Misses, and why",
        "",
        *_misses(rows, remarks),
        "",
        "## Not scored",
        "",
        *_aside(rows),
        "",
        "## Constants",
        "",
        *_constants(),
        "",
        "## Every case",
        "",
        *_cases(rows),
    ]
    return "\n".join(parts) + "\n"


def _shares(found: Totals, rows: Sequence[Row]) -> list[str]:
    pools = [row for row in rows if row.hybrid and row.concurrency]
    near = sum(_ratio(row.concurrency) <= CONCURRENCY_MISS for row in pools)
    refused = [row for row in rows if row.published == "success" and "refused" in row.predicted]
    return [
        "| what | cases | share |",
        "|---|---|---|",
        f"| success or failure right | {found.right} of {found.scored} | "
        f"{found.right / max(1, found.scored):.1%} |",
        f"| KV tokens within 0.5 %, from the printed memory | {found.tokens_near} of "
        f"{found.tokens} | {found.tokens_near / max(1, found.tokens):.1%} |",
        f"| concurrency of hybrid pools within 1 %, from the printed memory | {near} of "
        f"{len(pools)} | {near / max(1, len(pools)):.1%} |",
        f"| KV memory predicted: median error | {found.memory} | {found.memory_median:.2f} GiB |",
        f"| KV memory predicted: within 1 GiB | {found.memory_within_1} of {found.memory} | "
        f"{found.memory_within_1 / max(1, found.memory):.1%} |",
        f"| KV memory: published figure inside the predicted range | {found.in_range} of "
        f"{found.memory} | {found.in_range / max(1, found.memory):.1%} |",
        f"| refused for certain, yet it started | {len(refused)} | see below |",
    ]


def _method() -> list[str]:
    return [
        "- Nothing that the start printed goes in. One exception: where the model's entry does "
        "not tell its weights (numbers missing, or no word on which modules are quantised), the "
        "printed weights stand for the safetensors headers that a real checkpoint has.",
        "- An outcome counts where the case gives version, card, utilisation, length, sequences "
        "and the model's layers. Shape failures need only the shape. Shared GPUs count for the "
        "step that compares free with wanted memory.",
        "- Set aside are coin flips (a printed margin below 0.1 GiB, or the same flags with both "
        "outcomes), version faults and shared GPUs, as NOTES.md names them.",
        "- Tokens count for pools of one kind of layer whose lines come from one rank; hybrid "
        "pools are compared by concurrency, because their printed tokens changed meaning.",
        "- The constants were fitted to a part of these cases: this says that the rules are "
        "consistent, not how they do on starts of other kinds. There the range widens.",
    ]


def _misses(rows: Sequence[Row], remarks: Mapping[str, str]) -> list[str]:
    lines = ["| case | what | published | predicted | why |", "|---|---|---|---|---|"]
    for row in rows:
        said = remarks.get(row.id, "")
        found: list[tuple[str, str, str, str]] = []
        if row.outcome == "wrong":
            found.append(("outcome", row.published, row.predicted, said or row.reason))
        elif row.outcome == "right" and row.reason:
            found.append(("reason", row.published, row.predicted, row.reason))
        if row.tokens and not row.hybrid and token_error(row) > TOKEN_MISS:
            stages = "memory and tokens are printed by different pipeline stages"
            why = stages if row.several else said or "the printed memory is another rank's"
            found.append(("tokens", f"{row.tokens[0]:,}", f"{row.tokens[1]:,}", why))
        if row.memory and row.memory_counts and _off(row) > MEMORY_MISS:
            inside = "inside the range" if row.within_range else "outside the range"
            why = f"{said or 'no cause found'} ({inside})"
            found.append(("memory", f"{row.memory[0]:.2f}", f"{row.memory[1]:.2f}", why))
        lines += [f"| {row.id} | {' | '.join(cells)} |" for cells in found]
    return lines


def _aside(rows: Sequence[Row]) -> list[str]:
    groups: dict[str, list[str]] = {}
    for row in rows:
        if row.outcome == "not scored":
            groups.setdefault(row.reason, []).append(row.id)
    return [f"- {reason}: {', '.join(ids)}" for reason, ids in sorted(groups.items())]


def _constants() -> list[str]:
    lines = [
        "Of `inventory/fit/memory/constants.py`, where each has its source beside it.",
        "",
        "| sampler regime | since | bytes for each of sequences x vocabulary | measured on |",
        "|---|---|---|---|",
    ]
    for one in c.SAMPLERS:
        since = ".".join(str(part) for part in one.since)
        bytes_ = f"{one.per_logit.likely:g} ({one.per_logit.low:g} to {one.per_logit.high:g})"
        lines.append(f"| {one.name} | {since} | {bytes_} | {one.measured_on} |")
    return lines


def _cases(rows: Sequence[Row]) -> list[str]:
    lines = [
        "| case | model | card | vLLM | published | predicted | outcome | weights | KV memory "
        "| KV tokens | concurrency |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = (
            row.id,
            row.model,
            row.card,
            row.version,
            row.published,
            row.predicted,
            row.outcome,
            _pair(row.weights, "{:.2f}"),
            _pair(row.memory, "{:.2f}") + ("" if row.memory_counts or not row.memory else " *"),
            _pair(row.tokens, "{:,}"),
            _pair(row.concurrency, "{:.2f}"),
        )
        lines.append("| " + " | ".join(cells) + " |")
    lines += [
        "",
        "Pairs are published / predicted. Weights are computed from the architecture; tokens and "
        "concurrency from the printed memory. `*`: not counted, because the inputs do not "
        "suffice.",
    ]
    return lines


def _pair(pair: tuple[float, float] | tuple[int, int] | None, form: str) -> str:
    return " / ".join(form.format(value) for value in pair) if pair else ""


def _off(row: Row) -> float:
    return abs(row.memory[1] - row.memory[0]) if row.memory else 0.0


def _ratio(pair: tuple[float, float] | None) -> float:
    return abs(pair[1] / pair[0] - 1) if pair else 0.0


def read(path: Path) -> Any:
    """A JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def rows_of(cases: Path, models: Path, set_aside: Path) -> tuple[Row, ...]:
    """Rows of the cases in a file.

    + cases, models, set_aside: files of the form that NOTES.md describes
    """
    raw: Iterable[Mapping[str, Any]] = read(cases)
    return score(raw, read(models), read(set_aside))


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, default=FIXTURES / "cases.json")
    parser.add_argument("--models", type=Path, default=FIXTURES / "models.json")
    parser.add_argument("--set-aside", type=Path, default=FIXTURES / "set_aside.json")
    parser.add_argument("--remarks", type=Path, default=FIXTURES / "remarks.json")
    asked = parser.parse_args(arguments)
    rows = rows_of(asked.cases, asked.models, asked.set_aside)
    sys.stdout.write(table(rows, read(asked.remarks)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
