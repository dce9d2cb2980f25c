"""Samples b01-b20, the tables of fields: every row of the index, read as it says."""

from __future__ import annotations

import pytest

from facts.hardware.cells import table
from facts.hardware.processes import parse_processes
from facts.hardware.smi import parse_query
from facts.hardware.smitext import (
    failure,
    lost_bus_ids,
)
from inventory.base import Unknown
from inventory.common.units import MIB
from tests.facts.hardware.samples import row, sample

ORDER_B = (
    "index",
    "uuid",
    "pci.bus_id",
    "memory.total",
    "memory.used",
    "memory.free",
    "memory.reserved",
    "driver_version",
    "persistence_mode",
    "compute_mode",
    "mig.mode.current",
    "compute_cap",
    "addressing_mode",
    "pcie.link.gen.current",
    "pcie.link.gen.max",
    "pcie.link.width.current",
    "pcie.link.width.max",
    "name",
)
"""The order in which the samples of kind b were asked for."""


def test_b01_units_and_the_reserve() -> None:
    query = parse_query(sample("b01_csv_h200_units.txt"))
    (gpu,) = query.gpus
    assert gpu.bus_id == "0000:83:00.0"
    assert gpu.memory_total == 143771 * MIB == 150_754_820_096
    assert gpu.memory_free == 143158 * MIB
    assert isinstance(gpu.memory_total, int)
    assert isinstance(gpu.memory_used, int)
    assert gpu.memory_free != gpu.memory_total - gpu.memory_used
    assert query.driver == "590.48.01"
    assert gpu.mig_enabled is False
    assert gpu.compute_capability == "9.0"
    assert gpu.persistence_mode is True


def test_b02_mig_parent() -> None:
    (gpu,) = parse_query(sample("b02_csv_h100_mig_enabled.txt")).gpus
    assert gpu.mig_enabled is True
    assert gpu.name == "NVIDIA H100 80GB HBM3"


def test_b05_gb10_shares_memory_and_its_pcie_fields_are_placeholders() -> None:
    (gpu,) = parse_query(sample("b05_csv_gb10_full_nounits.txt"), ORDER_B).gpus
    assert gpu.bus_id == "000f:01:00.0"
    assert gpu.unified_memory
    assert isinstance(gpu.memory_total, Unknown)
    assert isinstance(gpu.memory_free, Unknown)
    assert isinstance(gpu.pcie_width_current, Unknown)
    assert gpu.mig_enabled is False


def test_ats_with_memory_of_its_own_is_a_discrete_part() -> None:
    (gpu,) = parse_query([row(0, "01", addressing_mode="ATS")]).gpus
    assert not gpu.unified_memory
    assert gpu.memory_total == 97887 * MIB


@pytest.mark.parametrize("name", ["NVIDIA GB10", "NVIDIA Thor", "NVIDIA N1X"])
def test_integrated_parts_are_known_by_name_and_their_carve_out_is_no_total(name: str) -> None:
    (gpu,) = parse_query([row(0, "01", name=name, memory__total="8128")]).gpus
    assert gpu.unified_memory
    assert isinstance(gpu.memory_total, Unknown)


def test_b08_one_bad_cell_leaves_the_row() -> None:
    (read,) = table(sample("b08_csv_unknown_error.txt")).rows
    assert read["name"] == "GeForce RTX 2080 Ti"
    assert read["power.default_limit"] == "[Unknown Error]"
    (gpu,) = parse_query([row(0, "01", memory__used="[Unknown Error]")]).gpus
    assert gpu.memory_used == Unknown(unknown="[Unknown Error]")
    assert gpu.memory_free == 97287 * MIB
    assert gpu.health == "ok"


def test_b09_old_word_for_absent() -> None:
    columns = tuple("abcdefg")
    (read,) = table(sample("b09_csv_not_supported_old.txt"), columns).rows
    assert read["e"] == "[Not Supported]"
    (gpu,) = parse_query([row(0, "01", pcie__link__width__max=read["e"])]).gpus
    assert gpu.pcie_width_max == Unknown(unknown="[Not Supported]")


