"""Wait until a service answers, or until it is certain that it will not.

Runs on the box, standard library only, by hand too::

    python -m operations.remote.switch.waiting.wait --unit vllm-minimax-m25.service \\
        --url http://127.0.0.1:8000 --model MiniMaxAI/MiniMax-M2.5 --timeout 600

Watches the unit, the journal of its start and the HTTP endpoint together, and says what happens as
it happens; the first verdict ends it. A start that began before is read from its beginning. Exit
status 0 is ready; anything else comes with one line that says what happened, and the unit's last
words.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from inventory.common.switch import Target
from operations.remote.switch.errors import SwitchError
from operations.remote.switch.waiting.expectation import Expectation, Ready, Say
from operations.remote.switch.waiting.probe import Probe
from operations.remote.switch.waiting.watch import Watch

__all__ = ["Expectation", "Ready", "wait"]

JOURNAL_LINES = 25


def wait(target: Target, expect: Expectation, say: Say) -> Ready:
    """Watch until the first verdict.

    + say: prints one line
    + raises: SwitchError with the verdict, unless it is "ready"
    """
    with Probe(target) as probe:
        watch = Watch(target, expect, say, probe)
        try:
            return watch.run()
        finally:
            watch.close()


def journal(unit: str) -> list[str]:
    """The unit's last words."""
    shown = subprocess.run(
        ["journalctl", "-u", unit, "-n", str(JOURNAL_LINES), "-o", "cat", "--no-pager"],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return shown.stdout.splitlines()


def main() -> int:
    """Parse the arguments and wait."""
    parser = argparse.ArgumentParser(description="Wait until a service answers.")
    parser.add_argument("--unit", required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--timeout", type=float, required=True, help="seconds")
    arguments = parser.parse_args()
    target = Target(arguments.unit, arguments.url, arguments.model)
    expect = Expectation(timeout=arguments.timeout)
    try:
        ready = wait(target, expect, lambda line: print(line, flush=True))
    except SwitchError as error:
        for line in journal(arguments.unit):
            print(f"journal: {line}")
        print(f"{error.kind}: {error.sentence}", flush=True)
        return 1
    print(f"ready after {ready.seconds:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
