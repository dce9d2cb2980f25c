"""How a step of the switch ends."""

from __future__ import annotations


class SwitchError(Exception):
    """A step failed.

    + kind: one word or two: crashed, crash-looping, start-limit, exited-0, hung, wrong-listener,
      wrong-model, stopped, timeout (of the wait); gpu-held (of the release); chat; systemd
    + sentence: what was seen, for people
    """

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind
        self.sentence = sentence
