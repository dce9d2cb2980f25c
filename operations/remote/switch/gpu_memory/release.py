"""Wait until the GPUs of a service are free, or say who holds them.

Runs on the box, standard library only, by hand too::

    python -m operations.remote.switch.gpu_memory.release --gpus GPU-1111…,GPU-2222… \\
        --units vllm-old.service --timeout 60

GPU memory comes back some time after the process that held it is gone, and an engine that starts
in between fails. Free is what two readings in a row say: no process, and no more memory in use than
an idle card shows. What a unit of ours left behind is ended; a stranger never is.
"""

import argparse
import sys
import time
from collections.abc import Callable

from inventory.common.switch import GPU_HELD
from operations.remote.switch.errors import SwitchError
from operations.remote.switch.gpu_memory.holders import phrase
from operations.remote.switch.gpu_memory.leftovers import end_leftovers, is_over
from operations.remote.switch.gpu_memory.occupancy import (
    Sample,
    foreign,
    look,
    reasons,
    unowned,
)

LOOK_INTERVAL = 0.2
LEAVING_SECONDS = 3.0
"""Seconds that a stranger may take to leave: it may be on its way out already."""

TOOL_SECONDS = 60.0
"""Seconds that nvidia-smi may take where nothing else is waiting."""

LOST = (
    "memory without a process is held from another pid namespace (a container's, or the host's), "
    "or lost until the driver resets the card (nvidia-smi --gpu-reset -i UUID) or the box reboots"
)

QUIET_READINGS = 2
"""One reading may fall between two holders."""


def strangers(gpus: frozenset[str], ours: frozenset[str]) -> tuple[str, ...]:
    """Processes on these GPUs that belong to none of our units: one phrase each.

    For a look before anything is stopped. Only what two readings show counts. While one of ours
    runs, memory that stays without a process counts too: a process of another container.

    + gpus: UUIDs
    + ours: units, with their endings
    + raises: SwitchError(gpu-held) where a card or the driver does not answer: such a card cannot
      be seen to be free later, and a service that runs on it still does
    """
    if not gpus:
        return ()
    began = time.monotonic()
    first = last = look(gpus, TOOL_SECONDS)
    # A driver that hung once hangs again.
    if not first.free and time.monotonic() - began < TOOL_SECONDS:
        time.sleep(LOOK_INTERVAL)
        last = look(gpus, TOOL_SECONDS)
    if last.unknown:
        raise SwitchError(GPU_HELD, f"the GPUs cannot be looked at: {'; '.join(last.unknown)}")
    running = not all(map(is_over, ours))
    before = {holder.key for holder in first.holders}
    found = [
        phrase(holder, last.cards, time.time())
        for holder in foreign(last, ours, running)
        if holder.key in before
    ]
    while running and last.numbered and last.unowned and time.monotonic() - began < LEAVING_SECONDS:
        time.sleep(LOOK_INTERVAL)
        last = look(gpus, TOOL_SECONDS)
    if running and last.numbered and last.unowned:
        found.append(unowned(last))
    return tuple(found)


def release(
    gpus: frozenset[str],
    ours: frozenset[str],
    timeout: float,
    say: Callable[[str], None],
    *,
    grace: float = LEAVING_SECONDS,
) -> None:
    """Watch until the GPUs are free.

    + gpus: UUIDs
    + ours: units, with their endings; processes of those that do not run any more are ended
    + timeout: seconds
    + say: prints one line
    + grace: seconds that a stranger is given to leave by itself
    + raises: SwitchError(gpu-held): who holds which GPU, or which one does not answer
    """
    began = time.monotonic()
    quiet, said, ended = 0, "", set[int]()
    seen: dict[object, float] = {}
    while gpus:
        sample = look(gpus, max(1.0, timeout - (time.monotonic() - began)))
        now = time.monotonic()
        clock = f"release: {now - began:6.1f} s  "
        quiet = quiet + 1 if sample.free else 0
        if quiet == QUIET_READINGS:
            say(f"{clock}{_count(len(gpus))} free")
            return
        if not quiet:
            why = reasons(sample)
            if _gist(sample) != said:
                said = _gist(sample)
                for reason in why:
                    say(f"{clock}{reason}")
            for sentence in end_leftovers(ours, sample.holders, ended):
                say(f"{clock}{sentence}")
            # One that is not in /proc may be ours: a process that is being torn down was listed
            # without its name for 0.2 s on an H200.
            alien = [h for h in foreign(sample, ours, running=False) if not h.is_hidden]
            seen = {holder.key: seen.get(holder.key, now) for holder in alien}
            stayed = [h for h in alien if now > seen[h.key] and now - seen[h.key] >= grace]
            if stayed:
                words = "; ".join(phrase(h, sample.cards, time.time()) for h in stayed)
                raise SwitchError(GPU_HELD, f"{words}: not one of ours, and left alone")
            if now - began >= timeout:
                words = "; ".join([*why, LOST] if sample.unowned else why)
                raise SwitchError(GPU_HELD, f"GPUs not free after {now - began:.0f} s: {words}")
        time.sleep(LOOK_INTERVAL)


def _count(gpus: int) -> str:
    return "1 GPU is" if gpus == 1 else f"{gpus} GPUs are"


def _gist(sample: Sample) -> str:
    """What is worth a new line when it changes; amounts are not."""
    keys = sorted(str(holder.key) for holder in sample.holders)
    return "|".join([*keys, *sample.unknown, "+" if sample.unowned else ""])


def main() -> int:
    """Parse the arguments and wait, or look."""
    parser = argparse.ArgumentParser(description="Wait until the GPUs of a service are free.")
    parser.add_argument("--gpus", required=True, help="UUIDs, separated by commas")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds (default: 60)")
    parser.add_argument(
        "--units", default="", help="our units, separated by commas: what they left is ended"
    )
    parser.add_argument(
        "--look", action="store_true", help="only name the processes of others; change nothing"
    )
    arguments = parser.parse_args()
    gpus = frozenset(filter(None, arguments.gpus.split(",")))
    ours = frozenset(filter(None, arguments.units.split(",")))
    try:
        if arguments.look:
            found = strangers(gpus, ours)
            print("\n".join(found) if found else "no process of others", flush=True)
            return 1 if found else 0
        release(gpus, ours, arguments.timeout, lambda line: print(line, flush=True))
    except SwitchError as error:
        print(error.sentence, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
