"""H8 to H11: what the ranks say to each other, and the memory that they share."""

from facts.diagnosis.rule import Evidence, Numbers, Rank, Rule, listed

_SHM = "/dev/shm"  # noqa: S108  (named in texts, never written to)

P2P_REMEDY = (
    "let GPUs reach each other over PCIe: boot with iommu=off (or iommu=pt) and switch ACS off; "
    "as a stop-gap NCCL_P2P_DISABLE=1 in the unit and --disable-custom-all-reduce"
)
P2P_WHY = (
    "PCIe peer-to-peer is offered and does not work: an IOMMU that translates, or ACS that "
    "redirects, swallows what one GPU writes to another"
)
P2P_SOURCE = "vllm-project/vllm#33041, #42063; NVIDIA/nccl#1999, #2079"


def _room(_: Evidence, n: Numbers) -> str:
    want = (
        f" {n['required_mib']} MiB are needed, {n['free_mib']} MiB are free:"
        if ("required_mib" in n and "free_mib" in n)
        else ""
    )
    return (
        f"{want} remove what dead processes left (ls -l /dev/shm: nccl-*, psm_*, sem.*), or "
        "enlarge it: mount -o remount,size=16G /dev/shm (in a container --shm-size or --ipc=host)"
    ).strip()


def _not_expandable(evidence: Evidence, _: Numbers) -> str:
    """Which of the two to change: the unit's environment is not always known."""
    names = [
        f"{name}={value}"
        for name, value in evidence.scene.hints.environment.items()
        if "expandable_segments" in value
    ]
    setting = listed(names) or "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
    return (
        f"take {setting} out of the unit; or --disable-custom-all-reduce, which is slower between "
        "GPUs with NVLink"
    )


NCCL_RULES: tuple[Rule, ...] = (
    Rule(
        cause="H8",
        title=f"{_SHM} is too small or full",
        patterns=(
            r"Insufficient space in /dev/shm for .{0,200}?: (?P<required_mib>[0-9.]{1,15}) MiB "
            r"required, (?P<free_mib>[0-9.]{1,15}) MiB free",
            r"Insufficient space in /dev/shm",
            r"No space left on device.{0,40}/dev/shm",
            r"unable to (?:allocate|write to|resize) (?:shared memory|file </torch_)",
        ),
        why="workers pass their messages through shared memory",
        next_step=_room,
        source="vLLM 0.32.0 shm_broadcast.py:228",
    ),
    Rule(
        cause="H9",
        title="NCCL cannot create shared memory",
        patterns=(
            r"Error while creating shared memory segment (?P<path>\S{1,120}) "
            r"\(size (?P<bytes>[0-9]{1,15})",
            r"NCCL WARN .*(?:shared memory|/dev/shm).*(?:No space|failed|[Ee]rror)",
        ),
        why=f"{_SHM} is too small, or full of what dead processes left",
        next_step=_room,
        source="MiniMax-AI/MiniMax-01#42; NVIDIA/nccl#290, #342",
        warns=True,
    ),
    Rule(
        cause="H14",
        title="memory cannot be locked",
        patterns=(
            r"ibv_reg_mr\w*.{0,80}Cannot allocate memory",
            r"(?i:memlock).{0,60}(?:limit|fail)",
        ),
        why="NCCL registers its buffers with the network card, which locks them in memory",
        next_step="LimitMEMLOCK=infinity in the unit",
        source="NVIDIA NCCL user guide, troubleshooting",
        warns=True,
    ),
    Rule(
        cause="H11",
        title="a collective of the ranks never ended",
        patterns=(
            r"Watchdog caught collective operation timeout: WorkNCCL\(.{0,200}?"
            r"Timeout\(ms\)=(?P<timeout_ms>[0-9]{1,12})",
            r"Watchdog caught collective operation timeout",
        ),
        why=P2P_WHY,
        next_step=P2P_REMEDY,
        source=P2P_SOURCE,
    ),
    Rule(
        cause="H7-rendezvous",
        title="the port by which the ranks meet is in use",
        patterns=(
            r"(?:EADDRINUSE|address already in use).*(?:TCPStore|rendezvous|port)",
            r"(?:DistNetworkError|TCPStore|server socket).*(?:EADDRINUSE|address already in use)",
        ),
        why="an engine of another service on this box, or one that was left behind, has the port",
        next_step="end the engine that was left behind (nvidia-smi names it), or give this one its "
        "own --master-port (VLLM_PORT on one box)",
        source="PyTorch 2.13 torch.distributed",
    ),
    Rule(
        cause="H27",
        title="custom all-reduce cannot share its buffers",
        patterns=(
            r"Failed: Cuda error \S{0,200}custom_all_reduce\.cuh:[0-9]{1,6} '(?P<what>[^']{1,80})'",
        ),
        why="the ranks exchange their buffers over CUDA IPC ({what}), which cannot take memory of "
        "expandable segments; the library then ends the worker without a traceback",
        next_step=_not_expandable,
        source="vllm-project/vllm#42609, #56193",
    ),
    Rule(
        cause="H10-peer",
        title="a rank lost its peer",
        patterns=(
            r"Connection (?:closed by|reset by) (?:remote )?peer",
            r"NCCL.*remote process exited",
            r"(?:recvValue|sendBytes|recvBytes) failed",
            r"Broken pipe",
            r"Socket Timeout|connection was likely closed",
        ),
        rank=Rank.LOSS,
        why="another rank ended first, and this one only noticed",
        next_step="look for the error of another rank, and with journalctl -k for what ended it",
        source="PyTorch 2.13 torch.distributed",
    ),
    Rule(
        cause="H10",
        title="NCCL failed",
        patterns=(r"NCCL error", r"ncclInvalidUsage|ncclSystemError|ncclInternalError"),
        rank=Rank.SYMPTOM,
        why="NCCL names its reason only when it is asked to",
        next_step="start once with NCCL_DEBUG=INFO in the unit: the 'NCCL WARN' line before the "
        "error is the cause",
        source="vLLM 0.32.0 pynccl_wrapper.py:448",
    ),
)
