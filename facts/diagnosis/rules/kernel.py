"""H23, H19: what the kernel says. Everything that the engine prints afterwards follows from it."""

from facts.diagnosis.rule import Evidence, Number, Numbers, Rank, Rule

_HARDWARE = {
    48: "an uncorrectable memory error",
    62: "an internal controller halt",
    63: "a row of memory to be remapped",
    64: "a row of memory that could not be remapped",
    74: "an NVLink error",
    79: "a GPU that has fallen off the bus",
    92: "too many correctable memory errors",
    94: "a contained memory error",
    95: "an uncontained memory error",
    119: "a GPU firmware (GSP) that does not answer",
    120: "a GPU firmware (GSP) error",
    136: "an NVLink link that failed",
    140: "an unrecovered memory error",
    143: "a GPU that did not initialise",
}
"""Xids that mean hardware, firmware or the bus (NVIDIA Xid errors). Others, as 13, 31, 43 and 45,
come from the program that runs, whose own error is then the cause."""

_XID = r"NVRM: Xid \(PCI:(?P<pci>[0-9A-Fa-f:.]{{4,20}})\): (?P<xid>{})\b"
_OTHERS = "|".join(str(xid) for xid in _HARDWARE if xid != 79)  # noqa: PLR2004
_OOM = (
    r"(?:Memory cgroup out|Out) of memory: Killed process (?P<pid>[0-9]{1,10}) "
    r"\((?P<what>[^)]{1,60})\)",
)
_NAMES = ("vllm", "python", "pt_main", "ray::", "engine", "worker")


def _left(evidence: Evidence) -> dict[str, Number | None]:
    """GPUs that later starts of the same chain still saw."""
    before = "number of available GPUs ("
    for start in evidence.scene.later:
        for line in start.lines:
            _, found, rest = line.text.partition(before)
            digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
            if found and digits:
                return {"gpus_left": int(digits[:9])}
    return {}


def _power_cycle(_: Evidence, n: Numbers) -> str:
    later = (
        f"; the later 'World size is larger' ({n['gpus_left']} GPUs) is a consequence"
        if "gpus_left" in n
        else ""
    )
    return (
        f"power-cycle the host (a reboot may not be enough), check power, riser and slot of GPU "
        f"{n.get('pci', '')}, and boot with pcie_aspm=off pcie_port_pm=off{later}"
    )


def _meaning(_: Evidence, n: Numbers) -> str:
    return f"the kernel reports {_HARDWARE.get(int(n['xid']), 'a GPU fault')} on GPU {n['pci']}"


def _ours(evidence: Evidence) -> bool:
    """Whether the OOM killer's victim belongs to the service."""
    pid, name = int(evidence.match["pid"]), evidence.match["what"].lower()
    return pid in evidence.scene.start.pids or name.startswith(_NAMES)


def _memory(evidence: Evidence, _: Numbers) -> str:
    cgroup = "cgroup" in evidence.line.text
    room = (
        "raise MemoryMax= of the unit"
        if cgroup
        else "free memory of the host (another service, a smaller page-cache warm-up, "
        "--swap-space and --cpu-offload-gb lower or 0)"
    )
    return f"{room}, and OOMScoreAdjust=-500 in the unit so that others are taken first"


KERNEL: tuple[Rule, ...] = (
    Rule(
        cause="H23",
        title="a GPU fell off the bus",
        patterns=(
            _XID.format(79),
            r"NVRM: GPU (?:at PCI:)?(?P<pci>[0-9A-Fa-f:.]{4,20}?)(?:\.0)?: "
            r"GPU has fallen off the bus",
        ),
        rank=Rank.HOST,
        why="the host lost the GPU: power, riser or slot, or power saving of the PCIe link",
        next_step=_power_cycle,
        source="local-inference-lab/rtx6kpro hardware; NVIDIA Xid errors",
        numbers=_left,
    ),
    Rule(
        cause="H23-xid",
        title="the GPU reports a hardware fault",
        patterns=(_XID.format(f"(?:{_OTHERS})"),),
        rank=Rank.HOST,
        why=_meaning,
        next_step="nvidia-smi -q -d ECC,ROW_REMAPPER for GPU {pci}; reset it (nvidia-smi -r, "
        "without users) or reboot; replace it if Xid {xid} comes again",
        source="NVIDIA Xid errors",
    ),
    Rule(
        cause="H19",
        title="the host ran out of memory",
        patterns=_OOM,
        when=_ours,
        rank=Rank.HOST,
        why="the kernel's OOM killer ended {what} (pid {pid}); the engine only sees it gone",
        next_step=_memory,
        source="Linux mm/oom_kill.c",
    ),
    Rule(
        cause="H19",
        title="the host ran out of memory",
        patterns=(
            r"A process of this unit has been killed by the OOM killer",
            r"Failed with result 'oom-kill'",
        ),
        rank=Rank.HOST,
        why="the OOM killer ended a process of the unit; the engine only sees that it is gone",
        next_step=_memory,
        source="systemd.service(5), OOMPolicy=",
    ),
)
