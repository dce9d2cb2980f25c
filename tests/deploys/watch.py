"""Ask a box all the time who serves, as its clients would, and keep the answers."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from itertools import pairwise
from types import TracebackType
from typing import NamedTuple, Self

INTERVAL = 0.05
PATIENCE = 30.0
"""Seconds for one answer: on a busy machine it is slow, and one that has ended refuses at once."""


class Look(NamedTuple):
    """One question.

    + at: when it was asked (time.time)
    + model: which model answered, or None
    + done: when the answer, or its failure, was there (time.time)
    """

    at: float
    model: str | None
    done: float


class Watch:
    """Asks in a thread from ``with`` to its end; inside of it the first look is there.

    + url: base URL of the service
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.looks: list[Look] = []
        self._over = threading.Event()
        self._looked = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._looked.wait(PATIENCE * 2)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _ask(self) -> None:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        while not self._over.wait(INTERVAL):
            at = time.time()
            try:
                with opener.open(f"{self.url}/v1/models", timeout=PATIENCE) as answer:
                    model = str(json.load(answer)["data"][0]["id"])
            except (OSError, ValueError, KeyError, IndexError):
                model = None
            self.looks.append(Look(at, model, time.time()))
            self._looked.set()

    def gap(self) -> tuple[float, float]:
        """The longest time without an answer: last answer before it, first one after it."""
        answered = [look.at for look in self.looks if look.model]
        return max(pairwise(answered), key=lambda pair: pair[1] - pair[0])

    def answered_until(self, moment: float) -> bool:
        """Whether every question that was over before a moment was answered.

        One that was still open then may have met what came next.
        """
        early = [look for look in self.looks if look.done < moment]
        return bool(early) and all(look.model for look in early)
