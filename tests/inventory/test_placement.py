"""The story's box: four of eight, all eight, keeping, naming, excluding, and who is in the way."""

from __future__ import annotations

import pytest

from inventory.base import Unknown
from inventory.errors import PlacementError
from inventory.hardware import Hardware
from inventory.placement import Chosen, place
from inventory.service import Placement
from tests.inventory.boxes import GIB, box, gpu, held, process, story, uuid, with_gpus

KIMI = "vllm-kimi-k25.service"
FOUR = Placement(gpus=4, within="numa-node")
EIGHT = Placement(gpus=8, within="host")


def refused(wish: Placement, hardware: Hardware, **options: object) -> PlacementError:
    with pytest.raises(PlacementError) as caught:
        place(wish, hardware, **options)  # type: ignore[arg-type]
    return caught.value


def cards(*numbers: int) -> tuple[str, ...]:
    return tuple(uuid(n) for n in numbers)


def test_four_of_one_node() -> None:
    chosen = place(FOUR, story())
    assert chosen.gpus == cards(0, 1, 2, 3)
    assert chosen.numa_nodes == (0, 0, 0, 0)
    assert chosen.closeness == "numa-node"
    assert chosen.environment == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(cards(0, 1, 2, 3)),
    }
    assert chosen.numa_bind_nodes == (0, 0, 0, 0)
    assert chosen.warnings == ()
    assert [one.gpu for one in chosen.rejected] == list(cards(4, 5, 6, 7))
    assert "4 of 8 free GPUs" in chosen.why[0]
    assert "one NUMA node (4 on NUMA node 0)" in chosen.why[0]
    assert chosen.why[1] == "links of the 6 pairs: 6 x NODE; peer access on 6"
    assert Chosen.model_validate(chosen.to_json()) == chosen


def test_all_eight() -> None:
    chosen = place(EIGHT, story())
    assert chosen.gpus == cards(*range(8))
    assert chosen.closeness == "host"
    assert chosen.rejected == ()
    (warning,) = chosen.warnings
    assert "2 sockets" in warning
    assert "--tensor-parallel-size 4 --pipeline-parallel-size 2" in warning
    assert chosen.numa_bind_nodes == (0, 0, 0, 0, 1, 1, 1, 1)


def test_eight_do_not_fit_a_node() -> None:
    error = refused(Placement(gpus=8, within="numa-node"), story())
    assert "at most 4 in one NUMA node" in error.found
    assert 'within="host"' in error.next_step


def test_the_other_node_where_the_first_is_used() -> None:
    chosen = place(FOUR, held(story(), "other.service", 1))
    assert chosen.gpus == cards(4, 5, 6, 7)
    assert chosen.rejected[1].reason == "used by other.service, 90.0 GiB"


def test_own_processes_do_not_count() -> None:
    busy = held(story(), KIMI, *range(8))
    chosen = place(
        FOUR, busy, own_units=["vllm-minimax-m25", "vllm-kimi-k25"], memory_needed=90 * GIB
    )
    assert chosen.gpus == cards(0, 1, 2, 3)
    (user,) = chosen.held_by
    assert (user.unit, user.gpus, user.memory) == (KIMI, chosen.gpus, 4 * 90 * GIB)


def test_the_one_in_the_way_is_named() -> None:
    error = refused(FOUR, held(story(), KIMI, 0, 1, 2, 4, 5, 6), own_units=["vllm-minimax-m25"])
    assert error.wanted == "4 GPUs in one NUMA node"
    assert error.found.startswith(f"{KIMI} holds 6 GPUs (540.0 GiB, VLLM::Worker_TP0 (pid 1000)")
    assert "must leave first; 2 of 8 GPUs can be taken" in error.found
    assert error.next_step == f"name {KIMI} in replaces=[…], or stop it on the box"


def test_in_the_way_of_closeness_too() -> None:
    error = refused(FOUR, held(story(), KIMI, 0, 7))
    assert (
        "6 free GPUs (3 on NUMA node 0, 3 on NUMA node 1), at most 3 in one NUMA node"
        in error.found
    )
    assert f"{KIMI} holds 2 GPUs" in error.found
    assert 'within="host"' in error.next_step


@pytest.mark.parametrize("unit", [None, Unknown(unknown="[Not Found]")])
def test_a_process_without_a_unit_is_someone_else(unit: Unknown | None) -> None:
    error = refused(EIGHT, held(story(), unit, 3), own_units=[KIMI])
    assert "VLLM::Worker_TP3 (pid 1003) holds 1 GPU (90.0 GiB)" in error.found
    assert error.next_step == "end VLLM::Worker_TP3 (pid 1003) on the box"


def test_memory_of_no_listed_process_counts_as_used() -> None:
    hidden = with_gpus(story(), {0: {"memory_used": 2 * GIB}, 1: {"memory_used": 400 << 20}})
    chosen = place(Placement(gpus=3), hidden)
    assert chosen.gpus == cards(1, 2, 3)
    assert "2.0 GiB used by processes that are not listed" in chosen.rejected[0].reason


def test_what_own_processes_leave_unexplained_counts() -> None:
    busy = with_gpus(held(story(), KIMI, 0), {0: {"memory_used": 93 * GIB}})
    chosen = place(Placement(gpus=4), busy, own_units=[KIMI])
    assert chosen.gpus == cards(4, 5, 6, 7)
    assert "3.0 GiB used" in chosen.rejected[0].reason


