"""Arithmetic on out-of-memory messages: what was asked for, what was left, what would fit.

All results are for remedies: on the safe side, and with the numbers of this very start.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from facts.diagnosis.rule import Evidence, Numbers, Scene
from facts.journal.lines import Line
from inventory.common.units import GIB, MIB
from inventory.fit.memory.constants import SAMPLERS, VOCABULARIES, WARMUP_V2
from inventory.fit.settings.resolve import default_max_num_seqs, most_utilisation
from inventory.fit.settings.settings import NEWEST_READ, Runner

SAFE_UTILISATION = 0.95
"""The most that is proposed for a GPU that ran out of memory."""
MOST_OF_AN_A100 = 80 * GIB
SMALLER_DEFAULT = default_max_num_seqs(0, "")
"""Of max_num_seqs, on the cards that have the fewest."""
RESERVE = GIB // 2
"""Left free besides what is asked for: starts on cards of 44 GiB and more worked with 0.50 to
0.87 GiB left and failed with 0.40 (tests/fixtures/fit/NOTES.md section 4, rule 5)."""

_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": GIB}
_AMOUNT = r"([0-9]{1,12}(?:\.[0-9]{1,6})?) (bytes|KiB|MiB|GiB)"
_TRIED = re.compile(rf"Tried to allocate {_AMOUNT}")
_GPU = re.compile(
    rf"GPU (?P<gpu>\d{{1,4}}) has a total capacity of {_AMOUNT} of which {_AMOUNT} is free"
)
_UNUSED = re.compile(rf"{_AMOUNT} is reserved by PyTorch but unallocated")
_PER_LOGIT = (4, 8, 12)
"""Bytes for each logit that one failing allocation of the sampler asks for: a float copy, the
sort's indices, both (tests/fixtures/fit/NOTES.md section 5)."""


class OutOfMemory(NamedTuple):
    """One ``CUDA out of memory`` message, in bytes."""

    tried: int
    tried_unit: str
    gpu: int | None
    total: int | None
    free: int | None
    unused: int
    """Reserved by PyTorch and not in use."""

    @property
    def available(self) -> int:
        """What a smaller request could have used."""
        return (self.free or 0) + self.unused


def out_of_memory(text: str) -> OutOfMemory | None:
    """Read a message; None for any other text.

    >>> read = out_of_memory("CUDA out of memory. Tried to allocate 594.00 MiB. GPU 2 has a total "
    ...     "capacity of 94.97 GiB of which 477.44 MiB is free. Including non-PyTorch memory …")
    >>> read.gpu, read.tried // MIB
    (2, 594)
    """
    tried = _TRIED.search(text)
    if tried is None:
        return None
    gpu, unused = _GPU.search(text), _UNUSED.search(text)
    return OutOfMemory(
        tried=_bytes(tried[1], tried[2]),
        tried_unit=tried[2],
        gpu=int(gpu["gpu"]) if gpu else None,
        total=_bytes(gpu[2], gpu[3]) if gpu else None,
        free=_bytes(gpu[4], gpu[5]) if gpu else None,
        unused=_bytes(unused[1], unused[2]) if unused else 0,
    )


def all_out_of_memory(lines: Iterable[Line]) -> list[OutOfMemory]:
    """The messages of all ranks, each rank's once."""
    found: dict[int | None, OutOfMemory] = {}
    for line in lines:
        if line.role in {"Worker", "EngineCore"} and (read := out_of_memory(line.text)):
            found.setdefault(read.gpu, read)
    return list(found.values())


def memory_numbers(evidence: Evidence) -> dict[str, float | int | str | None]:
    """What a diagnosis of missing GPU memory echoes, in the units in which it was printed."""
    scene = evidence.scene
    messages = all_out_of_memory(scene.window)
    numbers: dict[str, float | int | str | None] = {
        "gpu_memory_utilization": scene.settings.gpu_memory_utilization,
        "kv_cache_gib": scene.engine.kv_cache_gib,
        "weights_gib_per_rank": scene.engine.model_gib_per_rank,
    }
    own = out_of_memory(evidence.line.text) or (messages[0] if messages else None)
    if own is None:
        return numbers
    unit = own.tried_unit.lower()
    numbers[f"tried_{unit}"] = _round(own.tried / _UNITS[own.tried_unit])
    if own.total is not None:
        numbers["gpu_total_gib"] = _round(own.total / GIB)
    for message in messages:
        if message.gpu is not None and message.free is not None:
            numbers[f"free_mib_gpu{message.gpu}"] = _round(message.free / MIB)
    return numbers


def sequences(scene: Scene) -> int | None:
    """``max_num_seqs`` of the start: as given, or the server's default for such a card; None where
    neither is known."""
    if scene.settings.max_num_seqs is not None:
        return scene.settings.max_num_seqs
    total = _total(scene)
    if total is None:
        return None
    card, version = scene.settings.card, scene.settings.release or NEWEST_READ
    runner: Runner = "V2" if scene.settings.runner == "V2" else "V1"
    default = default_max_num_seqs(total, card, runner, version)
    # Where nothing names the card, one of this size may be an A100, which has the smaller default.
    of_a100 = default_max_num_seqs(total, card or "A100", runner, version)
    return default if default == of_a100 or total > MOST_OF_AN_A100 else None


