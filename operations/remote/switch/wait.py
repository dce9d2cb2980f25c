"""Wait until a service answers, or until it is certain that it will not.

Runs on the box, standard library only, by hand too::

    python -m remote.switch.wait --unit vllm-minimax-m25.service --url http://127.0.0.1:8000 \\
        --model MiniMaxAI/MiniMax-M2.5 --timeout 600

Watches the unit and the HTTP endpoint together; the first verdict ends it. Exit status 0 is
ready; anything else comes with one line that says what happened, and the unit's last words.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request

PROPERTIES = "ActiveState,SubState,Result,NRestarts,ExecMainStatus,InvocationID,StartLimitBurst"
INTERVAL = 0.25
JOURNAL_LINES = 25


def unit_state(unit: str) -> dict[str, str]:
    """The unit's properties as systemd prints them."""
    shown = subprocess.run(
        ["systemctl", "show", "-p", PROPERTIES, "--", unit],
        capture_output=True,
        text=True,
        check=False,
    )
    return dict(line.split("=", 1) for line in shown.stdout.splitlines() if "=" in line)


def over(state: dict[str, str], first: dict[str, str]) -> str | None:
    """The verdict that the unit's state alone allows, or None while it may still come up.

    + state: now
    + first: as it was when the wait began
    """
    active, sub = state.get("ActiveState", ""), state.get("SubState", "")
    status, result = state.get("ExecMainStatus", ""), state.get("Result", "")
    if active == "failed":
        return f"crashed: the unit failed (result {result}, exit status {status})"
    if sub in {"auto-restart", "auto-restart-queued"} or (
        state.get("InvocationID") != first.get("InvocationID") and active != "inactive"
    ):
        # systemd calls the pause before a restart "activating", and a fresh try "active".
        if status == "0":
            return "exited with status 0 while starting: the engine died and its server hid it"
        return f"crashed while starting (exit status {status}); systemd is trying again"
    if active == "inactive":
        return f"stopped: the unit is inactive (result {result}, exit status {status})"
    return None


def served(url: str) -> list[str] | None:
    """Names of the models that answer there; None while nothing does."""
    try:
        # A proxy in the environment has no business between a box and itself.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{url}/v1/models", timeout=5) as answer:
            return [str(model["id"]) for model in json.load(answer)["data"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def wait(unit: str, url: str, model: str, timeout: float) -> tuple[int, str]:
    """Watch until the first verdict.

    + returns: exit status and the verdict's sentence
    """
    began = time.monotonic()
    first = unit_state(unit)
    said = ""
    while True:
        state = unit_state(unit)
        elapsed = time.monotonic() - began
        phase = f"{state.get('ActiveState')} ({state.get('SubState')})"
        if phase != said:
            said = phase
            print(f"wait: {elapsed:6.1f} s  {unit} {phase}", flush=True)
        verdict = over(state, first)
        if verdict:
            return 1, f"after {elapsed:.0f} s: {verdict}"
        names = served(url)
        if names is not None:
            if model in names:
                print(f"wait: {elapsed:6.1f} s  {url} answers for {model}", flush=True)
                return 0, f"ready after {elapsed:.1f} s"
            return 1, f"{url} answers, but for {', '.join(names) or 'no model'}: another listener"
        if elapsed > timeout:
            return 1, f"timeout: not ready after {elapsed:.0f} s, unit {phase}"
        time.sleep(INTERVAL)


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
    status, sentence = wait(arguments.unit, arguments.url, arguments.model, arguments.timeout)
    if status != 0:
        for line in journal(arguments.unit):
            print(f"journal: {line}")
    print(sentence, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
