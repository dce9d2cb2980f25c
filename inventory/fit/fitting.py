"""Does it fit, on this box: what is certain stops the run, what is predicted warns. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inventory.base import Unknown
from inventory.errors import BoxwrightError, FitError
from inventory.fit.answer.completed import completed
from inventory.fit.answer.verdict import Verdict
from inventory.fit.fit import Fit, fit
from inventory.fit.model.config import read_architecture
from inventory.fit.settings.card import Card
from inventory.fit.settings.settings_of import cards_for, settings_of
from inventory.hardware import Hardware
from inventory.service import Service
from inventory.snapshot import Snapshot


@dataclass(frozen=True)
class Fitting:
    """A service that nothing certain speaks against.

    + service: with what it left open filled in
    + answer: the whole fit; None where it could not be computed
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
    def most_sequences(self) -> int | None:
        """The largest max_num_seqs that fits even at the worst end, where it is known."""
        if self.answer is None or isinstance(self.answer.derived.max_num_seqs, Unknown):
            return None
        return self.answer.derived.max_num_seqs or None


def fitted(
    service: Service,
    snapshot: Snapshot,
    config: Mapping[str, Any] | Unknown | None,
    quantisation: Mapping[str, Any] | None,
    hardware: Hardware,
    uuids: tuple[str, ...],
    *,
    leaving: frozenset[str] = frozenset(),
    accept: frozenset[str] = frozenset(),
) -> Fitting:
    """The service as it will start on these GPUs, or the first certain reason why it cannot.

    + service: overrides applied
    + snapshot: its model's files, for their sizes
    + config: config.json of the model
    + quantisation: hf_quant_config.json of the model
    + hardware: of the box
    + uuids: the chosen GPUs; none for a service on the CPU, where nothing is predicted
    + leaving: full names of units that stop before the start: what they hold counts as free
    + accept: rules that the operator overrides
    + raises: FitError
    """
    if not uuids:
        return Fitting(service)
    if not isinstance(config, Mapping):
        reason = config.unknown if isinstance(config, Unknown) else "there is no config.json"
        return Fitting(service, warnings=(f"the fit was not computed: {reason}",))
    sizes = {file.path: file.size for file in snapshot.files}
    architecture = read_architecture(config, files=sizes, hf_quant_config=quantisation)
    gpus = tuple(gpu for gpu in hardware.gpus if gpu.uuid in uuids)
    try:
        cards: tuple[Card, ...] = cards_for(gpus, hardware, leaving)
    except BoxwrightError as error:
        return Fitting(service, warnings=(f"the fit was not computed: {error.found}",))
    whole, notes = completed(service, architecture, cards)
    answer = fit(architecture, settings_of(whole), cards)
    standing = [verdict for verdict in answer.certainties if verdict.rule not in accept]
    if standing:
        raise _refusal(standing)
    overruled = [verdict for verdict in answer.certainties if verdict.rule in accept]
    return Fitting(
        whole,
        answer,
        notes,
        warnings=(
            *(f"accepted by the operator: {verdict.text}" for verdict in overruled),
            *(verdict.text for verdict in answer.predictions),
        ),
        accepted=tuple(sorted({verdict.rule for verdict in overruled})),
    )


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
