"""A service with what it left open filled in from the fit, and the reasons."""

from __future__ import annotations

from typing import Any

from inventory.base import Unknown
from inventory.fit.answer.derive import parallel_sizes
from inventory.fit.fit import fit
from inventory.fit.model.architecture import Architecture
from inventory.fit.settings.card import Card
from inventory.fit.settings.settings_of import settings_of
from inventory.fit.settings.version import release
from inventory.service import Service

IDLE = Unknown(unknown="not asked")


def completed(
    service: Service, architecture: Architecture, cards: tuple[Card, ...]
) -> tuple[Service, tuple[str, ...]]:
    """The service with every setting that it left open, and a sentence for each.

    Derived from the cards as they are when nobody uses them, so that the answer is the same on
    every run: parallel sizes, ``max_num_seqs``, and the time that a load is given.

    + service: overrides applied
    + architecture: of its model
    + cards: of its placement
    """
    said: list[str] = []
    engine = service.engine
    sizes_open = (
        engine.tensor_parallel_size is None
        and engine.pipeline_parallel_size == engine.data_parallel_size == 1
        and not engine.enable_expert_parallel
    )
    if sizes_open:
        sizes = parallel_sizes(
            architecture, settings_of(service), release(engine.version), service.placement.gpus
        )
        if not isinstance(sizes, Unknown):
            service = _with_engine(
                service,
                tensor_parallel_size=sizes.tp,
                pipeline_parallel_size=sizes.pp,
                enable_expert_parallel=sizes.ep,
            )
            said.append(f"tensor parallel size {sizes.tp}: {sizes.reason}")
    idle = tuple(card.model_copy(update={"free": IDLE, "holders": ()}) for card in cards)
    derived = fit(architecture, settings_of(service), idle).derived
    sequences = derived.max_num_seqs
    if engine.max_num_seqs is None and not isinstance(sequences, Unknown) and sequences > 0:
        service = _with_engine(service, max_num_seqs=sequences)
        said.append(f"max_num_seqs {sequences}: the largest that fits even at the worst end")
    if service.load_seconds is None and not isinstance(derived.load, Unknown):
        service = service.model_copy(update={"load_seconds": derived.load.given})
        said.append(
            f"load time {derived.load.likely} s, given {derived.load.given} s: from the bytes of "
            "the weights"
        )
    return service, tuple(said)


def _with_engine(service: Service, **settings: Any) -> Service:
    engine = service.engine.model_copy(update=settings)
    return service.model_copy(update={"engine": engine})
