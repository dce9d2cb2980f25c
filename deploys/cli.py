"""``boxwright``: questions that need no deploy."""

import argparse
import sys
from collections.abc import Sequence

from deploys.history import add_history_command
from inventory.fit.cli import add_fit_command


def main(arguments: Sequence[str] | None = None) -> int:
    """Answer one question."""
    parser = argparse.ArgumentParser(
        prog="boxwright", description="Converge a box with pyinfra; ask about it with this."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add_fit_command(commands)
    add_history_command(commands)
    parsed = parser.parse_args(arguments)
    return int(parsed.run(parsed))


if __name__ == "__main__":
    sys.exit(main())