@pytest.mark.parametrize(
    "change",
    [
        {"processes": Unknown(unknown="status 4")},
        {"processes": (process(0, KIMI).model_copy(update={"gpu": Unknown(unknown="[N/A]")}),)},
    ],
)
def test_unknown_use_counts_as_used_unless_the_gpus_are_named(change: dict[str, object]) -> None:
    unclear = story().model_copy(update=change)
    error = refused(FOUR, unclear)
    assert "use unknown, which counts as used" in error.found
    named = place(Placement(gpus=2, uuids=cards(0, 1)), unclear)
    assert named.gpus == cards(0, 1)
    assert sum("use is unknown" in warning for warning in named.warnings) == 2


def test_unknown_memory_use_counts_as_used() -> None:
    unclear = with_gpus(story(), {0: {"memory_used": Unknown(unknown="[Unknown Error]")}})
    chosen = place(FOUR, unclear)
    assert chosen.gpus == cards(4, 5, 6, 7)


def test_memory_needed() -> None:
    small = with_gpus(story(), {0: {"memory_total": 48 * GIB, "memory_free": 47 * GIB}})
    assert place(FOUR, small, memory_needed=54 * GIB).gpus == cards(4, 5, 6, 7)
    error = refused(EIGHT, small, memory_needed=54 * GIB)
    assert "47.0 GiB free, 54.0 GiB needed" in error.found
    assert error.wanted == "8 GPUs anywhere on the box with 54.0 GiB each"
    unknown = with_gpus(story(), {0: {"memory_free": Unknown(unknown="[N/A]")}})
    assert place(FOUR, unknown, memory_needed=1).gpus == cards(4, 5, 6, 7)


def test_kept_while_valid() -> None:
    chosen = place(FOUR, story(), keep=cards(7, 6, 5, 4))
    assert chosen.gpus == cards(4, 5, 6, 7)
    assert "kept as it was" in chosen.why[-1]
    assert place(FOUR, story(), keep=chosen.gpus) == chosen


def test_keeping_the_best_changes_nothing() -> None:
    first = place(FOUR, story())
    assert place(FOUR, story(), keep=first.gpus) == first


def test_a_running_service_keeps_its_gpus() -> None:
    busy = held(story(), "vllm-minimax-m25.service", 4, 5, 6, 7)
    chosen = place(FOUR, busy, own_units=["vllm-minimax-m25"], keep=cards(4, 5, 6, 7))
    assert chosen.gpus == cards(4, 5, 6, 7)


@pytest.mark.parametrize(
    ("keep", "words"),
    [
        (cards(0, 1, 2, 9), "cannot all be kept"),
        (cards(0, 1, 2), "cannot all be kept"),
        (cards(2, 3, 4, 5), "further apart"),
    ],
)
def test_not_kept_where_not_valid(keep: tuple[str, ...], words: str) -> None:
    chosen = place(FOUR, story(), keep=keep)
    assert chosen.gpus == cards(0, 1, 2, 3)
    assert words in chosen.why[-1]


def test_by_name_in_bus_order_and_across_nodes() -> None:
    chosen = place(Placement(gpus=2, uuids=cards(6, 1)), story())
    assert chosen.gpus == cards(1, 6)
    assert chosen.closeness == "host"
    assert any("2 sockets" in warning for warning in chosen.warnings)


def test_names_that_cannot_be_followed() -> None:
    assert "no GPU GPU-00000009" in refused(Placement(gpus=1, uuids=cards(9)), story()).found
    assert "2 GPUs by name" in refused(Placement(gpus=3, uuids=cards(0, 1)), story()).found
    error = refused(Placement(gpus=2, uuids=cards(0, 1)), held(story(), KIMI, 1))
    assert "1 of 2 GPUs can be taken" in error.found
    assert KIMI in error.next_step


def test_excluded() -> None:
    chosen = place(Placement(gpus=4, exclude=(uuid(0), "GPU-gone")), story())
    assert chosen.gpus == cards(4, 5, 6, 7)
    assert chosen.rejected[0].reason == "excluded by the placement"
    assert "exclude names GPU-gone, which this box does not have" in chosen.warnings


def test_two_leave_the_other_node_whole() -> None:
    used = held(story(), "other.service", 0, 1)
    assert place(Placement(gpus=2), used).gpus == cards(2, 3)
    used = held(story(), "other.service", 6, 7)
    assert place(Placement(gpus=2), used).gpus == cards(4, 5)


def test_no_gpus_is_the_cpu() -> None:
    chosen = place(Placement(gpus=0), box([], state="no-hardware", reason="nothing"))
    assert (chosen.gpus, chosen.environment, chosen.closeness) == ((), {}, "cpu")
    assert chosen.numa_bind_nodes is None


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("no-hardware", "placement.gpus=0"),
        ("no-driver", "install the NVIDIA driver"),
        ("driver-broken", "goes on serving"),
        ("unknown", "run nvidia-smi"),
    ],
)
def test_no_choice_on_a_box_that_cannot_be_read(state: str, words: str) -> None:
    error = refused(FOUR, story(state=state, reason="in the tool's words"))
    assert "in the tool's words" in error.found
    assert words in error.next_step


def test_one_gpu() -> None:
    chosen = place(Placement(gpus=1), box([gpu(0)]))
    assert chosen.gpus == cards(0)
    assert chosen.warnings == ()
