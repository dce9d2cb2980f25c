"""Services that are known to work, each figure with its source.

Sources, by short name: *recipes* is vllm-project/recipes (read 2026-08-21); *rtx6kpro* is
local-inference-lab/rtx6kpro (read 2026-05-17), measurements on RTX PRO 6000 Blackwell boxes
without NVLink; *story* is the field log of the switch that boxwright was made for (eight
RTX PRO 6000, two NUMA nodes of four).

Copy one with ``model_copy``, or override its fields for a host (inventory/override.py).
"""

from inventory.engine import Vllm
from inventory.service import Model, Placement, Service

MINIMAX_M25 = Service(
    name="vllm-minimax-m25",
    model=Model(repo="MiniMaxAI/MiniMax-M2.5"),
    engine=Vllm(
        version="0.32.0",  # recipes: at least 0.20.2
        # Story: the engine's default of 1024 ran out of memory in the sampler warm-up (1024
        # sequences x vocabulary of 200,064); 256 started.
        max_num_seqs=256,
        tool_call_parser="minimax_m2",  # recipes
        reasoning_parser="minimax_m2",  # recipes; rtx6kpro saw minimax_m2_append_think loop
        trust_remote_code=True,  # recipes
    ),
    # 230.1 GB of FP8 weights are 53.7 GiB on each of four GPUs (rtx6kpro logged 53.75); expert
    # blocks of 128 divide 1536 / 4 = 384 and not 1536 / 8 = 192 (recipes pins four).
    placement=Placement(gpus=4, within="numa-node"),
    # rtx6kpro: LL takes a 32 KB all-reduce from 48 to 26 us; SYS lets GPUs of two host bridges
    # use peer-to-peer.
    environment={"NCCL_PROTO": "LL", "NCCL_P2P_LEVEL": "SYS"},
    load_seconds=300,  # story: 75 s from NVMe; vllm-project/vllm#39610: 250 s for the same size
)
"""MiniMax-M2.5 FP8 on four GPUs of one NUMA node: latency for one or a few users."""

MINIMAX_M25_THROUGHPUT = Service(
    name="vllm-minimax-m25-throughput",
    model=MINIMAX_M25.model,
    engine=Vllm(
        version="0.32.0",
        # recipes: "TP8 only with expert parallelism", because whole experts need no split of 192.
        enable_expert_parallel=True,
        max_num_seqs=512,  # recipes, for cards with more memory left than four GPUs leave
        tool_call_parser="minimax_m2",
        reasoning_parser="minimax_m2",
        trust_remote_code=True,
    ),
    placement=Placement(gpus=8, within="host"),
    environment=MINIMAX_M25.environment,
    load_seconds=300,
)
"""MiniMax-M2.5 FP8 on all eight GPUs with expert parallelism: throughput for many users."""

KIMI_K25 = Service(
    name="vllm-kimi-k25",
    model=Model(repo="nvidia/Kimi-K2.5-NVFP4"),
    engine=Vllm(
        version="0.32.0",  # recipes: at least 0.19.1
        max_num_seqs=64,  # the published starts of this model on eight 80 GB cards used 64
        kv_cache_dtype="fp8",  # recipes and rtx6kpro: 449,000 tokens against 190,000 in bf16
        gpu_memory_utilization=0.93,  # rtx6kpro: 0.93 to 0.95; 0.95 left NCCL without buffers
        tool_call_parser="kimi_k2",  # recipes
        reasoning_parser="kimi_k2",  # recipes
        trust_remote_code=True,  # recipes
        # rtx6kpro: the MLA back end that works on compute capability 12.0; recipes: the vision
        # encoder is small, so each rank keeps a copy.
        extra_args=("--attention-backend", "TRITON_MLA", "--mm-encoder-tp-mode", "data"),
    ),
    placement=Placement(gpus=8, within="host"),  # 540 GB of weights (story) need all eight
    environment={"NCCL_PROTO": "LL", "NCCL_P2P_LEVEL": "SYS", "VLLM_USE_FLASHINFER_MOE_FP4": "1"},
    load_seconds=900,  # story: 13 minutes
)
"""Kimi-K2.5 in NVFP4 on all eight GPUs."""

KIMI_K25_INT4 = Service(
    name="vllm-kimi-k25-int4",
    model=Model(repo="moonshotai/Kimi-K2.5"),
    engine=Vllm(
        version="0.32.0",
        max_num_seqs=64,
        kv_cache_dtype="fp8",
        gpu_memory_utilization=0.93,
        tool_call_parser="kimi_k2",
        reasoning_parser="kimi_k2",
        trust_remote_code=True,
        extra_args=("--attention-backend", "TRITON_MLA", "--mm-encoder-tp-mode", "data"),
    ),
    # recipes: about 595 GB on disk, 714 GB of GPU memory as their minimum; eight cards of 95 GiB
    # hold 760 GiB.
    placement=Placement(gpus=8, within="host"),
    environment={"NCCL_PROTO": "LL", "NCCL_P2P_LEVEL": "SYS"},
    load_seconds=900,
)
"""Kimi-K2.5 as published (INT4 experts) on all eight GPUs."""

CATALOGUE: tuple[Service, ...] = (
    MINIMAX_M25,
    MINIMAX_M25_THROUGHPUT,
    KIMI_K25,
    KIMI_K25_INT4,
)
"""All of the above, for tools that look a service up by name."""
