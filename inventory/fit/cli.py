"""``boxwright fit MODEL --gpus 4x"RTX PRO 6000"``: what fits, without a box.

The model is a service of the catalogue, a known repository, or a folder with its config.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inventory.base import Unknown
from inventory.errors import MISTAKE, BoxwrightError, DesiredStateError
from inventory.fit.answer.derive import Parallel, parallel_sizes
from inventory.fit.fit import Fit, fit
from inventory.fit.legality.flags import Help, read_help
from inventory.fit.model.architecture import Architecture
from inventory.fit.model.known import KNOWN, architecture_in, known_architecture
from inventory.fit.settings.card import parse_cards
from inventory.fit.settings.settings import NEWEST_READ, EngineSettings, release, shown

if TYPE_CHECKING:
    from inventory.service import Service

STARTS, FAILS = 0, 1
"""Exit codes: nothing known speaks against a start; the start fails."""


def add_fit_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
) -> argparse.ArgumentParser:
    """Adds ``fit`` to a program's commands.

    + commands: from ``ArgumentParser.add_subparsers``; the chosen command's ``run`` is set as
      default ``run``
    """
    parser = commands.add_parser(
        "fit", help="does a model fit on GPUs, and with which settings", description=__doc__
    )
    parser.add_argument("model", help="service of the catalogue, repository, or local folder")
    parser.add_argument("--gpus", required=True, help='4x"RTX PRO 6000", 8xH200, 2x48GiB')
    parser.add_argument(
        "--engine", help=f"vLLM's version (default: the service's, or {shown(NEWEST_READ)})"
    )
    for name, short in (("tensor", "tp"), ("pipeline", "pp"), ("data", "dp")):
        flag = f"--{name}-parallel-size"
        parser.add_argument(flag, f"-{short}", type=_positive, dest=short)
    parser.add_argument("--decode-context-parallel-size", type=_positive, dest="dcp")
    parser.add_argument("--enable-expert-parallel", "-ep", action="store_true", dest="ep")
    parser.add_argument("--gpu-memory-utilization", type=float)
    for name in ("--max-model-len", "--max-num-seqs", "--max-num-batched-tokens"):
        parser.add_argument(name, type=_positive)
    parser.add_argument("--kv-cache-dtype")
    parser.add_argument("--enforce-eager", action="store_true")
    parser.add_argument("--engine-help", type=Path, metavar="FILE", help="its --help=all, saved")
    parser.add_argument("--json", action="store_true", help="the whole answer as JSON")
    parser.set_defaults(run=run)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Answers one question on standard output; mistakes go to standard error."""
    try:
        answer = ask(arguments)
    except BoxwrightError as error:
        print(error.message, file=sys.stderr)
        return MISTAKE
    if arguments.json:
        print(json.dumps(answer.to_json(), indent=2, ensure_ascii=False))
    else:
        _show(answer)
    return FAILS if answer.outcome == "fails" else STARTS


def ask(arguments: argparse.Namespace) -> Fit:
    """The answer to a parsed command line.

    + raises: DesiredStateError where model, GPUs or settings are not understood
    """
    cards = parse_cards(arguments.gpus)
    architecture, settings = _question(arguments.model)
    asked = _overridden(settings, arguments)
    choice = None
    if arguments.tp is None and (settings is None or asked.gpus != len(cards)):
        asked, choice = _sized(asked, architecture, len(cards))
    return fit(architecture, asked, cards, engine_help=_help(arguments.engine_help), choice=choice)


def _question(model: str) -> tuple[Architecture, EngineSettings | None]:
    """The architecture, and the settings where the catalogue has the service."""
    folder = Path(model)
    if folder.is_dir():
        return architecture_in(folder), None
    service = _catalogued(model)
    if service is not None:
        from inventory.fit.settings.settings_of import settings_of  # noqa: PLC0415

        return known_architecture(service.model.repo), settings_of(service)
    return known_architecture(model), None


def _catalogued(name: str) -> Service | None:
    # The catalogue's settings belong to its services; a repository's name asks without them.
    from inventory.catalogue import CATALOGUE  # noqa: PLC0415

    if name in KNOWN:
        return None
    return next((service for service in CATALOGUE if name == service.name), None)


def _overridden(settings: EngineSettings | None, arguments: argparse.Namespace) -> EngineSettings:
    """The catalogue's settings with those of the command line over them."""
    given = {
        name: value
        for name, value in vars(arguments).items()
        if name in EngineSettings.model_fields and value is not None and value is not False
    }
    if "engine" in given or settings is None:
        given["engine"] = arguments.engine or shown(NEWEST_READ)
    utilisation = given.get("gpu_memory_utilization")
    if utilisation is not None and not 0 < utilisation <= 1:
        raise DesiredStateError(
            wanted=f"--gpu-memory-utilization {utilisation}",
            found="not a share between 0 and 1",
            why="the engine refuses it",
            next_step="give a share such as 0.9",
        )
    return EngineSettings.model_validate((settings or EngineSettings()).model_dump() | given)


def _sized(
    settings: EngineSettings, architecture: Architecture, gpus: int
) -> tuple[EngineSettings, Parallel | None]:
    """The settings over so many GPUs, and how the sizes were chosen."""
    share = max(1, gpus // (settings.pp * settings.dp))
    found = parallel_sizes(architecture, settings, release(settings.engine), share)
    if isinstance(found, Unknown):
        return settings.model_copy(update={"tp": share}), None
    sizes = {"tp": found.tp, "pp": settings.pp * found.pp, "ep": settings.ep or found.ep}
    return settings.model_copy(update=sizes), found


def _help(path: Path | None) -> Help | None:
    if path is None:
        return None
    try:
        found = read_help(path.read_text(errors="replace"))
    except OSError as error:
        found = Unknown(unknown=str(error))
    if isinstance(found, Unknown):
        raise DesiredStateError(
            wanted=f"the engine's flags from {path}",
            found=found.unknown,
            why="flags are compared with the installed engine's own list",
            next_step="save it with: vllm serve --help=all > FILE",
        )
    return found


def _show(answer: Fit) -> None:
    # rich is slow to import and only needed here.
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(soft_wrap=True, highlight=False)
    colours = {"REFUSED": "bold red", "likely to fail": "red", "note": "yellow"}
    for line in answer.explain().splitlines():
        style = next((s for word, s in colours.items() if line.startswith(f"{word} [")), "")
        console.print(Text(line, style=style))


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value
