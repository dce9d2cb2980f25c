"""Does it fit? One answer for a model, its settings and the GPUs.

**Example:**

>>> from inventory.fit.settings.card import parse_cards
>>> from inventory.fit.model.known import known_architecture
>>> from inventory.fit.settings.settings import EngineSettings
>>> answer = fit(
...     known_architecture("MiniMaxAI/MiniMax-M2.5"),
...     EngineSettings(engine="0.32.0", tp=3),
...     parse_cards('4x"RTX PRO 6000"'),
... )
>>> [(verdict.rule, verdict.choices) for verdict in answer.certainties][0]
('kv-heads', ('TP=2', 'TP=4'))
"""

from typing import Literal

from pydantic import Field

from inventory.base import Frozen, Unknown
from inventory.fit.answer.derive import Derived, Parallel, derive
from inventory.fit.answer.explain import explanation
from inventory.fit.answer.memory_verdicts import memory_verdicts
from inventory.fit.answer.verdict import Verdict
from inventory.fit.legality.compatibility import compatibility_verdicts
from inventory.fit.legality.flags import Help, flag_verdicts
from inventory.fit.legality.shapes import shape_verdicts
from inventory.fit.memory.memory import Memory, memory
from inventory.fit.memory.weights import Weights
from inventory.fit.model.architecture import Architecture
from inventory.fit.settings.card import Card
from inventory.fit.settings.resolve import Resolved, resolve
from inventory.fit.settings.settings import EngineSettings

Outcome = Literal["starts", "fails", "unknown"]


class Fit(Frozen):
    """The answer."""

    architecture: Architecture
    resolved: Resolved
    cards: tuple[Card, ...]
    verdicts: tuple[Verdict, ...] = Field(description="in the order in which a start meets them")
    memory: Memory | Unknown
    derived: Derived
    choice: Parallel | None = Field(
        default=None, description="how the parallel sizes were chosen, where they were not given"
    )

    @property
    def certainties(self) -> tuple[Verdict, ...]:
        """What cannot work: stop before anything is touched."""
        return tuple(verdict for verdict in self.verdicts if verdict.certain)

    @property
    def predictions(self) -> tuple[Verdict, ...]:
        """What will probably not work, or only just: warn."""
        return tuple(verdict for verdict in self.verdicts if not verdict.certain)

    @property
    def failure(self) -> Verdict | None:
        """The first thing that is certain or likely to end the start."""
        return next((v for v in self.verdicts if v.certain or v.fails), None)

    @property
    def outcome(self) -> Outcome:
        """What will probably happen."""
        if self.failure is not None:
            return "fails"
        if isinstance(self.memory, Unknown) or self.memory.margin("context") is None:
            return "unknown"
        return "starts"

    def explain(self) -> str:
        """What was found, in words and numbers."""
        return explanation(self)


def fit(
    architecture: Architecture,
    settings: EngineSettings,
    cards: tuple[Card, ...],
    engine_help: Help | None = None,
    choice: Parallel | None = None,
    load: Weights | None = None,
) -> Fit:
    """Whether and how well a model starts.

    + architecture: from :func:`inventory.fit.model.config.read_architecture` or
      :func:`inventory.fit.model.known.known_architecture`
    + settings: the settings; None leaves one to the engine's default
    + cards: the GPUs that the service would run on, from
      :func:`inventory.fit.settings.card.card_of` or :func:`inventory.fit.settings.card.parse_cards`
    + load: the weights, if they are known from elsewhere than the model
    + choice: from :func:`inventory.fit.answer.derive.parallel_sizes`, where the sizes come from it
    + engine_help: flags of the installed engine, from
      :func:`inventory.fit.legality.flags.read_help`
    """
    resolved = resolve(architecture, settings, cards)
    found = memory(architecture, resolved, cards, load)
    verdicts = [
        *shape_verdicts(architecture, settings, resolved.engine, len(cards)),
        *compatibility_verdicts(architecture, resolved, cards),
    ]
    if engine_help is not None:
        verdicts += flag_verdicts(settings.flags, engine_help, settings.engine or "as installed")
    if not isinstance(found, Unknown):
        # With sizes that the shape does not allow only what is certain of the memory matters.
        shape = any(verdict.certain for verdict in verdicts)
        verdicts += [
            verdict
            for verdict in memory_verdicts(architecture, found, cards)
            if verdict.certain or not shape
        ]
    return Fit(
        architecture=architecture,
        resolved=resolved,
        cards=cards,
        verdicts=tuple(verdicts),
        memory=found,
        derived=derive(architecture, resolved, cards, found),
        choice=choice,
    )
