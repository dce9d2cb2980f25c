"""One finding about a start: what is wrong, how sure that is, and what to do."""

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


def certainty(
    rule: str,
    wanted: str,
    found: str,
    why: str,
    next_step: str,
    *choices: str,
    certain: bool = True,
) -> Verdict:
    """A verdict from its four parts.

    + certain: false for a prediction
    """
    return Verdict(
        rule=rule,
        certain=certain,
        wanted=wanted,
        found=found,
        why=why,
        next_step=next_step,
        choices=choices,
    )


def prediction(
    rule: str, wanted: str, found: str, why: str, next_step: str, *choices: str
) -> Verdict:
    """A verdict that warns."""
    return certainty(rule, wanted, found, why, next_step, *choices, certain=False)
