"""The local Hub as an object: two servers in threads of this process."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.lab.hub.control import OPERATIONS, Controls
from tests.lab.hub.handler import Handler, Server
from tests.lab.hub.origins import CdnOrigin, HubOrigin
from tests.lab.hub.repository import Library
from tests.lab.hub.state import State


class Hub(Controls):
    """A Hub over the repositories in a folder, ``<root>/<org>/<name>/``.

    + root: the folder; None for a Hub without repositories (see ``add_repo``)
    + host: address of both origins
    + port, cdn_port: 0 for any free port

    Example::

        with Hub(tmp_path) as hub:
            hub.inject(Fault("status", "cdn", "*-00002-of-*", status=503))
            subprocess.run([...], env={"HF_ENDPOINT": hub.url, ...})
            assert len(chosen(hub.requests(), where="cdn")) == 6
    """

    def __init__(
        self,
        root: Path | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        cdn_port: int = 0,
    ) -> None:
        self.state = State(Library(root))
        self._servers = [
            _server(HubOrigin, self.state, host, port),
            _server(CdnOrigin, self.state, host, cdn_port),
        ]
        self.state.hub_url, self.state.cdn_url = (
            f"http://{host}:{server.server_port}" for server in self._servers
        )
        self._threads: list[threading.Thread] = []

    @property
    def url(self) -> str:
        """The endpoint, for HF_ENDPOINT."""
        return self.state.hub_url

    @property
    def cdn_url(self) -> str:
        """The origin to which files in LFS are redirected."""
        return self.state.cdn_url

    def control(self, operation: str, **arguments: Any) -> Any:
        """Perform one operation here."""
        return OPERATIONS[operation](self.state, **arguments)

    def start(self) -> None:
        """Serve. Returns at once; the ports are open already."""
        for server in self._servers:
            thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """End both servers and every answer under way."""
        self.state.stopping.set()
        for server in self._servers:
            if self._threads:
                server.shutdown()
            server.server_close()
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def _server(origin: type[Handler], state: State, host: str, port: int) -> Server:
    bound = type(origin.__name__, (origin,), {"state": state})
    return Server((host, port), bound)
