"""Every measured constant of the memory prediction, with its source and its regime.

All figures are GiB a rank unless said otherwise. Cases are those of
tests/fixtures/fit/cases.json; NOTES.md beside it explains how they were collected. ``S`` is
max_num_seqs, ``V`` the padded vocabulary, ``T`` max_num_batched_tokens.
"""

from typing import NamedTuple

from inventory.fit.memory.span import Guess
from inventory.fit.settings.settings import Release

HALF_PRECISION = 2
"""Bytes of a number in 16 bit."""
LATER: Release = (0, 21, 0)
"""Since when CUDA graphs, and what desktop cards hold outside torch, are smaller."""


class SamplerRegime(NamedTuple):
    """What the profile run's sampler allocates: ``per_logit * S * V + base``."""

    name: str
    since: Release
    runner: str
    sampler: str
    per_logit: Guess
    """Bytes."""
    base: float
    keeps_workspace: bool = False
    """Whether the experts' workspace stays allocated while the sampler runs."""

    @property
    def measured_on(self) -> str:
        """The starts that the constants come from."""
        return _MEASURED_ON[self.name]


SAMPLERS: tuple[SamplerRegime, ...] = (
    # The first whose runner and sampler match and whose version is not newer wins.
    SamplerRegime("V2 runner", (0, 30, 0), "V2", "", Guess(6.2, 6.5, 38.5), 0.0, True),
    SamplerRegime(
        "V2 runner, native sampler", (0, 0, 0), "V2", "native", Guess(12.0, 13.8, 16.0), 0.0, True
    ),
    SamplerRegime("V2 runner, FlashInfer", (0, 0, 0), "V2", "", Guess(6.0, 6.4, 7.0), 0.0, True),
    SamplerRegime("V1 runner from 0.21", (0, 21, 0), "V1", "", Guess(6.0, 14.44, 16.0), 0.06, True),
    SamplerRegime(
        "V1 runner 0.17 to 0.20", (0, 17, 0), "V1", "", Guess(14.2, 14.44, 15.6), 0.06, True
    ),
    SamplerRegime(
        "V1 runner to 0.16, FlashInfer",
        (0, 0, 0),
        "V1",
        "flashinfer",
        Guess(8.0, 10.0, 12.0),
        0.06,
        False,
    ),
    SamplerRegime("V1 runner to 0.16", (0, 0, 0), "V1", "", Guess(37.6, 38.2, 39.6), 0.02),
    SamplerRegime("V0 runner", (0, 0, 0), "V0", "", Guess(2.0, 6.0, 12.0), 0.0),
)
_MEASURED_ON = {
    "V2 runner": "a80-llama8-v2 (0.31) prints 1.44 with an unknown estimate inside: between 6.5 "
    "and 39",
    "V2 runner, native sampler": "sm75-q15-v2: 0.50 GiB at 256 x 151,936",
    "V2 runner, FlashInfer": "q36-h100-v2, wsl-q05-v2: the profile run skips top-k and top-p",
    "V1 runner from 0.21": "p6-70b-* 3.23 GiB with graphs (RTX PRO 6000); l40s-q7-v022",
    "V1 runner 0.17 to 0.20": "40 starts of 0.19 on H100 (pv-*), pvv-q14-0.17.0: 5.64 fell to 2.23 "
    "from 0.16 to 0.17",
    "V1 runner to 0.16, FlashInfer": "dl-* on A100 80 GB",
    "V1 runner to 0.16": "pl-*, pvv-* on H100, 24g-q8fp8, h200-q3next-tp2: the sort of the native "
    "sampler",
    "V0 runner": "v0-3090-*: the forward pass at full length decides",
}

VOCABULARIES = (32_000, 120_000, 262_208)
"""Least, likely and most, where the vocabulary is not said: Llama 2 to Gemma 3."""

