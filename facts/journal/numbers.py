"""The engine's own numbers: what it printed about weights, KV cache, graphs and time."""

from collections.abc import Iterable

from facts.journal.lines import Line
from inventory.base import Frozen
from inventory.common.engine_log import FIGURES, HEARTBEAT, NCCL_LINE


class EngineNumbers(Frozen):
    """Figures of one start, ``None`` where it did not get that far. GiB and seconds.

    Where every rank prints its own, the one that decides is kept: the slowest, the fullest, and
    for KV memory the smallest, which sets the number of blocks for all.
    """

    checkpoint_gib: float | None = None
    """Weights on disk, all ranks together."""
    ram_gib: float | None = None
    """Memory of the host that was available then."""
    weights_s: float | None = None
    """Reading the weights."""
    model_gib_per_rank: float | None = None
    model_load_s: float | None = None
    compile_s: float | None = None
    kv_cache_gib: float | None = None
    kv_cache_tokens: int | None = None
    max_concurrency: float | None = None
    """Requests of full length that fit at once."""
    jit_warmup_s: float | None = None
    capture_s: float | None = None
    cudagraph_gib: float | None = None
    init_engine_s: float | None = None
    free_gib: float | None = None
    """Free on the GPU before anything was loaded."""
    total_gib: float | None = None
    util: float | None = None
    consumed_gib: float | None = None
    """Weights and what is not torch's."""
    peak_activation_gib: float | None = None
    refined_block: int | None = None
    """FP8 block size after it was cut down to fit the tensor parallel size."""
    nccl: str | None = None
    shm_broadcast_messages: int = 0
    """Minutes in which a worker did not answer: hanging, or compiling."""


_WHOLE = frozenset({"kv_cache_tokens", "refined_block"})


def engine_numbers(lines: Iterable[Line]) -> EngineNumbers:
    """Read the engine's figures from a start's lines.

    >>> from facts.journal.lines import read_journal
    >>> read = read_journal("INFO 01-01 00:00:00 [a.py:1] GPU KV cache size: 399,424 tokens")
    >>> engine_numbers(read.lines).kv_cache_tokens
    399424
    """
    found: dict[str, float] = {}
    nccl: str | None = None
    waits = 0
    for line in lines:
        if line.level != "INFO":
            continue
        if line.text.startswith(HEARTBEAT):
            waits += 1
        if match := NCCL_LINE.match(line.text):
            nccl = match[1]
        for figures in FIGURES:
            match = figures.pattern.search(line.text)
            if match is None:
                continue
            for name, text in zip(figures.names, match.groups(), strict=True):
                if name and text is not None:
                    value = float(text.replace(",", ""))
                    found[name] = figures.choose(found[name], value) if name in found else value
    whole = {name: int(value) for name, value in found.items() if name in _WHOLE}
    return EngineNumbers.model_validate(
        {**found, **whole, "nccl": nccl, "shm_broadcast_messages": waits}
    )
