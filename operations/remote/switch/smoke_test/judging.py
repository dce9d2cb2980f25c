"""Whether an answer of a model is one, and what is odd about it. Pure.

Garbage is worth a word and no more: what is odd for a person may be all that a model of random
weights has to say. No answer at all is another matter.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

ENDINGS = frozenset({"stop", "length", "tool_calls"})
"""Ways in which an answer ends that is complete or was cut where it was asked to be."""

THINK_TAG = re.compile(
    r"</?(?:\w+:)?think(?:ing)?(?::[^\s<>]{1,20})?>|</?seed:think>|◁/?think▷|\[/?THINK\]"
    r"|<\|(?:START|END)_THINKING\|>|<\|channel\|>"
)
"""Marks of reasoning as the models write them (vLLM 0.32.0 reasoning/*.py has these)."""

TOOL_MARKUP = re.compile(
    r"</?[|｜]?(?:[\w.-]+[:|])?tools?[_▁][^\s<>]{1,40}>"  # noqa: RUF001 - DeepSeek's own bars
    r"|functools\[|\[TOOL_CALLS\]|<function=\w|<\|python_tag\|>|<invoke\s+name="
)
"""Marks of tool calls as the models write them (vLLM 0.32.0 tool_parsers/*.py has these)."""

SHOWN = 60
"""Characters of an answer that are shown to a person."""

LONGEST_UNIT = 80
FEWEST = 4
SHORTEST = 8
MOST_OF_IT = 0.75


class UnusableError(Exception):
    """Nothing came back that could be called an answer; says what did."""


@dataclass(frozen=True)
class Asked:
    """What an answer is measured against.

    + model: the name that was asked for
    + reasoning: a reasoning parser is declared
    + tools: names of the tools that were offered; empty where none were
    """

    model: str
    reasoning: bool = False
    tools: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Judged:
    """An answer.

    + content: the text; empty without one
    + reasoning: what the reasoning parser took out of it
    + calls: tool calls, as people read them
    + tokens: that were generated; None where the answer does not say
    + warnings: what is odd about it, one sentence each
    """

    content: str
    reasoning: str
    calls: tuple[str, ...]
    tokens: int | None
    warnings: tuple[str, ...]

    @property
    def summary(self) -> str:
        """The answer in a few words."""
        parts = [shown(self.content)] if self.content.strip() else []
        if self.reasoning.strip():
            parts.append(f"{len(self.reasoning)} characters of reasoning")
        return " and ".join([*parts, *self.calls])


def judge(answer: Any, asked: Asked) -> Judged:
    """Read a chat completion.

    + answer: the JSON, whatever it is
    + raises: UnusableError where it holds no choice, or neither text, reasoning nor a tool call
    """
    choice = _choice(answer)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        message = {"content": choice.get("text")}
    content = _text(message.get("content"))
    # vLLM 0.32.0 says reasoning; other servers and versions say reasoning_content.
    reasoning = _text(message.get("reasoning")) or _text(message.get("reasoning_content"))
    calls, wrong_calls = _calls(message.get("tool_calls"), asked.tools)
    if not (content.strip() or reasoning.strip() or calls):
        raise UnusableError("an answer without text, reasoning or tool call")
    tokens = _tokens(answer)
    ending = choice.get("finish_reason")
    warnings = [
        *_about_ending(content, calls, ending),
        *_about_name(answer, asked.model),
        *(["usage.completion_tokens is 0 for an answer with text"] if tokens == 0 else []),
        *_about_text(content, "the answer", ending),
        *_about_text(reasoning, "the reasoning", ending),
        *_about_markup(content, asked),
        *wrong_calls,
    ]
    return Judged(content, reasoning, calls, tokens, tuple(warnings))


def repeated(text: str) -> str | None:
    """The short piece that a text repeats over most of its length; None for one that does not.

    The beginning may differ: a model that falls into a loop says something first.

    >>> repeated("!!!!!!!!!!!!"), repeated("So. and and and and and and"), repeated("Hello there!")
    ('!', 'and ', None)
    """
    text = text.strip()
    length = len(text)
    if length < SHORTEST:
        return None
    for period in range(1, min(LONGEST_UNIT, length // FEWEST) + 1):
        start = length - period
        while start > 0 and text[start - 1] == text[start - 1 + period]:
            start -= 1
        if length - start >= max(FEWEST * period, MOST_OF_IT * length):
            # Each turn of the piece will do: the one that starts with no space reads best.
            piece = text[start : start + period]
            return piece if period == 1 else _turned(piece)
    return None


def _turned(piece: str) -> str:
    cut = len(piece) - len(piece.lstrip())
    gap = re.search(r"\s+(?=\S)", piece)
    at = cut if cut or gap is None else gap.end()
    return piece[at:] + piece[:at]


def shown(text: str) -> str:
    """The beginning of a text, in quotes, its control characters escaped."""
    text = text.strip()
    return repr(text if len(text) <= SHOWN else text[: SHOWN - 1] + "…")


def _choice(answer: Any) -> Mapping[str, Any]:
    choices = answer.get("choices") if isinstance(answer, Mapping) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise UnusableError(f"JSON without choices: {shown(json.dumps(answer))}")
    return choices[0]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _tokens(answer: Mapping[str, Any]) -> int | None:
    usage = answer.get("usage")
    count = usage.get("completion_tokens") if isinstance(usage, Mapping) else None
    return count if isinstance(count, int) else None


def _calls(value: Any, offered: frozenset[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Tool calls in words, and what is wrong with them."""
    calls, wrong = [], []
    for call in value if isinstance(value, list) else []:
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping):
            continue
        name, arguments = _text(function.get("name")), function.get("arguments")
        calls.append(f"a call of {name}({_text(arguments)[:SHOWN]})")
        if name not in offered:
            wrong.append(f"a call of the tool {name!r}, which was not offered")
        try:
            is_object = isinstance(json.loads(_text(arguments)), dict)
        except ValueError:
            is_object = False
        if not is_object:
            wrong.append(
                f"the arguments of a tool call are not a JSON object: {arguments!r:.{SHOWN}}"
            )
    return tuple(calls), tuple(wrong)


def _about_ending(content: str, calls: tuple[str, ...], ending: Any) -> Iterator[str]:
    if not isinstance(ending, str) or ending not in ENDINGS:
        yield f"finish_reason is {ending!r}, not one of {', '.join(sorted(ENDINGS))}"
    if ending == "stop" and not content.strip() and not calls:
        yield "the answer ended by itself with reasoning alone: its text is empty"


def _about_name(answer: Mapping[str, Any], model: str) -> Iterator[str]:
    named = answer.get("model")
    if named != model:
        yield f"the answer names the model {named!r}, asked was {model!r}"


def _about_text(text: str, what: str, ending: Any) -> Iterator[str]:
    piece = repeated(text)
    if piece is not None:
        yield f"{what} repeats {piece!r} over and over: {shown(text)}"
    # A limit of tokens may cut through the bytes of one character.
    body = text.rstrip("\ufffd") if ending == "length" else text
    if "\ufffd" in body:
        yield f"{what} holds {body.count(chr(0xFFFD))} replacement characters: {shown(text)}"


def _about_markup(content: str, asked: Asked) -> Iterator[str]:
    if asked.reasoning and (tag := THINK_TAG.search(content)):
        yield (
            f"the text holds {tag.group()!r}: --reasoning-parser does not take this model's "
            "reasoning out of its answers"
        )
    if asked.tools and (mark := TOOL_MARKUP.search(content)):
        yield (
            f"the text holds {mark.group()!r}: --tool-call-parser does not read this model's "
            "tool calls"
        )
