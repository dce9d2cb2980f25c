"""How a step of the switch fails."""


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
