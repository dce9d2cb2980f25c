"""The parallel sizes that follow from a placement."""

from __future__ import annotations

from inventory.errors import DesiredStateError
from inventory.service import Service


def tensor_parallel_size(service: Service) -> int | None:
    """The tensor parallel size of a service; None on a box without GPUs where none was asked for.

    + service: its GPUs are shared out over data, pipeline and tensor parallelism, in that order
    + raises: DesiredStateError where the sizes do not use exactly the GPUs of the placement

    >>> from inventory.catalogue import MINIMAX_M25
    >>> tensor_parallel_size(MINIMAX_M25)
    4
    """
    engine, gpus = service.engine, service.placement.gpus
    if gpus == 0:
        return engine.tensor_parallel_size
    others = engine.pipeline_parallel_size * engine.data_parallel_size
    size = engine.tensor_parallel_size or max(1, gpus // others)
    if size * others != gpus:
        raise DesiredStateError(
            wanted=f"{service.name} on exactly {gpus} GPUs",
            found=f"tensor {size} x pipeline {engine.pipeline_parallel_size} x data "
            f"{engine.data_parallel_size} parallel = {size * others} GPUs",
            why="the engine starts one worker for each of these and fails, or leaves GPUs idle",
            next_step=f"set placement.gpus={size * others}, or leave tensor_parallel_size out and "
            "choose the other sizes so that their product divides the number of GPUs",
        )
    return size