WARMUP_V2 = Guess(18.1, 20.0, 38.5)
"""Bytes for each of S*V that the V2 runner's warm-up takes after the KV cache is allocated.
q36-h100-v2 failed with 4.29 GiB left at 1024 x 248,320, so it needs more than 18.1; with every
sampling feature on it can need what the native sampler does."""

RESERVE_BASE, RESERVE_PER_LOGIT = 0.15, 2.4
"""Left free besides the warm-up itself: 0.15 GiB and 2.4 bytes for each of S*V, 0.45 GiB at
1024 x 128,256. Nine starts on cards of 44 GiB and more worked with 0.50 to 0.87 left, one failed
at 0.40 (pv-oss20-tp2-u95); a 6 GiB card worked with 0.08 to 0.15."""

RESERVE_MXFP4 = 0.7
"""Share of the sampler's peak that MXFP4 experts leave unusable between their buffers:
pv-oss20-tp1-fail failed with 1.61 GiB left, 1.78 of it reserved but not allocated."""

FORWARD_WIDTHS, FORWARD_HIDDENS = 3, 3
"""A forward pass holds, for each token, gate, up and their product, and three hidden vectors:
86 + 25 kB a token for Llama-8B is the slope between v0-3090-20k (2.42) and -29k (3.34)."""

FORWARD_BASE = 0.06
WORKSPACE_TOKENS = 32_768
"""Tokens beyond which fused experts work in chunks (VLLM_FUSED_MOE_CHUNK_SIZE)."""

SPARSE_FORWARD = Guess(5.0, 6.2, 7.5)
"""Forward pass of sparse MLA with an indexer at T = 8192, whatever S: glm52-tp4ep 6.31,
r6-glm51-* 6.93 to 7.11 with 0.75 of it not torch."""

SPARSE_LINEAR_FORWARD = Guess(3.5, 4.0, 7.5)
"""The same where most layers are linear (GLM-5.3): h200-glm53f-tp8 4.04, r6-glm53f-tp3 3.81."""

HYBRID_VISION_PER_1024 = 0.345
"""What linear attention models with an image encoder add for each 1,024 of T, up to 16,384:
q35-5090-a 0.69 at 2,048, 5090wsl-q36-fail 2.76 at 8,192, gb10-q36-mnbt65k."""
HYBRID_VISION_MOST_TOKENS = 16_384

VISION_PROFILE = Guess(0.0, 0.15, 0.3)
"""What other image encoders add: 0.09 to 0.24 (pv-gemma3-*, pv-ms31*, pv-kvl-tp2)."""

NOT_TORCH_SINGLE: tuple[tuple[Release, Guess], ...] = (
    ((0, 21, 0), Guess(0.1, 0.35, 0.9)),  # a80-llama8-v2 0.26, sm75 0.27, l40s-q7-v022, wsl 0.56
    ((0, 18, 0), Guess(0.02, 0.25, 0.46)),  # pv-*: 0.24 to 0.27, granite 0.46
    ((0, 0, 0), Guess(0.02, 0.13, 0.2)),  # pl-*, pvv-*: 0.13; 24g-q8fp8: 0.02
)
"""CUDA context, kernels and libraries on one GPU."""

NOT_TORCH_SINGLE_GRAPHICS = Guess(0.0, 0.03, 0.15)
"""The same on cards of capability 8.6 and 8.9 before 0.18: 24g-q8fp8 0.02, 48g-qwen8 0.03."""

NOT_TORCH_NVLINK: tuple[tuple[Release, Guess], ...] = (
    ((0, 21, 0), Guess(0.6, 1.0, 2.2)),  # q36-h100-v2 0.60, glm52 0.95, h200-glm53f-tp8 1.74
    ((0, 17, 0), Guess(1.9, 2.1, 2.25)),  # pv-*-tp2/4: FlashInfer's all-reduce workspace
    ((0, 12, 0), Guess(0.4, 0.6, 2.2)),  # kk-*: 2.56 in all at 0.15
    ((0, 0, 0), Guess(0.4, 0.55, 1.4)),  # pl-* 0.55; h200-q3next-tp2 1.38
)
"""The same on several GPUs with NVLink: NCCL's buffers and the all-reduce workspace."""

