"""One rung of the ladder: so many streams at a time, and what they got. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

HIGHEST = 1e12
"""No measure of a service comes near; NaN and infinity are not below it."""


@dataclass(frozen=True)
class Rung:
    """What one load gave. Times in milliseconds.

    + concurrency: streams at a time
    + requests: that were answered
    + output_tokens_per_second: of all streams together
    + ttft_ms_median, ttft_ms_p99: time to the first token
    + tpot_ms_median, tpot_ms_p99: time for each token after it
    """

    concurrency: int
    requests: int
    output_tokens_per_second: float
    ttft_ms_median: float
    ttft_ms_p99: float
    tpot_ms_median: float
    tpot_ms_p99: float

    def to_json(self) -> dict[str, float]:
        """As the record keeps it."""
        return {
            key: round(value, 3) if isinstance(value, float) else value
            for key, value in asdict(self).items()
        }

    @property
    def line(self) -> str:
        """For a person.

        >>> Rung(8, 32, 312.44, 120.2, 340.0, 18.12, 22.0).line
        '8 streams: 312.4 tok/s, TTFT 120 ms (p99 340), TPOT 18.1 ms (p99 22.0)'
        """
        return (
            f"{streams(self.concurrency)}: {self.output_tokens_per_second:.1f} tok/s, "
            f"TTFT {self.ttft_ms_median:.0f} ms (p99 {self.ttft_ms_p99:.0f}), "
            f"TPOT {self.tpot_ms_median:.1f} ms (p99 {self.tpot_ms_p99:.1f})"
        )


def streams(count: int) -> str:
    """The load in words.

    >>> streams(1), streams(8)
    ('1 stream', '8 streams')
    """
    return f"{count} stream{'' if count == 1 else 's'}"


def read_rung(result: Any, concurrency: int) -> Rung:
    """A rung from the JSON that ``vllm bench serve --save-result`` writes.

    Names of its fields: vLLM 0.32.0 benchmarks/serve.py.

    + concurrency: streams that were asked for
    + raises: ValueError where requests failed, or where it is no such result
    """
    if not isinstance(result, Mapping):
        raise ValueError("the benchmark's result is no JSON object")  # noqa: TRY004
    # A result without the field is judged by what was completed.
    failed = result.get("failed", 0)
    completed = _number(result, "completed")
    if failed or completed < 1:
        raise ValueError(f"{failed or 'all'} requests of {streams(concurrency)} were not answered")
    return Rung(
        concurrency=concurrency,
        requests=int(completed),
        output_tokens_per_second=_number(result, "output_throughput"),
        ttft_ms_median=_number(result, "median_ttft_ms"),
        ttft_ms_p99=_number(result, "p99_ttft_ms"),
        tpot_ms_median=_number(result, "median_tpot_ms"),
        tpot_ms_p99=_number(result, "p99_tpot_ms"),
    )


def _number(result: Mapping[str, Any], name: str) -> float:
    value = result.get(name)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < HIGHEST:
        return float(value)
    raise ValueError(f"the benchmark's result has {name} {value!r:.40}")
