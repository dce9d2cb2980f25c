"""The five states of the accelerators, and not knowing."""

from __future__ import annotations

import pytest

from facts.hardware import parse_hardware
from facts.sections import Section
from inventory.base import Unknown
from tests.facts.hardware.samples import body, pci, row, sample

NVRM = body("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  590.48.01  Release Build")
NO_DRIVER = body(
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", rc=9
)
NO_GPUS = Section(rc=255, lines=sample("c04_no_supported_gpus.txt"))
MISMATCH = Section(rc=18, lines=sample("c02_version_mismatch.txt"))
LOST = Section(rc=15, lines=sample("b20_csv_ragged_lost_gpu.txt"))
CARD = pci("0000:01:00.0")
TWO_CARDS = pci("0000:01:00.0", "0000:02:00.0")
LOST_BUS = pci("0000:1d:00.0", "0000:1e:00.0")
SPARE = pci("0000:01:00.0", driver="vfio-pci")
EMPTY = body()
ROWS = body(row(0, "01"))
DEAD = body(row(0, "01", pstate="[GPU requires reset]"))
BLOCKED = body("Failed to initialize NVML: Unknown Error", rc=255)


@pytest.mark.parametrize(
    ("smi", "bus", "module", "state"),
    [
        pytest.param(ROWS, CARD, NVRM, "ok", id="sound"),
        pytest.param(DEAD, CARD, NVRM, "degraded", id="dead card"),
        pytest.param(ROWS, TWO_CARDS, NVRM, "degraded", id="lost card"),
        pytest.param(LOST, LOST_BUS, NVRM, "degraded", id="lost, no rows"),
        pytest.param(body(rc=127), EMPTY, EMPTY, "no-hardware", id="nothing at all"),
        pytest.param(NO_DRIVER, EMPTY, EMPTY, "no-hardware", id="tool without card"),
        pytest.param(NO_GPUS, EMPTY, NVRM, "no-hardware", id="driver without card"),
        pytest.param(body(rc=127), CARD, EMPTY, "no-driver", id="card, nothing installed"),
        pytest.param(NO_DRIVER, CARD, EMPTY, "no-driver", id="module not loaded"),
        pytest.param(NO_GPUS, SPARE, NVRM, "no-driver", id="card given to a guest"),
        pytest.param(NO_DRIVER, CARD, NVRM, "driver-broken", id="module does not answer"),
        pytest.param(MISMATCH, CARD, NVRM, "driver-broken", id="mismatch"),
        pytest.param(NO_GPUS, CARD, NVRM, "driver-broken", id="bound, and not found"),
        pytest.param(body(rc=124), CARD, NVRM, "unknown", id="hung"),
        pytest.param(BLOCKED, CARD, NVRM, "unknown", id="device cgroup"),
        pytest.param(body(rc=127), CARD, NVRM, "unknown", id="module without tool"),
        pytest.param(body(rc=127), Section(rc=None), EMPTY, "unknown", id="PCI not read"),
        pytest.param(Section(rc=None), CARD, NVRM, "unknown", id="cut off"),
        pytest.param(EMPTY, CARD, NVRM, "unknown", id="no rows and no error"),
    ],
)
def test_states_are_kept_apart(smi: Section, bus: Section, module: Section, state: str) -> None:
    read = parse_hardware({"nv.full": smi, "pci": bus, "nvproc": module})
    assert read.state == state
    assert bool(read.reason) == (state != "ok")


def test_mismatch_names_both_sides() -> None:
    read = parse_hardware({"nv.full": MISMATCH, "pci": CARD, "nvproc": NVRM})
    assert "535.161" in read.reason
    assert read.kernel_driver == "590.48.01"
    (gpu,) = read.gpus
    assert gpu.health == "unknown"
    assert isinstance(gpu.memory_free, Unknown)
