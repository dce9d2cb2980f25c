"""The phases of a start, and the lines by which each one ends.

Plain strings: a program on the box that streams phases can be given them as they are.
"""

from __future__ import annotations

from typing import Literal, NamedTuple


class Milestone(NamedTuple):
    """The end of a phase.

    + phase: that ends here
    + pattern: on the text of a log line, without time and process
    + which: several ranks print the line; the phase ends with the first or with the last
    """

    phase: str
    pattern: str
    which: Literal["first", "last"] = "first"


IMPORT, CONFIG, WORKERS, DISTRIBUTED = "import", "configuration", "workers", "distributed"
LOAD, COMPILE, PROFILE, KERNELS = "load", "compile", "profile", "kernels"
CAPTURE, WARMUP, SERVER, TEARDOWN = "capture", "warm-up", "server", "teardown"

MILESTONES: tuple[Milestone, ...] = (
    # Source of the texts: vLLM 0.32.0, and 0.19.1 where they differ.
    Milestone(IMPORT, r"non-default args: |.* version \d+\.\d+|vLLM API server version"),
    Milestone(CONFIG, r"Initializing a V1 LLM engine"),
    Milestone(WORKERS, r"world_size=\d+ rank=\d+"),
    Milestone(DISTRIBUTED, r"Starting to load model |Loading model from scratch"),
    Milestone(LOAD, r"Loading weights took |Model loading took ", "last"),
    Milestone(COMPILE, r"torch\.compile (?:took|takes) .* in total", "last"),
    Milestone(PROFILE, r"\w+ KV cache size: |# \w+ blocks: "),
    Milestone(KERNELS, r"JIT kernel warmup finished", "last"),
    Milestone(CAPTURE, r"Graph capturing finished", "last"),
    Milestone(WARMUP, r"init engine \(profile, create kv cache, warmup model\) took "),
    Milestone(SERVER, r"Application startup complete\."),
)

EAGER_SKIPS = frozenset({COMPILE, KERNELS, CAPTURE})
"""Phases that a start with ``--enforce-eager`` does not have."""

TITLES = {
    IMPORT: "start the process and import",
    CONFIG: "read the configuration, start the engine",
    WORKERS: "start the workers",
    DISTRIBUTED: "connect the ranks",
    LOAD: "load the weights",
    COMPILE: "compile",
    PROFILE: "profile, create the KV cache",
    KERNELS: "warm up kernels",
    CAPTURE: "capture CUDA graphs",
    WARMUP: "warm up the model",
    SERVER: "bring the server up",
    TEARDOWN: "fail and exit",
}
"""For people."""
