"""The phases of a start: the lines by which each one ends, and seconds by phase."""

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple


class Milestone(NamedTuple):
    """The end of a phase.

    + phase: that ends here
    + pattern: on the text of a log line at level INFO, without time and process
    + which: several ranks print the line; the phase ends with the first or with the last
    """

    phase: str
    pattern: re.Pattern[str]
    which: Literal["first", "last"] = "first"


IMPORT, CONFIG, WORKERS, DISTRIBUTED = "import", "configuration", "workers", "distributed"
LOAD, COMPILE, PROFILE, KERNELS = "load", "compile", "profile", "kernels"
CAPTURE, WARMUP, SERVER, TEARDOWN = "capture", "warm-up", "server", "teardown"
ANSWER = "answer"
"""What follows the last phase: the server says that it is up, and should answer."""

STARTS_LOADING = re.compile(r"Starting to load model |Loading model from scratch")
LOADED = re.compile(r"Loading weights took |Model loading took ")
COMPILED = re.compile(r"torch\.compile (?:took|takes) .* in total")

MILESTONES: tuple[Milestone, ...] = (
    # Source of the texts: vLLM 0.32.0, and 0.19.1 where they differ.
    Milestone(
        IMPORT, re.compile(r"non-default args: |.* version \d+\.\d+|vLLM API server version")
    ),
    Milestone(CONFIG, re.compile(r"Initializing a V1 LLM engine")),
    Milestone(WORKERS, re.compile(r"world_size=\d+ rank=\d+")),
    Milestone(DISTRIBUTED, STARTS_LOADING),
    Milestone(LOAD, LOADED, "last"),
    Milestone(COMPILE, COMPILED, "last"),
    Milestone(PROFILE, re.compile(r"\w+ KV cache size: |# \w+ blocks: ")),
    Milestone(KERNELS, re.compile(r"JIT kernel warmup finished"), "last"),
    Milestone(CAPTURE, re.compile(r"Graph capturing finished"), "last"),
    Milestone(WARMUP, re.compile(r"init engine \(profile, create kv cache, warmup model\) took ")),
    Milestone(SERVER, re.compile(r"Application startup complete\.")),
)
PHASES = tuple(stone.phase for stone in MILESTONES)
"""In their order."""
EAGER_SKIPS = frozenset({COMPILE, KERNELS, CAPTURE})
"""Phases that a start with ``--enforce-eager`` does not have."""

NCCL_PATIENCE = 120.0
"""Seconds between NCCL's first line and the next one; 3 to 6 in recorded starts of 4 and 8 GPUs."""
LOADING_PATIENCE = 240.0
"""Seconds of silence up to the end of loading: eight times the slowest recorded shard, 31 s
(vllm-project/vllm#38476)."""
ANSWER_PATIENCE = 60.0
"""Seconds from the line that it is up to the first answer, which takes milliseconds."""
OTHER_PATIENCE = 900.0
"""Seconds of silence in any other phase: compiling and tuning of kernels print nothing for
minutes."""
PATIENCE: Mapping[str, float] = {
    IMPORT: LOADING_PATIENCE,
    WORKERS: NCCL_PATIENCE,
    DISTRIBUTED: NCCL_PATIENCE,
    LOAD: LOADING_PATIENCE,
    ANSWER: ANSWER_PATIENCE,
}
"""Seconds of silence that are still normal by phase, where no earlier start was recorded."""

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


class PhaseEnds:
    """When each phase ended, from the lines that were taken in."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}

    def take(self, text: str, at: float) -> str | None:
        """Take in the next line.

        + text: a message at level INFO
        + at: its time in seconds, by any clock
        + returns: the phase that ends with it; a later rank may end it once more
        """
        ended = None
        for stone in MILESTONES:
            if stone.pattern.match(text) and (stone.which == "last" or stone.phase not in self.at):
                self.at[stone.phase] = at
                ended = stone.phase
        return ended

    def split(self, began: float, until: float) -> tuple[dict[str, float], float]:
        """Split a start into its phases, which follow each other without a gap. A phase that
        printed nothing is missing, and its time is in the next one.

        + until: the end of what is split
        + returns: seconds of each phase that has ended, in order, and when the last one did
        """
        parts: dict[str, float] = {}
        at = began
        for phase in PHASES:
            if phase in self.at:
                reached = max(at, min(self.at[phase], until))
                parts[phase] = reached - at
                at = reached
        return parts, at


def following(phase: str) -> tuple[str, ...]:
    """The phases behind one."""
    return PHASES[PHASES.index(phase) + 1 :]


def seconds_left(phase: str, spent: float, before: Mapping[str, float]) -> float | None:
    """Seconds until the server is up, if each phase takes as long as it did the last time.

    + phase: the one that is under way, and `spent` its seconds so far
    + before: seconds by phase of an earlier start
    + returns: None if the earlier start has none of these phases

    >>> seconds_left("configuration", 5, {"import": 10, "configuration": 18, "load": 60})
    73.0
    """
    if phase not in PHASES or not before.keys() & set(PHASES):
        return None
    rest = max(0.0, before.get(phase, 0.0) - spent)
    return rest + sum(before.get(name, 0.0) for name in following(phase))
