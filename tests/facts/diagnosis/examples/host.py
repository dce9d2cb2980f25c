"""H: driver, host, NCCL."""

from __future__ import annotations

from facts.diagnosis import Hints
from tests.facts.diagnosis.examples.kind import Example
from tests.facts.diagnosis.examples.scenes import custom_all_reduce, nccl_shm
from tests.facts.diagnosis.journals import server_fails, worker_fails

SHM = "RuntimeError: Insufficient space in /dev/shm for message queue: {} MiB required, {} MiB free"

HOST: tuple[Example, ...] = (
    Example(
        "H1",
        worker_fails(
            "RuntimeError: The NVIDIA driver on your system is too old (found version 12040)."
        ),
        "too old",
        ("580", "CUDA 12.4"),
        {"found_version": 12040},
    ),
    Example(
        "H2",
        worker_fails(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has "
            "unsupported display driver / cuda driver combination"
        ),
        "Error 803",
        ("cuda-compat",),
    ),
    Example(
        "H3",
        worker_fails(
            "RuntimeError: Triton Error [CUDA]: the provided PTX was compiled with an "
            "unsupported toolchain."
        ),
        "unsupported toolchain",
        ("driver",),
    ),
    Example(
        "H4",
        server_fails("RuntimeError: No CUDA GPUs are available"),
        "No CUDA GPUs",
        ("nvidia-smi", "DeviceAllow="),
    ),
    Example(
        "H7",
        server_fails(
            "OSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): "
            "address already in use"
        ),
        "Errno 98",
        ("8000", "ss -ltnp"),
        {"port": 8000},
    ),
    Example(
        "H7-privileged",
        server_fails(
            "PermissionError: [Errno 13] Permission denied",
            (("api_server.py", "sock.bind(addr)"),),
        ),
        "Errno 13",
        ("1024",),
    ),
    Example(
        "H7-address",
        server_fails("OSError: [Errno 99] Cannot assign requested address"),
        "Errno 99",
        ("--host", "127.0.0.1"),
    ),
    Example(
        "H7-rendezvous",
        worker_fails(
            "torch.distributed.DistNetworkError: The server socket has failed to listen on any "
            "local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, "
            "message: address already in use"
        ),
        "EADDRINUSE",
        ("--master-port",),
    ),
    Example(
        "H8",
        worker_fails(SHM.format("256.0", "61.5")),
        "Insufficient space in /dev/shm",
        ("256.0 MiB", "61.5 MiB", "remount"),
        {"required_mib": 256.0, "free_mib": 61.5},
    ),
    Example("H9", nccl_shm(), "NCCL WARN Error while creating", ("remount",), {"bytes": 9637888}),
    Example(
        "H10",
        worker_fails("RuntimeError: NCCL error: invalid usage (run with NCCL_DEBUG=WARN)"),
        "NCCL error",
        ("NCCL_DEBUG=INFO",),
    ),
    Example(
        "H10-peer",
        worker_fails("RuntimeError: [gloo/pair.cc:534] Connection closed by peer [10.0.0.1]:4"),
        "Connection closed by peer",
        ("another rank",),
    ),
    Example(
        "H11",
        worker_fails(
            "torch.distributed.DistBackendError: [PG ID 2 Rank 1] Watchdog caught collective "
            "operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, Timeout(ms)=600000) ran for"
        ),
        "Watchdog caught",
        ("iommu=off",),
        {"timeout_ms": 600000},
    ),
    Example(
        "H13",
        worker_fails("OSError: [Errno 24] Too many open files: '/srv/models/m/a.safetensors'"),
        "Too many open files",
        ("LimitNOFILE=1048576",),
    ),
    Example(
        "H14",
        worker_fails(
            "RuntimeError: Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory"
        ),
        "ibv_reg_mr",
        ("LimitMEMLOCK=infinity",),
    ),
    Example(
        "H15",
        worker_fails(
            "RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't "
            "exist"
        ),
        "nvcc",
        ("flashinfer-jit-cache", "VLLM_USE_FLASHINFER_SAMPLER=0"),
    ),
    Example(
        "H15",
        worker_fails("FileNotFoundError: [Errno 2] No such file or directory: 'ninja'"),
        "'ninja'",
        ("install ninja",),
    ),
    Example(
        "H16",
        worker_fails("RuntimeError: FlashInfer requires sm75 or higher"),
        "sm75",
        ("12.9",),
    ),
    Example(
        "H17",
        server_fails(
            "RuntimeError: NUMA binding was requested, but vLLM could not detect the GPU-to-NUMA "
            "topology automatically. Pass --numa-bind-nodes explicitly or disable --numa-bind."
        ),
        "NUMA binding was requested",
        ("--numa-bind-nodes",),
    ),
    Example(
        "H17b",
        server_fails("RuntimeError: numactl is required for NUMA binding but is not installed"),
        "numactl",
        ("install numactl",),
    ),
    Example(
        "H27",
        custom_all_reduce(),
        "custom_all_reduce.cuh:455",
        ("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "--disable-custom-all-reduce"),
        {"what": "invalid argument"},
    ),
    Example(
        "H27",
        custom_all_reduce(),
        "custom_all_reduce.cuh:455",
        ("take PYTORCH_ALLOC_CONF=expandable_segments:True,max_split_size_mb:64 out",),
        hints=Hints(
            environment={
                "PYTORCH_ALLOC_CONF": "expandable_segments:True,max_split_size_mb:64",
                "HOME": "/x",
            }
        ),
    ),
    Example(
        "H29-device-busy",
        worker_fails(
            "torch.AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable"
        ),
        "busy or unavailable",
        ("nvidia-smi",),
    ),
)
