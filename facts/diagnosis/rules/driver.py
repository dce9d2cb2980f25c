"""H1 to H5, H16, H29: driver, CUDA, and which GPUs the process may see."""

from facts.diagnosis.rule import Evidence, Number, Numbers, Rank, Rule

_DRIVERS = {13: 580, 12: 525}
"""The first driver branch for each CUDA major version (NVIDIA CUDA compatibility guide)."""


def _cuda(evidence: Evidence) -> dict[str, Number | None]:
    version = evidence.groups().get("found_version")
    if not isinstance(version, int):
        return {}
    return {"driver_cuda": f"{version // 1000}.{version % 1000 // 10}"}


def _newer(_: Evidence, n: Numbers) -> str:
    cuda = (
        f"the driver supports CUDA {n['driver_cuda']} only"
        if "driver_cuda" in n
        else ("the driver is older than the wheel's CUDA")
    )
    return (
        f"{cuda}: install driver {_DRIVERS[13]} or newer (for CUDA 13), or the wheel of vLLM and "
        "torch that is built for the driver's CUDA (cu128, cu129)"
    )


def _identifier(evidence: Evidence) -> bool:
    return evidence.match["what"].startswith(("GPU-", "MIG-"))


DRIVER: tuple[Rule, ...] = (
    Rule(
        cause="H1",
        title="the NVIDIA driver is too old for this torch",
        patterns=(
            r"The NVIDIA driver on your system is too old "
            r"\(found version (?P<found_version>[0-9]{1,6})\)",
            r"The NVIDIA driver on your system is too old",
        ),
        why="the wheel is built for a newer CUDA than the driver can run",
        next_step=_newer,
        source="modelscope/FunASR#2973; PyTorch c10/cuda",
        warns=True,  # torch only warns, and the engine then sees no GPU
        numbers=_cuda,
    ),
    Rule(
        cause="H2",
        title="CUDA's libraries and the driver do not belong together",
        patterns=(
            r"CUDA driver version is insufficient for CUDA runtime version",
            r"Error 803: system has unsupported display driver / cuda driver combination",
            r"unsupported display driver / cuda driver combination",
            r"forward compatibility was attempted on non supported HW",  # error 804
        ),
        why="libcuda of a cuda-compat package is found first, which GeForce and RTX cards refuse; "
        "or the driver was updated and the box was not rebooted",
        next_step="ldconfig -p | grep libcuda: take cuda-compat out of LD_LIBRARY_PATH and "
        "/etc/ld.so.conf.d; reboot if the driver was updated; else a newer driver",
        source="vLLM 0.32.0 env_override.py",
    ),
    Rule(
        cause="H3",
        title="a kernel was compiled by a toolkit newer than the driver",
        patterns=(
            r"cudaErrorUnsupportedPtxVersion|CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
            r"provided PTX was compiled with an unsupported toolchain",
        ),
        why="nvcc or ptxas on this box is newer than what the driver understands",
        next_step="make them match: a newer driver, or an older CUDA toolkit (nvcc --version, "
        "TRITON_PTXAS_PATH)",
        source="Blackwellboy/model-serving-minefield trap 08",
    ),
    Rule(
        cause="H4",
        title="the service sees no GPU",
        patterns=(
            r"Failed to infer device type",
            r"No CUDA GPUs are available",
            r"Found no NVIDIA driver on your system",
            r"Failed to initialize NVML|NVML: Driver/library version mismatch",
        ),
        why="this process sees no driver and no GPU, or the engine is a CPU wheel",
        next_step="run nvidia-smi as the service's user (lsmod | grep nvidia; reboot after an "
        "update of the driver); look at DeviceAllow= and PrivateDevices= in the unit, and at "
        "CUDA_VISIBLE_DEVICES",
        source="vLLM 0.32.0 config/device.py:56",
    ),
    Rule(
        cause="H5",
        title="this version cannot read GPU names in CUDA_VISIBLE_DEVICES",
        patterns=(r"invalid literal for int\(\) with base 10: '(?P<what>[^']{1,100})'",),
        when=_identifier,
        why="older versions take CUDA_VISIBLE_DEVICES as numbers, and {what} is a GPU's name",
        next_step="numbers in CUDA_VISIBLE_DEVICES (with CUDA_DEVICE_ORDER=PCI_BUS_ID), or vLLM "
        "0.32 and --device-ids",
        source="vllm-project/vllm#41848, #13815, #46132, #41776",
    ),
    Rule(
        cause="H16",
        title="FlashInfer was built by a CUDA that does not know this GPU",
        patterns=(r"requires? (?:GPUs with )?sm_?75 or higher",),
        why="the message misleads: on sm_120 it means a CUDA toolkit older than 12.9, which "
        "FlashInfer takes from nvcc and not from torch",
        next_step="CUDA 12.9 or newer for nvcc (nvcc --version) and for the builds of vLLM and "
        "FlashInfer; or VLLM_USE_FLASHINFER_SAMPLER=0 and another --attention-backend",
        source="vllm-project/vllm#42393, #54267; flashinfer-ai/flashinfer#3675",
    ),
    Rule(
        cause="H29-device-busy",
        title="a GPU refuses the process",
        patterns=(
            r"CUDA-capable device\(s\) is/are busy or unavailable",
            r"all CUDA-capable devices are busy or unavailable",
        ),
        rank=Rank.SYMPTOM,
        why="the GPU is in exclusive mode and taken, or it is in a state that needs a reset",
        next_step="nvidia-smi -q -d COMPUTE for the mode, nvidia-smi for who holds it, "
        "journalctl -k for Xid messages",
        source="CUDA runtime API, cudaErrorDevicesUnavailable",
    ),
)
