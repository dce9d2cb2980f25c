"""How fast a service is: what is asked of the box, and what it measured."""

from dataclasses import dataclass
from typing import Annotated

from inventory.common.wire import Amount, Bounds, Whole, Wire

SINGLE = 1
"""Streams of the rung that every ladder has: what one user gets."""


@dataclass(frozen=True)
class Load(Wire):
    """What each stream asks for. Only measurements under the same load are comparable.

    + input_tokens: of each prompt
    + output_tokens: of each answer
    + requests: of each stream, one after the other
    """

    tolerant = True
    input_tokens: int
    output_tokens: int
    requests: int


@dataclass(frozen=True)
class ThroughputRequest(Wire):
    """One measurement (operations/remote/throughput/measure.py).

    + unit, url, model: of the service; base URL as seen from the box, served name
    + python: of the engine's environment
    + version: of the engine
    + user: whom the benchmark runs as; None for the present one
    + tokenizer: folder of the snapshot, or what the engine was told instead
    + more: further arguments of the benchmark, such as --trust-remote-code
    + rungs: streams at a time, one after the other
    + digest: of the rungs and the load
    + regression: share of the earlier output tokens per second that a rung may lose
    + timeout: for all rungs, seconds
    + accept: whether slower figures are taken as they are
    """

    unit: str
    url: str
    model: str
    python: str
    version: str
    user: str | None
    tokenizer: str
    more: tuple[str, ...]
    rungs: tuple[int, ...]
    load: Load
    digest: str
    regression: float
    timeout: float
    accept: bool


@dataclass(frozen=True)
class Rung(Wire):
    """What so many streams at a time got. Times in milliseconds.

    + concurrency: streams at a time
    + requests: that were answered
    + output_tokens_per_second: of all streams together
    + ttft_ms_median, ttft_ms_p99: time to the first token
    + tpot_ms_median, tpot_ms_p99: time for each token after it
    """

    tolerant = True
    concurrency: Annotated[int, Bounds(1, 1e12)]
    requests: Whole
    output_tokens_per_second: Amount
    ttft_ms_median: Amount
    ttft_ms_p99: Amount
    tpot_ms_median: Amount
    tpot_ms_p99: Amount

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


@dataclass(frozen=True)
class Measurement(Wire):
    """What a start was measured to give, as its record keeps it.

    + measured: when, seconds since the epoch
    + tool: the benchmark and its version
    + others: requests of others that ran beside it
    + accepted: not slower than before, or taken as it is
    """

    tolerant = True
    measured: Whole
    load: Load
    rungs: tuple[Rung, ...]
    tool: str = ""
    others: int = 0
    accepted: bool = False

    @property
    def rates(self) -> dict[int, float]:
        """Streams at a time -> output tokens per second."""
        return {rung.concurrency: rung.output_tokens_per_second for rung in self.rungs}
