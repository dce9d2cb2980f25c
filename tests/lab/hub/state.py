"""What the two origins of the local Hub share."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from dataclasses import dataclass, field

from tests.lab.hub.access import Access
from tests.lab.hub.faults import FaultBook
from tests.lab.hub.log import RequestLog
from tests.lab.hub.repository import Library


class Throttle:
    """A line of limited width that all downloads share.

    + rate: bytes per second; 0 for no limit
    """

    def __init__(self, rate: int = 0) -> None:
        self.rate = rate
        self._lock = threading.Lock()
        self._free_at = 0.0

    def chunk(self, most: int) -> int:
        """Bytes to send at once so that the flow stays even."""
        return min(most, max(1, self.rate // 20)) if self.rate else most

    def delay(self, size: int) -> float:
        """Seconds to wait before sending ``size`` bytes. Takes the place in the line."""
        if not self.rate:
            return 0.0
        with self._lock:
            now = time.monotonic()
            start = max(now, self._free_at)
            self._free_at = start + size / self.rate
            return start - now


@dataclass
class State:
    """Everything that a request may look at.

    + hub_url, cdn_url: the origins, set once the ports are bound
    + page: entries in one page of a listing
    + url_lifetime: seconds for which a signed URL of the CDN is good
    """

    library: Library
    faults: FaultBook = field(default_factory=FaultBook)
    log: RequestLog = field(default_factory=RequestLog)
    access: Access = field(default_factory=Access)
    throttle: Throttle = field(default_factory=Throttle)
    page: int = 1000
    url_lifetime: float = 3600.0
    hub_url: str = ""
    cdn_url: str = ""
    stopping: threading.Event = field(default_factory=threading.Event)
    secret: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)

    def signature(self, target: str, expires: str) -> str:
        """The signature of a CDN URL."""
        return hashlib.sha256(f"{self.secret}\n{target}\n{expires}".encode()).hexdigest()
