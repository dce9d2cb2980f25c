"""Cards and hosts with something about them: shared memory, narrow slots, IOMMU, binding."""

from __future__ import annotations

import pytest

from inventory.base import Unknown
from inventory.errors import PlacementError
from inventory.hardware import Gpu
from inventory.placement import place
from inventory.service import Placement
from tests.inventory.boxes import GIB, box, gpu, links, node, numbers, story, with_gpus


def gb10(free: int) -> Gpu:
    return gpu(
        0,
        name="NVIDIA GB10",
        unified_memory=True,
        memory_total=120 * GIB,
        memory_free=free,
        pcie_width_current=Unknown(unknown="placeholder"),
        pcie_width_max=Unknown(unknown="placeholder"),
    )


def test_gb10_takes_from_the_host() -> None:
    spark = box([gb10(100 * GIB)], nodes=[node(0, 0)])
    chosen = place(Placement(gpus=1), spark, memory_needed=90 * GIB)
    assert any("GPU memory is the host's" in one for one in chosen.warnings)
    assert chosen.numa_bind_nodes is None
    with pytest.raises(PlacementError, match=r"80.0 GiB free, 90.0 GiB needed"):
        place(Placement(gpus=1), box([gb10(80 * GIB)]), memory_needed=90 * GIB)


def test_narrow_slots_and_waiting_resets_come_last_among_equals() -> None:
    slow = with_gpus(story(), {0: {"pcie_width_current": 4}, 5: {"reset_pending": True}})
    assert numbers(place(Placement(gpus=3), slow)) == [1, 2, 3]
    chosen = place(Placement(gpus=4), slow)
    assert numbers(chosen) == [0, 1, 2, 3]
    assert "GPU 0 (0000:10:00.0) runs on 4 of 16 PCIe lanes, which limits the group" in (
        chosen.warnings
    )
    eight = place(Placement(gpus=8, within="host"), slow)
    assert any("asks for a reset" in one for one in eight.warnings)


def test_iommu_beside_peer_access_is_warned_of() -> None:
    chosen = place(Placement(gpus=4), story(iommu_groups=74))
    (warning,) = chosen.warnings
    assert "74 groups" in warning
    assert "NCCL_P2P_DISABLE=1" in warning
    gpus = [gpu(n, n // 4) for n in range(8)]
    nvlink = box(gpus, links(gpus, "NV18", across="NV18"), iommu_groups=74)
    assert place(Placement(gpus=4), nvlink).warnings == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"numa_nodes": (node(0, 0),)}, "1 NUMA nodes with CPUs"),
        ({"numa_nodes": (node(0, 0, memory_total=0), node(1, 1))}, "node 0 is not known"),
        ({"numa_nodes": (node(0, 0), node(1, 1), node(2, 1, cpus=""))}, ""),
        ({"numactl": False}, "numactl is not installed"),
        ({"numactl": Unknown(unknown="not asked")}, "whether numactl exists"),
        ({"bindable_nodes": (1,)}, "could not bind to node 0"),
        ({"bindable_nodes": Unknown(unknown="no numactl")}, "was not tried"),
    ],
)
def test_binding_only_where_it_works(change: dict[str, object], words: str) -> None:
    chosen = place(Placement(gpus=4), story().model_copy(update=change))
    assert words in chosen.numa_bind_reason
    assert chosen.numa_bind_nodes == ((0, 0, 0, 0) if not words else None)
