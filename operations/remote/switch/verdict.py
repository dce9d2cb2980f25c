"""How a step of the switch ends, and the switch. The controller reads these words too."""

from __future__ import annotations

OUTCOME = "/run/boxwright/switch/outcome.json"
"""How the last switch on this box ended, for the controller."""

READY = "ready"
"""Kind of outcome: all is done."""
UNFINISHED = "unfinished"
"""Kind of outcome: the new service answers, and what follows that failed. Nothing goes back."""
GPU_HELD = "gpu-held"
"""Kind of outcome: memory that somebody else holds, or that does not come back."""


class SwitchError(Exception):
    """A step failed.

    + kind: of the wait: crashed, crash-looping, start-limit, exited-0, hung, wrong-listener,
      wrong-model, wrong-length (the right name, with another context length than declared),
      stopped, timeout; of the release: gpu-held; of the smoke test: chat; of systemctl: systemd;
      broken (an error of the program itself)
    + sentence: what was seen, for people
    """

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind
        self.sentence = sentence
