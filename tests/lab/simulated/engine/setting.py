"""What all processes of one start share."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from ..gpus.books import Books
from ..gpus.description import BOOKS, Box, Gpu, eight_gpus, root
from .budget import Budget, budget
from .failures import CATALOGUE, Failure, natural
from .model import Model
from .plan import Plan


@dataclass(frozen=True)
class Setting:
    """One start.

    + box: the simulated box; None on one without GPUs, where nothing is booked
    + gpus: the cards that the start may see, in rank order
    """

    version: str
    arguments: argparse.Namespace
    plan: Plan
    model: Model
    box: Box | None
    gpus: tuple[Gpu, ...]

    @property
    def ranks(self) -> int:
        """Processes that share the model."""
        return int(self.arguments.tensor_parallel_size * self.arguments.pipeline_parallel_size)

    @property
    def served_name(self) -> str:
        """The name that clients ask for."""
        names = self.arguments.served_model_name
        return str(names[0] if names else self.arguments.model)

    @property
    def books(self) -> Books:
        """The books of the box."""
        return Books(root() / BOOKS, self.box.release_seconds if self.box else 0.0)

    def budget(self, rank: int) -> Budget:
        """The memory of a rank, with what others hold of its card now.

        Without simulated GPUs the figures are those of a free card, for the log to show.
        """
        if self.box is None:
            gpu, others = eight_gpus().gpus[0], 0
        else:
            gpu = self.gpus[rank]
            others = self.books.used(gpu.uuid)
        return budget(self.arguments, self.plan, self.model, gpu, others)

    def failure(self, phase: str, figures: Budget, rank: int) -> Failure | None:
        """How a rank fails in a phase: by the plan, or by the figures."""
        build = CATALOGUE.get(self.plan.crash)
        if build is not None:
            planned = build(figures, self.model, rank)
            if phase == (self.plan.at or planned.phase):
                return planned
        name = natural(figures, self.model, phase, booked=self.box is not None)
        return CATALOGUE[name](figures, self.model, rank) if name else None


def role(setting: Setting, rank: int) -> str:
    """The name that a rank's process logs with once it knows its place."""
    experts = f"_EP{rank}" if setting.arguments.enable_expert_parallel else ""
    return f"Worker_TP{rank}{experts}" if setting.ranks > 1 else "EngineCore"
