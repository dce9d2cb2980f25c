"""What CUDA, NCCL and the all-reduce hold: inside the budget, and before it is taken."""

from inventory.common.units import GIB
from inventory.fit.memory import constants as c
from inventory.fit.memory.span import Guess, Span
from inventory.fit.model.architecture import Architecture
from inventory.fit.settings.card import Card
from inventory.fit.settings.resolve import Resolved
from inventory.fit.settings.settings import Release

_CONTEXT_GREW: Release = (0, 18, 0)
_BLACKWELL_DESKTOP = 12.0
_GRAPHICS = (8.6, 8.9)


def not_torch(resolved: Resolved, cards: tuple[Card, ...], version: Release) -> Span:
    """What a rank holds outside torch's allocator, inside the budget."""
    if cards and cards[0].unified:
        return c.NOT_TORCH_UNIFIED.times(GIB)
    if resolved.settings.tp == 1:
        return _not_torch_single(resolved, cards, version).times(GIB)
    return _not_torch_several(resolved, cards, version).times(GIB)


def _not_torch_single(resolved: Resolved, cards: tuple[Card, ...], version: Release) -> Guess:
    if resolved.settings.pp > 1:
        return c.NOT_TORCH_STAGE
    if version < _CONTEXT_GREW and _compute(cards) in _GRAPHICS:
        return c.NOT_TORCH_SINGLE_GRAPHICS
    return _since(c.NOT_TORCH_SINGLE, version)


def _not_torch_several(resolved: Resolved, cards: tuple[Card, ...], version: Release) -> Guess:
    if resolved.link == "nvlink":
        return _since(c.NOT_TORCH_NVLINK, version)
    if resolved.link == "pcie" and version < c.LATER and _compute(cards) >= _BLACKWELL_DESKTOP:
        return c.NOT_TORCH_PCIE_BLACKWELL
    if resolved.link == "pcie":
        return _since(c.NOT_TORCH_PCIE, version)
    nvlink, pcie = _since(c.NOT_TORCH_NVLINK, version), _since(c.NOT_TORCH_PCIE, version)
    return Guess(
        min(nvlink.low, pcie.low),
        (nvlink.likely + pcie.likely) / 2,
        max(nvlink.high, pcie.high),
    )


def used_before(architecture: Architecture, resolved: Resolved, cards: tuple[Card, ...]) -> Span:
    """What is in use on a card before the budget is taken."""
    if cards and cards[0].unified:
        return c.USED_BEFORE_UNIFIED.times(GIB)
    if resolved.settings.tp * resolved.settings.pp == 1:
        return c.USED_BEFORE_SINGLE.times(GIB)
    if resolved.link == "pcie":
        return c.USED_BEFORE_PCIE.times(GIB)
    nvlink = c.USED_BEFORE_NVLINK_EXPERTS if architecture.experts else c.USED_BEFORE_NVLINK
    return nvlink.times(GIB)


def _since(table: tuple[tuple[Release, Guess], ...], version: Release) -> Guess:
    return next(guess for since, guess in table if version >= since)


def _compute(cards: tuple[Card, ...]) -> float:
    return (cards[0].compute if cards else None) or 0.0
