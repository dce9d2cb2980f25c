"""H: processes that hang, are killed, or die while serving; the kernel's log."""

from __future__ import annotations

from facts.diagnosis import Hints
from tests.facts.diagnosis.examples.kind import Example
from tests.facts.diagnosis.examples.scenes import (
    core_process,
    killed,
    loading_silence,
    main_killed,
    nccl_silence,
    oom_killed,
    serving_fault,
    waits,
    xid,
)
from tests.facts.diagnosis.journals import BEGAN, ENGINE, Made, server_fails, worker_fails

PROCESSES: tuple[Example, ...] = (
    Example(
        "H20",
        Made()
        .banner()
        .fails(
            ENGINE,
            "engine",
            "RuntimeError: Did not receive response from front-end process within 5 minutes",
        )
        .exits()
        .text,
        "front-end process",
        ("journalctl -k",),
        {"minutes": 5},
    ),
    Example(
        "H11",
        nccl_silence(),
        "nccl==2.28.9",
        ("iommu=off", "NCCL_P2P_DISABLE=1", "--disable-custom-all-reduce"),
        {"nccl": "2.28.9", "silent_minutes": 5},
        hints=Hints(now=BEGAN + 304),
    ),
    Example("H19", killed(-9).text, "exit code: -9", ("SIGKILL",), {"exit_code": -9, "rank": 2}),
    Example("H19", killed(-7).text, "exit code: -7", ("SIGBUS", "bus error"), {"exit_code": -7}),
    Example(
        "H19",
        killed(-9).text,
        "Out of memory: Killed process 302",
        ("free memory",),
        {"pid": 302},
        kernel="2026-11-30T10:00:38+0000 box kernel: Out of memory: Killed process 302 "
        "(VLLM::Worker_TP) total-vm:9kB",
    ),
    Example("H19", oom_killed(), "OOM killer", ("OOMScoreAdjust=-500",)),
    Example(
        "H19",
        core_process("{'EngineCore': -11}"),
        "'EngineCore': -11",
        ("SIGSEGV",),
        {"exit_code": -11},
    ),
    Example("H20", core_process("{}", 590), "Failed core proc(s): {}", ("READY_TIMEOUT_S",)),
    Example(
        "H20",
        server_fails(
            "TimeoutError: Timed out waiting for engine core processes to start. This is often "
            "caused by slow weight loading for large models. Waited 600s (configured by"
        ),
        "Timed out waiting",
        ("VLLM_ENGINE_READY_TIMEOUT_S",),
        {"waited_s": 600},
    ),
    Example("H21", serving_fault(False), "illegal memory access", ("--attention-backend",)),
    Example("H22", waits(6), "No available shared memory", ("one token",)),
    Example(
        "H22",
        loading_silence(),
        "77B blob data",
        ("ps -o",),
        hints=Hints(now=BEGAN + 400),
    ),
    Example(
        "H23",
        serving_fault(True),
        "79,",
        ("pcie_aspm=off", "0000:c1:00"),
        {"xid": 79, "pci": "0000:c1:00"},
        kernel=xid(79),
    ),
    Example("H23-xid", serving_fault(True), "48,", ("replace",), {"xid": 48}, kernel=xid(48)),
    Example(
        "H23-ecc",
        worker_fails("RuntimeError: CUDA error: uncorrectable ECC error encountered"),
        "uncorrectable ECC",
        ("ROW_REMAPPER",),
    ),
    Example("H24", main_killed(), "status=9/KILL", ("KillMode=mixed",), {"signal": 9}),
    Example("H25", serving_fault(True), "illegal memory", ("Restart=always",), {"exit_status": 0}),
    Example(
        "H25",
        serving_fault(True),
        "illegal memory",
        ("expandable_segments",),
        hints=Hints(environment={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
    ),
)
