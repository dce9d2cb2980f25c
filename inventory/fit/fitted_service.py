"""A service as it will start on a box: what it left open filled in from the fit.

What is certain stops the run, what is predicted warns. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inventory.base import NOT_ASKED, Unknown
from inventory.errors import BoxwrightError, FitError
from inventory.fit.answer.derive import parallel_sizes
from inventory.fit.answer.verdict import Verdict
from inventory.fit.fit import Fit, fit
from inventory.fit.model.architecture import Architecture
from inventory.fit.model.config import read_architecture
from inventory.fit.settings.card import Card
from inventory.fit.settings.settings import release
from inventory.fit.settings.settings_of import cards_for, settings_of
from inventory.hardware import Hardware
from inventory.service import Service
from inventory.snapshot import Snapshot


@dataclass(frozen=True)
class FittedService:
    """A service that may start: nothing certain speaks against it, or the operator accepts it.

    + service: with what it left open filled in
    + answer: the whole fit; None if it could not be computed
    + notes: sentences for the operator: what was derived, and why
    + warnings: predictions, and certainties that the operator accepts
    + accepted: their rules
    """

    service: Service
    answer: Fit | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()

    @property
    def fits_max_num_seqs(self) -> int | None:
        """The largest max_num_seqs that fits even at the worst end, where it is known."""
        if self.answer is None or isinstance(self.answer.derived.max_num_seqs, Unknown):
            return None
        return self.answer.derived.max_num_seqs or None


def fitted_service(
    service: Service,
    snapshot: Snapshot,
    config: Mapping[str, Any] | Unknown | None,
    quantisation: Mapping[str, Any] | None,
    hardware: Hardware,
    uuids: tuple[str, ...],
    *,
    own_units: frozenset[str] = frozenset(),
    accept: frozenset[str] = frozenset(),
) -> FittedService:
    """The service as it will start on these GPUs, or the first certain reason why it cannot.

    + snapshot: its model's files, for their sizes
    + quantisation: hf_quant_config.json of the model
    + uuids: the chosen GPUs; empty for a service on the CPU, which has no prediction
    + own_units: full names of units that stop before the start: what they hold counts as free
    + accept: rules that the operator overrides
    """
    if not uuids:
        return FittedService(service)
    if not isinstance(config, Mapping):
        reason = config.unknown if isinstance(config, Unknown) else "there is no config.json"
        return FittedService(service, warnings=(f"the fit was not computed: {reason}",))
    sizes = {file.path: file.size for file in snapshot.files}
    architecture = read_architecture(config, files=sizes, hf_quant_config=quantisation)
    gpus = tuple(gpu for gpu in hardware.gpus if gpu.uuid in uuids)
    try:
        cards: tuple[Card, ...] = cards_for(gpus, hardware, own_units)
    except BoxwrightError as error:
        return FittedService(service, warnings=(f"the fit was not computed: {error.found}",))
    whole, notes = completed(service, architecture, cards)
    answer = fit(architecture, settings_of(whole), cards)
    standing = [verdict for verdict in answer.certainties if verdict.rule not in accept]
    if standing:
        raise _refusal(standing)
    overruled = [verdict for verdict in answer.certainties if verdict.rule in accept]
    return FittedService(
        whole,
        answer,
        notes,
        warnings=(
            *(f"accepted by the operator: {verdict.text}" for verdict in overruled),
            *(verdict.text for verdict in answer.predictions),
        ),
        accepted=tuple(sorted({verdict.rule for verdict in overruled})),
    )


def completed(
    service: Service, architecture: Architecture, cards: tuple[Card, ...]
) -> tuple[Service, tuple[str, ...]]:
    """The service with every setting that it left open, and a sentence for each.

    Derived from the cards as they are when nobody uses them, so that the answer is the same on
    every run: parallel sizes, ``max_num_seqs``, and the time that a load is given.
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
    idle = tuple(card.model_copy(update={"free": NOT_ASKED, "holders": ()}) for card in cards)
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


def _refusal(certain: list[Verdict]) -> FitError:
    first, *more = certain
    found = "; ".join([first.found, *(f"and [{one.rule}] {one.found}" for one in more)])
    rules = ",".join(dict.fromkeys(verdict.rule for verdict in certain))
    return FitError(
        wanted=first.wanted,
        found=found,
        why=f"{first.why}; nothing was touched",
        next_step=f"{first.next_step} (--data accept={rules} starts it all the same)",
    )
