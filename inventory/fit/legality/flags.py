"""Flags against the help text of the installed engine."""

import re
from collections.abc import Iterable

from pydantic import Field

from inventory.base import Frozen, Unknown
from inventory.fit.answer.verdict import Verdict, certainty

_FLAG = re.compile(r"(?<![\w-])(--?[A-Za-z][\w-]*)")
_CHOICES = re.compile(r"(--[a-z][\w-]*)[ =]+\{([^{}]{1,20000})\}")
_LEAST_FLAGS = 20
"""A help text of the engine has hundreds of flags; fewer are an error message."""


class Help(Frozen):
    """What the installed engine's ``vllm serve --help=all`` tells."""

    flags: frozenset[str] = Field(description="every flag, with its dashes")
    choices: dict[str, tuple[str, ...]] = Field(description="allowed values, where listed")


def read_help(text: str) -> Help | Unknown:
    """The flags of a help or usage text.

    + text: standard output (or the usage on standard error) of the engine's own ``--help=all``

    >>> read_help("Traceback (most recent call last)").unknown
    'no help text: 0 flags in it'
    """
    # argparse breaks long words over lines; a break inside braces is not a space.
    flat = re.sub(r"\s+", " ", text)
    flags = frozenset(found.group(1) for found in _FLAG.finditer(flat))
    if len(flags) < _LEAST_FLAGS:
        return Unknown(unknown=f"no help text: {len(flags)} flags in it")
    choices = {
        found.group(1): tuple(word.strip() for word in found.group(2).split(",") if word.strip())
        for found in _CHOICES.finditer(flat)
    }
    return Help(flags=flags, choices=choices)


def words_of(arguments: tuple[str, ...]) -> tuple[tuple[str, str | None], ...]:
    """Flags and their values of a command line.

    >>> words_of(("--max_num_seqs=64", "-tp", "4", "--enforce-eager"))
    (('--max-num-seqs', '64'), ('-tp', '4'), ('--enforce-eager', None))
    """
    found: list[tuple[str, str | None]] = []
    for word in arguments:
        if re.match(r"--?[A-Za-z]", word):
            name, equals, value = word.partition("=")
            # The engine reads an underscore in a flag as a dash.
            name = name.replace("_", "-") if name.startswith("--") else name
            found.append((name, value if equals else None))
        elif found and found[-1][1] is None:
            found[-1] = (found[-1][0], word)
    return tuple(found)


def flag_verdicts(arguments: tuple[str, ...], engine: Help, version: str) -> tuple[Verdict, ...]:
    """Flags that the installed engine does not know, and values that it does not allow."""
    verdicts: list[Verdict] = []
    words = words_of(arguments)
    plugged = any(name.endswith("-parser-plugin") for name, _value in words)
    for name, value in words:
        # Dotted forms (--compilation-config.cudagraph_mode) belong to the flag before the dot.
        plain = name.split(".", 1)[0]
        if not plain.startswith("--") and plain not in engine.flags:
            # A usage text lists one spelling a flag: a short one may exist all the same.
            continue
        if plain not in engine.flags and not _abbreviates(plain, engine):
            close = near(plain, engine.flags)
            verdicts.append(
                certainty(
                    "flag",
                    f"the flag {name}",
                    f"{name} is not among the {len(engine.flags)} flags of vLLM {version}",
                    "the engine ends at once with 'unrecognized arguments'",
                    f"did you mean {', '.join(close)}?" if close else "leave it out",
                    *close,
                )
            )
            continue
        allowed = engine.choices.get(plain, ())
        if allowed and value is not None and value not in allowed:
            close = near(value, allowed)
            verdicts.append(
                certainty(
                    _rule_of(plain),
                    f"{plain} {value}",
                    f"{value} is not among its values in vLLM {version}",
                    "the engine refuses it at the start",
                    f"choose one of {', '.join(close or allowed[:12])}",
                    *(close or allowed[:12]),
                    certain=not (plugged and plain.endswith("-parser")),
                )
            )
    return tuple(verdicts)


def _rule_of(flag: str) -> str:
    return "parser" if flag.endswith("-parser") else "flag-value"


def _abbreviates(name: str, engine: Help) -> bool:
    """argparse takes an unambiguous beginning of a flag."""
    return name.startswith("--") and sum(flag.startswith(name) for flag in engine.flags) == 1


def near(word: str, among: Iterable[str], cutoff: float = 0.7) -> tuple[str, ...]:
    """Up to three words that are like one."""
    # Imported here: only a mistake needs it, and every start of the program would pay.
    from difflib import get_close_matches  # noqa: PLC0415

    return tuple(get_close_matches(word, sorted(among), n=3, cutoff=cutoff))
