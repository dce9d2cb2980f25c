"""Harmless texts that look like trouble, or only cost speed. Never a cause."""

from facts.diagnosis.rule import Rank, Rule
from inventory.common.engine_log import HEARTBEAT

HARMLESS: tuple[Rule, ...] = (
    Rule(
        cause="A5-chat-refused",
        title="a chat request was refused",
        patterns=(r"\"POST /v1/chat/completions HTTP/[0-9.]{1,4}\" 400",),
        rank=Rank.HARMLESS,
        why="the server answers, but not this request: often the tokenizer has no chat template, "
        "which only the answer itself says",
        next_step="read the answer's message; --chat-template with the model's template, if that "
        "is what is missing",
        source="run of vLLM 0.32.0 on CPU",
    ),
    Rule(
        cause="P3-refined",
        title="FP8 blocks were refined to fit the tensor parallel size",
        patterns=(
            r"FP8 MoE block scales refined from \[.{1,30}\] to \[(?P<refined_block>[0-9]{1,6}), "
            r".{1,20}\] to fit the TP-sharded intermediate size (?P<size>[0-9]{1,9})",
        ),
        rank=Rank.HARMLESS,
        why="smaller blocks run a little slower; before 0.32 this ended the start (P3)",
        next_step="nothing, or a tensor parallel size that keeps whole blocks",
        source="vLLM 0.32.0 fused_moe/oracle/fp8.py:382",
    ),
    Rule(
        cause="H6",
        title="the GPUs differ",
        patterns=(r"Detected different devices in the system",),
        rank=Rank.HARMLESS,
        warns=True,
        why="CUDA numbers them by speed unless told otherwise, so numbers can mean other cards",
        next_step="CUDA_DEVICE_ORDER=PCI_BUS_ID in the unit",
        source="vLLM 0.32.0 platforms/cuda.py:989",
    ),
    Rule(
        cause="H12",
        title="custom all-reduce is off on more than two PCIe GPUs",
        patterns=(
            r"Custom allreduce is disabled because it's not supported on more than two PCIe",
        ),
        rank=Rank.HARMLESS,
        warns=True,
        why="expected without NVLink",
        next_step="nothing; --disable-custom-all-reduce silences it",
        source="vLLM 0.32.0 custom_all_reduce.py:272",
    ),
    Rule(
        cause="H12b",
        title="custom all-reduce is off: no peer-to-peer",
        patterns=(r"your platform lacks GPU P2P capability or P2P test failed",),
        rank=Rank.HARMLESS,
        warns=True,
        why="peer-to-peer over PCIe is missing or was found broken, at times by a result cached "
        "before the host changed",
        next_step="remove gpu_p2p_access_cache_for_*.json from vLLM's cache folder and start once "
        "with VLLM_SKIP_P2P_CHECK=0; nvidia-smi -q -d MEMORY shows BAR1: 256 MiB of it means that "
        "Resizable BAR is off in the firmware",
        source="vLLM 0.32.0 custom_all_reduce.py:287",
    ),
    Rule(
        cause="H15-degraded",
        title="FlashInfer works without its precompiled kernels",
        patterns=(
            r"FlashInfer kernels are disabled",
            r"FlashInfer's precompiled kernels are missing or do not match",
        ),
        rank=Rank.HARMLESS,
        warns=True,
        why="other kernels are used, or the first start compiles for several minutes",
        next_step="install flashinfer-cubin and flashinfer-jit-cache in the version of "
        "flashinfer-python",
        source="vLLM 0.32.0 utils/flashinfer.py:95, 144",
    ),
    Rule(
        cause="H13-limit",
        title="the limit of open files is below what vLLM wants",
        patterns=(r"Found ulimit of (?P<nofile>[0-9]{1,9}) and failed to automatically increase",),
        rank=Rank.HARMLESS,
        warns=True,
        why="enough for one GPU, too little for many",
        next_step="LimitNOFILE=1048576 in the unit",
        source="vLLM 0.32.0 utils/system_utils.py:255",
    ),
    Rule(
        cause="P9-allowed",
        title="the context is longer than the model's, by permission",
        patterns=(r"User-specified max_model_len \([0-9]{1,12}\) is greater than the derived",),
        rank=Rank.HARMLESS,
        warns=True,
        why="VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 turns the error into this warning",
        next_step="a --max-model-len that the model was made for",
        source="vLLM 0.32.0 config/model.py:2660",
    ),
    Rule(
        cause="D9-model-info",
        title="what vLLM learned about the model could not be kept",
        patterns=(r"Error saving model info cache",),
        rank=Rank.HARMLESS,
        why="HOME or VLLM_CACHE_ROOT is not writable: harmless here, fatal where kernels are "
        "compiled",
        next_step="set HOME and VLLM_CACHE_ROOT to a folder that the service's user can write",
        source="vLLM 0.32.0 model_executor/models/registry.py:1041",
    ),
    Rule(
        cause="H11-waiting",
        title="a worker was busy for minutes",
        patterns=(HEARTBEAT,),
        rank=Rank.HARMLESS,
        why="cold compiling, as a rule",
        next_step="keep the compile cache (VLLM_CACHE_ROOT) on a disk that survives",
        source="vLLM 0.32.0 shm_broadcast.py:871",
    ),
    Rule(
        cause="A12-config",
        title="the experts' kernel is not tuned for this GPU",
        patterns=(r"Using default MoE config\. Performance might be sub-optimal",),
        rank=Rank.HARMLESS,
        warns=True,
        why="no tuned configuration is shipped for this GPU and these shapes",
        next_step="nothing, or tune one (benchmark_moe.py)",
        source="vllm-project/vllm#39183",
    ),
)