def test_b10_mixed_models_and_a_narrow_slot() -> None:
    gpus = parse_query(sample("b10_csv_mixed_models.txt"), ORDER_B).gpus
    assert [gpu.name for gpu in gpus] == ["NVIDIA GeForce RTX 5090"] * 2 + [
        "NVIDIA GeForce RTX 4090"
    ] * 3
    assert [gpu.pcie_width_current for gpu in gpus] == [16, 8, 16, 16, 16]
    assert {gpu.pcie_width_max for gpu in gpus} == {16}
    assert {gpu.mig_enabled for gpu in gpus} == {False}


def test_b12_one_unknown_field_voids_the_answer() -> None:
    lines = sample("b12_csv_invalid_field.txt")
    query = parse_query(lines)
    assert query.gpus == ()
    assert query.strays == ('Field "compute_cap" is not a valid field to query.',)
    assert failure(2, lines) == "unknown"


def test_b16_processes_of_another_pid_namespace() -> None:
    cgroups = ["3182\t0::/system.slice/innocent.service"]
    one, two = parse_processes(sample("b16_apps_not_found_container.txt"), cgroups)
    assert one.memory == 18034 * MIB
    assert one.pid == 3182
    assert one.unit == Unknown(unknown="[Not Found]")  # not innocent.service
    assert two.memory == Unknown(unknown="[N/A]")


def test_b17_restricted_row_is_a_process_about_which_nothing_is_known() -> None:
    (process,) = parse_processes(sample("b17_apps_mig_restricted.txt"))
    for value in (process.gpu, process.pid, process.memory, process.unit):
        assert value == Unknown(unknown="[Insufficient Permissions]")


def test_b18_commas_in_the_name() -> None:
    one, two = parse_processes(sample("b18_apps_commas_and_bytes.txt"))
    assert (one.pid, one.memory, one.name) == (77, 512 * MIB, "python -c print(1, 2)")
    assert two.name == "/opt//a?b"


def test_b19_row_remapping() -> None:
    read = table(sample("b19_retired_remapped.txt")).rows
    cells = [
        row(
            n,
            f"0{n + 1}",
            remapped_rows__pending=one["remapped_rows.pending"],
            remapped_rows__failure=one["remapped_rows.failure"],
        )
        for n, one in enumerate(read)
    ]
    gpus = parse_query(cells).gpus
    assert [gpu.reset_pending for gpu in gpus] == [
        False,
        True,
        Unknown(unknown="[N/A]"),
        Unknown(unknown="[N/A]"),
    ]
    assert {gpu.health for gpu in gpus} == {"ok"}
    (bad,) = parse_query([row(0, "01", remapped_rows__failure="Yes")]).gpus
    assert bad.health == "memory-failed"


def test_b20_text_among_rows() -> None:
    query = parse_query(sample("b20_csv_ragged_lost_gpu.txt"), ORDER_B)
    assert [gpu.uuid for gpu in query.gpus] == ["GPU-00000000-0000-4000-8000-000000000000"]
    assert lost_bus_ids(query.strays) == ("0000:1e:00.0",)


def test_lost_gpu_in_the_other_wording() -> None:
    line = "Unable to determine the device handle for GPU 0000:A1:00.0: Unknown Error"
    assert lost_bus_ids([line]) == ("0000:a1:00.0",)
    assert failure(15, [line]) == "lost-device"


def test_a_dead_gpu_looks_the_freest() -> None:
    cells = row(0, "01", pstate="[GPU requires reset]", memory__used="0", memory__free="97287")
    (gpu,) = parse_query([cells]).gpus
    assert gpu.health == "reset-required"
    assert gpu.health_reason == "pstate: [GPU requires reset]"
    assert isinstance(gpu.memory_used, Unknown)
    assert isinstance(gpu.memory_free, Unknown)


@pytest.mark.parametrize(
    ("action", "health", "pending"),
    [
        ("None", "ok", False),
        ("[N/A]", "ok", False),
        ("Reset", "reset-required", False),
        ("Reboot", "reset-required", False),
        ("Drain and Reset", "ok", True),
    ],
)
def test_recovery_action(action: str, health: str, pending: bool) -> None:
    (gpu,) = parse_query([row(0, "01", gpu_recovery_action=action)]).gpus
    assert (gpu.health, gpu.reset_pending) == (health, pending)
