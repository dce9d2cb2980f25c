"""The memory arithmetic of a start on the simulated GPUs, as vLLM 0.32.0 does it.

requested = total x utilisation (v1/worker/utils.py:724), checked against what is free after
NCCL is up (:761); the KV cache gets what weights and overhead leave of it; the warm-up of the
sampler comes after that and needs room outside of it.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

from ..gpus.description import MIB, Gpu
from .model import Model
from .plan import Plan

GIB = 1024 * MIB
BLOCK = 16
"""Tokens of one block of the KV cache."""

LARGE_CARD = 70 * GIB
LARGE_CARD_SEQUENCES, SMALL_CARD_SEQUENCES = 1024, 256
"""Default of max_num_seqs by the card's memory (vLLM 0.32.0 engine/arg_utils.py:2925)."""

WARM_UP_BYTES = 18
"""Bytes of sampler warm-up for each sequence and word of the vocabulary. A start of the V2
runner with 1024 sequences and 248,320 words failed with 4.29 GiB left: it needs more."""


@dataclass(frozen=True)
class Budget:
    """The memory of one rank. Bytes; tokens for lengths.

    + total: of the card, as CUDA sees it
    + others: what other processes hold of it
    """

    total: int
    others: int
    context: int
    weights: int
    overhead: int
    utilization: float
    sequences: int
    vocabulary: int
    kv_per_token: int
    length: int

    @property
    def free(self) -> int:
        """What this rank finds free once its context is there."""
        return self.total - self.others - self.context

    @property
    def requested(self) -> int:
        """What it plans with."""
        return math.ceil(self.total * self.utilization)

    @property
    def kv(self) -> int:
        """What is left for the KV cache; negative if nothing is."""
        return self.requested - self.weights - self.overhead

    @property
    def tokens(self) -> int:
        """Tokens that fit into it, in whole blocks."""
        return max(0, self.kv) // (self.kv_per_token * BLOCK) * BLOCK

    @property
    def needed(self) -> int:
        """KV cache of one request of full length."""
        return self.kv_per_token * self.length

    @property
    def warm_up(self) -> int:
        """What the warm-up of the sampler takes for a moment."""
        return WARM_UP_BYTES * self.sequences * self.vocabulary

    @property
    def left(self) -> int:
        """What is free when it starts."""
        return self.free - self.weights - self.overhead - max(0, self.kv)


def budget(
    arguments: argparse.Namespace, plan: Plan, model: Model, gpu: Gpu, others: int
) -> Budget:
    """The budget of a rank on a card.

    + others: bytes of the card that other processes hold
    """
    tensor, pipeline = arguments.tensor_parallel_size, arguments.pipeline_parallel_size
    total = (gpu.memory_total - gpu.memory_reserved) * MIB
    large = gpu.memory_total * MIB >= LARGE_CARD
    whole = model.weights if plan.weights_gib is None else int(plan.weights_gib * GIB)
    return Budget(
        total=total,
        others=others,
        context=int(plan.context_gib * GIB),
        weights=whole // (tensor * pipeline),
        overhead=int(plan.overhead_gib * GIB),
        utilization=arguments.gpu_memory_utilization,
        sequences=arguments.max_num_seqs
        or (LARGE_CARD_SEQUENCES if large else SMALL_CARD_SEQUENCES),
        vocabulary=model.number("vocab_size"),
        kv_per_token=model.kv_bytes_per_token(tensor, arguments.kv_cache_dtype),
        length=arguments.max_model_len or model.number("max_position_embeddings"),
    )


def gib(size: int) -> str:
    """Bytes as vLLM prints them.

    >>> gib(57_717_818_163)
    '53.75'
    """
    return f"{size / GIB:.2f}"
