"""One finding about a start: what is wrong, how sure that is, and what to do."""

from __future__ import annotations

from pydantic import Field

from inventory.base import Frozen


class Verdict(Frozen):
    """A certainty stops a run before anything is touched; a prediction warns."""

    rule: str = Field(description="stable name, e.g. fp8-block")
    certain: bool = Field(description="arithmetic or the engine's own check; else a prediction")
    fails: bool = Field(default=False, description="a prediction that probably ends the start")
    wanted: str
    found: str = Field(description="with the arithmetic")
    why: str
    next_step: str = Field(description="the flag or the choice that resolves it")
    choices: tuple[str, ...] = Field(default=(), description="nearest legal settings")

    @property
    def text(self) -> str:
        """One line for people."""
        return f"[{self.rule}] {self.found}: {self.why}. {self.next_step}"