NOT_TORCH_PCIE: tuple[tuple[Release, Guess], ...] = (
    ((0, 21, 0), Guess(0.4, 1.2, 2.8)),  # r6d-mimo-*, r6-glm53f-tp3 (forks)
    ((0, 0, 0), Guess(0.1, 0.25, 0.9)),  # l40s-70bawq-tp2, l40s-q235-tp4dp2: 0.2
)
"""The same over PCIe: custom all-reduce is off beyond two GPUs."""

NOT_TORCH_PCIE_BLACKWELL = Guess(0.4, 0.76, 1.2)
"""The same on RTX PRO 6000 before 0.21: r6-m25-tp4, 8.10 GiB less the sampler's 7.34."""

NOT_TORCH_UNIFIED = Guess(-2.5, 4.6, 7.6)
"""GB10: the host's page cache counts (gb10-q38-768k 4.64, gb10-q38next 4.25, gb10x3-* 7.5), and
if it shrinks meanwhile the difference is negative (gb10-q30: -2.1)."""

NOT_TORCH_STAGE = Guess(0.05, 0.07, 0.3)
"""A pipeline stage of one GPU (pv-l8-pp2, -pp4)."""

USED_BEFORE_SINGLE = Guess(0.35, 0.48, 0.6)
USED_BEFORE_NVLINK = Guess(0.6, 1.55, 2.2)
USED_BEFORE_NVLINK_EXPERTS = Guess(1.3, 2.0, 2.5)
USED_BEFORE_PCIE = Guess(0.5, 0.87, 1.1)
USED_BEFORE_UNIFIED = Guess(2.0, 9.0, 17.0)
"""Used before the budget is taken, out of the share that utilisation leaves: CUDA context and
NCCL. H100 0.51 alone, 1.53 TP2/4, 2.0 with experts; L40S TP4 0.5, 6000D TP4 0.83, RTX PRO 6000
PP2 0.9, GB200 2.47; GB10 7 to 17 (NOTES.md section 4, rule 6)."""

GRAPHS_BASE, GRAPHS_PER_LAYER, GRAPHS_EXPERTS, GRAPHS_LINEAR = 0.36, 0.0175, 0.4, 1.0
"""CUDA graphs of 51 sizes: 0.5 (8 layers) to 1.79 (80 layers) in pv-*; mixtures of experts take
0.1 to 0.7 more, linear attention 1.0 (q36-h100-v2 2.04, h200-q3next-tp2 2.37)."""
GRAPHS_FULL_SIZES = 51
GRAPHS_LATER = 0.5
"""Share of it from 0.21 on: a80-llama8-v2 0.23, l40s-q7-v022 0.31, wsl-q05-v2 0.37."""
GRAPHS_SPREAD = Guess(0.5, 1.0, 1.9)
ESTIMATE_TO_ACTUAL = Guess(0.7, 1.1, 4.0)
"""The engine's estimate over the truth: 0.7 to 2.2 on 52 H100 starts, 3 to 5.8 on others."""

ACTIVATION_SPREAD = Guess(0.97, 1.0, 1.06)
UNMEASURED_SPREAD = Guess(0.7, 1.0, 1.6)
"""How far an activation peak may be off, inside the regimes above and outside them."""

RANK_SPREAD = Guess(0.0, 0.02, 0.1)
"""How much less the fullest rank has than the nominal one: 0.01 to 0.1 on 8 H100; the blocks of
all ranks follow it (NOTES.md section 2). Several GPUs only."""

RANK_SPREAD_HOSTS = Guess(0.0, 0.27, 0.4)
"""The same over several hosts: 0.26 and 0.27 on GB10."""
