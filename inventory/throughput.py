"""How fast a service is, as something to be measured: the load, and how much slower is too slow.

**Example:** ``Service(…, throughput=Throughput(concurrency=(1, 8, 64), regression=0.10))``
"""

import hashlib
import json
from typing import Annotated

from pydantic import Field, field_validator

from inventory.common.throughput import SINGLE, Load
from inventory.desired import Desired


class Throughput(Desired):
    """A benchmark of random prompts, once for each start of the service."""

    concurrency: tuple[Annotated[int, Field(ge=1, le=4096)], ...] = (1, 8, 32)
    """The rungs: streams at a time. More than ``engine.max_num_seqs`` measures the queue too. The
    single stream is measured even where it is not named."""
    input_tokens: int = Field(default=1024, ge=1, le=1_000_000)
    """Tokens of each prompt."""
    output_tokens: int = Field(default=256, ge=2, le=1_000_000)
    """Tokens of each answer: exactly as many, whatever the model would say."""
    requests: int = Field(default=4, ge=1, le=1000)
    """Requests of each stream, one after the other: a rung of 32 streams sends 128."""
    regression: float = Field(default=0.15, gt=0, lt=1)
    """Share of the earlier output tokens per second that a rung may lose before it is a failure:
    0.15 allows 85 tok/s after 100."""
    timeout_seconds: int = Field(default=1800, ge=10, le=86_400)
    """Longest time that the whole ladder may take, in seconds."""

    @field_validator("concurrency")
    @classmethod
    def _ascending(cls, concurrency: tuple[int, ...]) -> tuple[int, ...]:
        if list(concurrency) != sorted(set(concurrency)):
            raise ValueError("the rungs are to ascend, each once, such as (1, 8, 32)")
        return concurrency

    @property
    def rungs(self) -> tuple[int, ...]:
        """Streams at a time, the single stream first.

        >>> Throughput(concurrency=(8, 32)).rungs
        (1, 8, 32)
        """
        return tuple(sorted({SINGLE, *self.concurrency}))

    @property
    def load(self) -> Load:
        """What makes two measurements comparable, beside the rung."""
        return Load(self.input_tokens, self.output_tokens, self.requests)

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits for what is measured: another load, another measurement."""
        text = json.dumps([self.rungs, self.load.to_json()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]
