"""The demo: a freshly booted box that serves the old model comes to serve the new one.

``make demo`` runs it. Everything in it is real but the old service: sshd, systemd, the Hub's
client, vLLM on the box's CPUs, and a tiny MiniMax-M2 with random weights.
"""

from __future__ import annotations

import sys
import time

from tests.lab import old_service
from tests.lab.__main__ import up
from tests.lab.base import Lab, LabError
from tests.lab.box import Box
from tests.lab.converge import Run, pyinfra
from tests.lab.desired import add_stub_engine

COMMAND = ("deploys/minimax.py", "-y")
NAME = "demo"


def say(text: str) -> None:
    """A headline."""
    print(f"\n=== {text}", flush=True)


def converge() -> tuple[float, Run]:
    """Run the command that the README shows, as it prints.

    + returns: seconds, and what it did
    """
    say(f"pyinfra inventory.py {' '.join(COMMAND)}")
    began = time.monotonic()
    run = pyinfra(*COMMAND, box=NAME, echo=True)
    if run.status != 0:
        raise LabError(f"pyinfra ended with {run.status}.")
    return time.monotonic() - began, run


def units(box: Box) -> str:
    """The two services as systemd sees them."""
    return box.run(
        'for u in vllm-kimi-k25 vllm-minimax-m25; do echo "$u: $(systemctl is-active $u), '
        '$(systemctl is-enabled $u 2>/dev/null || :)"; done',
        user="root",
    ).stdout.strip()


def story(lab: Lab) -> None:
    """Boot, converge, converge again."""
    began = time.monotonic()
    up(lab)
    add_stub_engine(lab)
    say("A fresh box that serves the old model")
    box = Box(NAME, lab, user="root", systemd=True, simulated=False)
    box.boot()
    box.rebuild()
    old_service.install(box)
    print(units(box))
    seconds, _ = converge()
    say("The same command again")
    again, second = converge()
    if second.changed:
        raise LabError(f"The second run changed something: {', '.join(second.changed)}.")
    say("What serves now")
    print(units(box))
    say(
        f"Converged in {seconds:.0f} s; again in {again:.1f} s with 0 changes; "
        f"{time.monotonic() - began:.0f} s in all. `python -m tests.lab down` stops the box."
    )


def main() -> int:
    """Tell the story; 1 with a sentence where it cannot be told."""
    try:
        story(Lab())
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
