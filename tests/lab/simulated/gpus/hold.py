"""A process that holds GPU memory and does nothing else: another tenant, a leftover, a desktop.

``simulated-hold GPU GIB [SECONDS]``: the card by index or UUID. Prints a line once it holds the
memory, and gives it up when it ends.
"""

from __future__ import annotations

import sys
import time

from .books import Books
from .description import BOOKS, MIB, read_box, root


def main() -> int:
    """Hold until told to stop."""
    gpu, gib, seconds = [*sys.argv[1:], "inf"][:3]
    box = read_box()
    cards = box.visible(gpu) if box else ()
    if box is None or not cards:
        print(f"there is no GPU {gpu} here")
        return 1
    books = Books(root() / BOOKS, box.release_seconds)
    books.hold(cards[0].uuid, int(float(gib) * 1024 * MIB), beating=True)
    print(f"holding {gib} GiB of {cards[0].uuid}", flush=True)
    until = time.monotonic() + float(seconds)
    while time.monotonic() < until:
        books.beat(cards[0].uuid)
        time.sleep(0.1)
    return 0
