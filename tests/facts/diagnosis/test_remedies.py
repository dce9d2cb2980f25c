"""What a remedy proposes, the fit accepts."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from facts.diagnosis import Hints, from_text
from facts.diagnosis.result import Diagnosis
from inventory.base import Unknown
from inventory.fit.model.architecture import Architecture
from inventory.fit.model.config import read_architecture
from tests.facts.diagnosis.examples.scenes import oom, sampler_v2
from tests.facts.diagnosis.journals import Made, echoes, worker, worker_fails
from tests.inventory.fit.data import GPT_OSS_20B, LLAMA_8B, MINIMAX, QWEN35_MOE, asked

ARCHITECTURES = st.sampled_from(
    [MINIMAX, *(read_architecture(one) for one in (LLAMA_8B, GPT_OSS_20B, QWEN35_MOE))]
)
CARDS = st.tuples(
    st.sampled_from(["RTX PRO 6000", "H100", "A100", "H200", "L40S"]), st.sampled_from([1, 2, 4])
).map(lambda card: f'{card[1]}x"{card[0]}"')
SEQUENCES = st.one_of(st.none(), st.sampled_from([16, 96, 256, 512, 1024, 3000]))
UTILISATIONS = st.sampled_from([0.85, 0.9, 0.93, 0.95, 0.97, 0.985])


def sampler_fails(had: int, **arguments: Any) -> Diagnosis:
    """The diagnosis of a start whose sampler ran out of memory."""
    hints = Hints(fits_max_num_seqs=arguments.pop("fits"))
    text = worker_fails(
        f"RuntimeError: CUDA out of memory occurred when warming up sampler with {had} dummy "
        "requests. Please try lowering `max_num_seqs`",
        **{name: value for name, value in arguments.items() if value is not None},
    )
    found = from_text(text, hints=hints)
    assert found is not None
    assert found.cause == "M4"
    return found


@settings(deadline=None)
@given(ARCHITECTURES, CARDS, SEQUENCES, UTILISATIONS, st.sampled_from([None, 4096, 32768]))
def test_the_fit_accepts_the_sequences_that_a_remedy_proposes(
    architecture: Architecture,
    cards: str,
    given_seqs: int | None,
    utilisation: float,
    length: int | None,
) -> None:
    choices = {"gpu_memory_utilization": utilisation, "max_model_len": length}
    before = asked(architecture, cards, max_num_seqs=given_seqs, **choices)
    fits = before.derived.max_num_seqs
    if isinstance(fits, Unknown) or fits == 0:
        return
    had = before.resolved.max_num_seqs
    count = len(before.cards)
    remedy = sampler_fails(had, max_num_seqs=given_seqs, count=count, fits=fits, **choices)
    proposed = remedy.numbers["fits_max_num_seqs"]
    assert isinstance(proposed, int)
    assert proposed <= min(had, fits)
    assert f"max_num_seqs={proposed} in engine=Vllm(...)" in remedy.next_step
    after = asked(architecture, cards, max_num_seqs=proposed, **choices)
    sampler = [verdict for verdict in after.verdicts if verdict.rule == "sampler"]
    assert not [verdict for verdict in sampler if verdict.certain or verdict.fails]
    assert {one.rule for one in after.certainties} <= {one.rule for one in before.certainties}
    lower = remedy.numbers.get("fits_gpu_memory_utilization")
    if isinstance(lower, float):
        assert "nccl-room" not in {
            one.rule for one in asked(architecture, cards, gpu_memory_utilization=lower).verdicts
        }


def capacity(journal: str, gib: float, card: str) -> str:
    """The journal of a start on another card, which a kernel's configuration names."""
    made = Made().banner(tensor_parallel_size=4).workers(4)
    named = f"Using configuration from E=8,N=1,device_name={card}.json for MoE layer."
    line = made.info(worker(0), named).lines[-1]
    first, rest = journal.split("\n", 1)
    return "\n".join([first, *([line] if card else []), rest]).replace("94.97 GiB", f"{gib} GiB")


@pytest.mark.parametrize(
    ("gib", "card", "had", "most"),
    [
        (79.25, "NVIDIA_A100-SXM4-80GB", "256, the default", 255),
        (79.19, "NVIDIA_H100_80GB_HBM3", "1024, the default", 1023),
        (79.25, "", "", 255),
        (94.97, "", "1024, the default", 1023),
        (44.4, "", "256, the default", 255),
    ],
)
def test_the_default_of_a_card_is_the_fits(gib: float, card: str, had: str, most: int) -> None:
    found = from_text(capacity(sampler_v2(), gib, card))
    assert found is not None
    assert found.cause == "M4b"
    proposed = found.numbers["fits_max_num_seqs"]
    assert isinstance(proposed, int)
    assert proposed <= most
    assert (
        (f"it was {had}" in found.next_step)
        if had
        else ("it was" not in found.next_step.split("or,")[0])
    )


@given(st.floats(0.3, 0.99).map(lambda part: round(part, 3)), st.sampled_from([1, 4]))
def test_a_lower_utilisation_is_lower_and_leaves_room_for_nccl(had: float, count: int) -> None:
    made = Made().banner(tensor_parallel_size=count, gpu_memory_utilization=had).workers(count)
    made.fails(worker(0), "worker", oom(gpu=0), (("x.py", "self.capture_model()"),))
    found = from_text(echoes(made).text)
    assert found is not None
    proposed = re.match(r"--gpu-memory-utilization (0\.\d+) ", found.next_step)
    if proposed:
        assert float(proposed[1]) < had
        assert float(proposed[1]) <= (0.93 if count > 1 else 0.95)