def sequences_that_fit(scene: Scene, seqs: int | None) -> int:
    """The ``--max-num-seqs`` to propose after the sampler ran out of memory.

    + seqs: as the start had it; None where that is not known
    + returns: a power of two below ``seqs``. What inventory.fit computed is taken first; then
      what the messages left room for, at the engine's bytes for each logit; else a quarter
    """
    # A start of unknown settings has no fewer sequences than the smaller default.
    most = max(1, (seqs or SMALLER_DEFAULT) - 1)
    fits = scene.hints.fits_max_num_seqs
    if fits is not None and fits <= most:
        return fits
    messages = all_out_of_memory(scene.window)
    vocabulary = _vocabulary(messages, seqs)
    if not messages or vocabulary is None:
        return _power_below(max(1, most // 4 + 1))
    room = min(message.available for message in messages) - RESERVE
    fitting = int(room / (_per_logit(scene) * vocabulary))
    return _power_below(min(most, max(1, fitting)))


def utilisation_that_fits(scene: Scene, needed: float) -> float | None:
    """The ``--gpu-memory-utilization`` that leaves so many bytes more free, in hundredths."""
    total, had = _total(scene), scene.settings.gpu_memory_utilization
    if total is None or had is None:
        return None
    lower = int((had - needed / total) * 100) / 100
    fits = min(SAFE_UTILISATION, most_utilisation(scene.settings.world), max(0.1, lower))
    return fits if fits < had else None


def missing(scene: Scene) -> int:
    """Bytes that the fullest rank lacked, with the reserve."""
    messages = all_out_of_memory(scene.window)
    return max((one.tried - (one.free or 0) for one in messages), default=0) + RESERVE


def sampler_remedy(evidence: Evidence, numbers: Numbers) -> str:
    """The flag that cures a sampler that ran out of memory, with its number."""
    scene = evidence.scene
    given = numbers.get("max_num_seqs")
    seqs = given if isinstance(given, int) else sequences(scene)
    fitting = sequences_that_fit(scene, seqs)
    numbers["fits_max_num_seqs"] = fitting
    had = f"; it was {seqs}{'' if scene.settings.max_num_seqs else ', the default'}" if seqs else ""
    lower = utilisation_that_fits(scene, missing(scene))
    util = scene.settings.gpu_memory_utilization
    lowered = "a lower --gpu-memory-utilization"
    if lower is not None:
        lowered = f"--gpu-memory-utilization {lower:g}"
        numbers["fits_gpu_memory_utilization"] = lower
    was = f" (it was {util:g})" if util is not None else ""
    return (
        f"set max_num_seqs={fitting} in engine=Vllm(...) (--max-num-seqs {fitting}{had}); or, at "
        f"the price of KV cache, {lowered}{was}"
    )


def more_ranks(scene: Scene, gib_per_rank: float) -> int:
    """The next tensor parallel size at which weights leave a quarter of the GPU for the rest."""
    total = (_total(scene) or 0) / GIB
    tp = max(1, scene.settings.tp)
    size = tp * 2
    while total and gib_per_rank * tp / size > 0.75 * total and size < 16 * tp:
        size *= 2
    return size


def _total(scene: Scene) -> int | None:
    if scene.engine.total_gib is not None:
        return round(scene.engine.total_gib * GIB)
    totals = [message.total for message in all_out_of_memory(scene.window) if message.total]
    return min(totals, default=None)


def _per_logit(scene: Scene) -> float:
    """Bytes for each sequence and vocabulary entry that the sampler's warm-up takes."""
    if scene.settings.runner == "V2":
        return WARMUP_V2.likely
    version = scene.settings.release
    for regime in SAMPLERS:
        native = regime.runner == "V1" and regime.sampler != "flashinfer"
        if native and (version is None or regime.since <= version):
            return regime.per_logit.high
    return WARMUP_V2.high


def _vocabulary(messages: list[OutOfMemory], seqs: int | None) -> int | None:
    """The vocabulary that the failing allocation stands for: the largest that is plausible.

    A larger one makes the proposal smaller, so it errs on the side that starts.
    """
    largest = max((message.tried for message in messages), default=0)
    if not seqs or not largest:
        return None
    least, _, most = VOCABULARIES
    plausible = [largest // (seqs * size) for size in _PER_LOGIT]
    return max((size for size in plausible if least <= size <= most * 1.02), default=None)


def _power_below(most: int) -> int:
    return 1 << (most.bit_length() - 1)


def _bytes(amount: str, unit: str) -> int:
    return round(float(amount) * _UNITS[unit])


def _round(value: float) -> float:
    return round(value, 2)
