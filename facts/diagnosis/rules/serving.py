"""H21, H25: the engine died of a fault in its own code, at a request or on the way there."""

from facts.diagnosis.rule import Evidence, Number, Numbers, Rank, Rule

ALWAYS = (
    "Restart=always in the unit, because the server exits with status 0 when its engine dies and "
    "Restart=on-failure does not see that"
)
CANARY = "ask for one token before calling it ready (/health says 200 all the while)"

_FAULT = (
    r"CUDA error: (?P<what>an illegal memory access was encountered|unspecified launch failure|"
    r"misaligned address|device-side assert triggered|unknown error|an illegal instruction was "
    r"encountered|invalid program counter|the launch timed out and was terminated)",
    r"(?:hipError|HIP error: )(?P<what>\w[\w ]{3,60})",
)


def _answered(evidence: Evidence) -> bool:
    """Whether this start had answered a request that runs the model."""
    return any(
        '"POST /v1/' in line.text and line.text.rstrip().endswith("200 OK")
        for line in evidence.scene.start.lines
    )


def _failed_requests(evidence: Evidence) -> dict[str, Number | None]:
    count = sum(
        '"POST /' in line.text and " 500 " in line.text for line in evidence.scene.start.lines
    )
    return {"requests_failed": count or None}


def _faulting_kernel(evidence: Evidence, _: Numbers) -> str:
    spare = evidence.scene.hints.environment.get("PYTORCH_CUDA_ALLOC_CONF", "")
    expandable = (
        "unset PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True first, which breaks CUDA IPC; "
        if "expandable_segments" in spare
        else ""
    )
    restart = f"{ALWAYS}; then " if evidence.scene.serving else ""
    return (
        f"{restart}{expandable}find the faulting kernel: another --attention-backend, another "
        "--moe-backend (triton), a newer vLLM; CUDA_LAUNCH_BLOCKING=1 makes the traceback true"
    )


SERVING: tuple[Rule, ...] = (
    Rule(
        cause="H23-ecc",
        title="the GPU's memory is damaged",
        patterns=(r"uncorrectable ECC error",),
        why="the GPU found an error that it could not correct",
        next_step="nvidia-smi -q -d ECC,ROW_REMAPPER; reset the GPU or reboot, and replace it if "
        "it happens again",
        source="NVIDIA GPU memory error management",
    ),
    Rule(
        cause="H25",
        title="a kernel fault killed the engine while it was serving",
        patterns=_FAULT,
        when=lambda evidence: evidence.scene.serving and _answered(evidence),
        rank=Rank.SYMPTOM,
        why="the engine had answered before; a fault in one GPU kernel ended it ({what}), and the "
        "server exited as if all were well",
        next_step=_faulting_kernel,
        source="vllm-project/vllm#48966, #52178",
        numbers=_failed_requests,
    ),
    Rule(
        cause="H21",
        title="a kernel fault killed the engine before its first answer",
        patterns=_FAULT,
        rank=Rank.SYMPTOM,
        why="the first use of a GPU kernel ended the engine ({what})",
        next_step=_faulting_kernel,
        source="vLLM 0.32.0 v1/engine/core.py:1512",
    ),
    Rule(
        cause="H21",
        title="the engine dies on the first request",
        patterns=(r"assert self\.scoring_func == [\"']softmax[\"']",),
        why="the MoE router of the CPU supports softmax scoring only, which nothing checks before "
        "the first token, although /health says 200",
        next_step=f"this model cannot be served on this platform as it is (its config.json asks "
        f"for another scoring_func); {CANARY}; {ALWAYS}",
        source="run of vLLM 0.32.0 on CPU",
    ),
    Rule(
        cause="H21",
        title="a worker did not answer in time",
        patterns=(r"RPC call to (?P<what>\w{1,60}) timed out",),
        why="a kernel or a collective of the ranks hangs, or the first one takes longer to compile "
        "than the limit allows",
        next_step="VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS is the limit: raise it if kernels are still "
        f"compiled at the first request, else look for what hangs (NCCL, /dev/shm); {ALWAYS}",
        source="vLLM 0.32.0 v1/executor/multiproc_executor.py:442",
    ),
)
