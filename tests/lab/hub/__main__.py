"""Run the local Hub: ``python -m tests.lab.hub --root DIR --port 8080 --cdn-port 8081``.

Prints one line, ``hub <url> cdn <url>``, once it serves. SIGTERM or Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import signal
from pathlib import Path

from tests.lab.hub.server import Hub


def main() -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(prog="tests.lab.hub", description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="folder of <org>/<name>/ folders")
    parser.add_argument("--host", default="127.0.0.1", help="address of both origins")
    parser.add_argument("--port", type=int, default=0, help="port of the Hub; 0 for any")
    parser.add_argument("--cdn-port", type=int, default=0, help="port of the CDN; 0 for any")
    parser.add_argument("--throttle", type=int, default=0, help="bytes per second; 0 for no limit")
    parser.add_argument("--page", type=int, default=1000, help="entries in a page of a listing")
    parser.add_argument(
        "--gated",
        action="append",
        default=[],
        metavar="ORG/NAME=TOKEN",
        help="a repository whose files need this token; may be repeated",
    )
    arguments = parser.parse_args()
    stop = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)
    gated: dict[str, list[str]] = {}
    for rule in arguments.gated:
        repo, _, token = rule.partition("=")
        gated.setdefault(repo, []).append(token)
    with Hub(arguments.root, arguments.host, arguments.port, arguments.cdn_port) as hub:
        hub.configure(throttle=arguments.throttle, page=arguments.page)
        hub.allow(gated=gated)
        print(f"hub {hub.url} cdn {hub.cdn_url}", flush=True)
        signal.sigwait(stop)


if __name__ == "__main__":
    main()
