"""S and C: systemd, and what only a CPU box has."""

from __future__ import annotations

from tests.facts.diagnosis.examples.kind import Example
from tests.facts.diagnosis.examples.scenes import (
    libnuma,
    start_times_out,
    stopped_while_loading,
    unit_fails,
)
from tests.facts.diagnosis.journals import Made, worker_fails

UNIT: tuple[Example, ...] = (
    Example("C2-library-missing", libnuma(), "libnuma.so.1", ("install libnuma1",)),
    Example(
        "C4-numa-nodes",
        worker_fails(
            "AssertionError: Not enough allowed NUMA nodes to bind threads of 2 local CPUWorkers. "
            "Allowed NUMA nodes are [0]. Please try to bind threads manually or decrease DP/TP/PP."
        ),
        "NUMA nodes",
        ("VLLM_CPU_OMP_THREADS_BIND",),
        {"workers": 2},
    ),
    Example(
        "C3-abi-mismatch",
        worker_fails(
            "ImportError: /opt/vllm/lib/vllm/_C.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEa"
        ),
        "undefined symbol",
        ("torch version",),
        {"file": "/opt/vllm/lib/vllm/_C.abi3.so"},
    ),
    Example(
        "S1-exec-missing",
        unit_fails("Failed at step EXEC spawning /opt/v/bin/vllm: No such file or directory", 203),
        "/opt/v/bin/vllm",
        ("/opt/v/bin/vllm", "ExecStart="),
        {"status": 203},
    ),
    Example(
        "S5-unit-step",
        unit_fails("Failed at step CHDIR spawning /opt/v/bin/vllm: No such file or directory", 200),
        "step CHDIR",
        ("WorkingDirectory=",),
        {"status": 200},
    ),
    Example("S2-notify-timeout", start_times_out(True), "timed out", ("Type=exec", "Type=notify")),
    Example("S6-start-timeout", start_times_out(False), "timed out", ("TimeoutStartSec=",)),
    Example(
        "S3-not-installed",
        Made().crashes("ModuleNotFoundError: No module named 'vllm'").exits().text,
        "'vllm'",
        ("reinstall vllm",),
    ),
    Example(
        "S3-module-missing",
        Made().crashes("ModuleNotFoundError: No module named 'uvloop'").exits().text,
        "'uvloop'",
        ("install uvloop",),
    ),
    Example(
        "S4-stop-while-loading",
        stopped_while_loading(),
        "stop-sigterm",
        ("TimeoutStopSec",),
    ),
)
