"""One reading of the GPUs: what is held by whom, and what is not known."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from operations.remote.switch.gpu_memory.holders import Holder, amount, identify, phrase
from operations.remote.switch.gpu_memory.smi import (
    GpuReading,
    ask,
    complaint,
    on_cards,
    parse_apps,
    parse_cards,
)


@dataclass(frozen=True)
class Sample:
    """One reading.

    + cards: by UUID, every one that was asked for
    + holders: processes that are, or may be, on them
    + blind: why the processes are not known; empty where they are
    + numbered: a process on whatever card was told by the number that it has here, so the driver
      tells those of this system as they are
    """

    cards: Mapping[str, GpuReading]
    holders: tuple[Holder, ...]
    blind: str = ""
    numbered: bool = False

    @property
    def free(self) -> bool:
        """Whether all that was asked for is known, and nothing is held."""
        idle = all(card.is_idle for card in self.cards.values())
        return idle and not self.holders and not self.blind

    @property
    def unknown(self) -> tuple[str, ...]:
        """What is not known, in words."""
        reasons = {card.why for card in self.cards.values() if card.used is None}
        words = []
        for why in sorted(reasons):
            labels = [card.label for card in self.cards.values() if card.why == why]
            words.append(f"{', '.join(sorted(labels))}: not known to be free ({why})")
        if self.blind and self.blind not in reasons:
            words.append(f"the processes on the GPUs are not known ({self.blind})")
        return tuple(words)

    @property
    def unowned(self) -> tuple[GpuReading, ...]:
        """Cards with memory in use and no process on them."""
        owned = {gpu for holder in self.holders for gpu, _ in holder.held}
        return tuple(
            card
            for uuid, card in self.cards.items()
            if card.used is not None and not card.is_idle and uuid not in owned
        )


def look(gpus: frozenset[str], limit: float) -> Sample:
    """Read the GPUs once.

    + limit: seconds
    """
    memory, apps = ask(limit)
    cards = parse_cards(memory, sorted(gpus))
    if apps.status != 0:
        return Sample(cards, (), complaint(apps))
    listed = parse_apps(apps.text)
    holders = identify(on_cards(listed, cards))
    return Sample(cards, holders, numbered=any(not one.is_hidden for one in identify(listed)))


def foreign(sample: Sample, ours: frozenset[str], running: bool) -> tuple[Holder, ...]:
    """The holders that do not belong to us.

    + running: one of our units runs

    In a container an older driver may tell the host's numbers of our own processes. So one that
    /proc does not have may be of a unit that runs, unless numbers are seen to be right.
    """
    perhaps = running and not sample.numbered
    return tuple(
        holder
        for holder in sample.holders
        if not (holder.is_hidden and perhaps) and (holder.unit is None or holder.unit not in ours)
    )


def reasons(sample: Sample) -> list[str]:
    """Why these GPUs are not free, one sentence each."""
    now = time.time()
    found = [*sample.unknown, *(phrase(holder, sample.cards, now) for holder in sample.holders)]
    if sample.unowned:
        found.append(unowned(sample))
    return found


def unowned(sample: Sample) -> str:
    """Memory that no process holds, in words."""
    held = ", ".join(f"{amount(card.used)} of {card.label}" for card in sample.unowned)
    return f"{held} in use, by no process that is shown"
