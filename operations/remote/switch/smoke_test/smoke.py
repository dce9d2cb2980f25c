"""Ask a served model for one chat completion, and judge whether it is one.

Runs on the box, standard library only, by hand too::

    python -m operations.remote.switch.smoke_test.smoke --url http://127.0.0.1:8000 \\
        --model MiniMaxAI/MiniMax-M2.5 --tools --reasoning

Health checks say 200 before the first real request has run a kernel; this is that request.
"""

import argparse
import http.client
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from inventory.common.models import REFUSED
from inventory.common.switch import Target
from operations.remote.http import Reply, ask
from operations.remote.switch.errors import SwitchError
from operations.remote.switch.smoke_test.judging import Asked, Judged, UnusableError, judge, shown

SECONDS = 120.0
"""The first request may compile kernels."""

PROMPT = "Say hello in one sentence."
TOOL_PROMPT = "What is the weather in Paris right now? Use the tool."
TOKENS = 64
TOOL_TOKENS = 256
"""A reasoning model thinks before it calls."""

TOOL: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The present weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}

Say = Callable[[str], None]


def smoke(
    target: Target, say: Say, *, tools: bool, reasoning: bool, seconds: float = SECONDS
) -> tuple[str, ...]:
    """Chat with a service that is ready.

    + say: prints a line for each request
    + tools: a tool-call parser is declared: one request offers a tool
    + reasoning: a reasoning parser is declared
    + seconds: for each request
    + returns: warnings: what is odd about the answers, one sentence each
    + raises: SwitchError of kind ``chat`` where nothing usable comes back
    """
    asked = Asked(target.model, reasoning)
    post = partial(_post, target, seconds=seconds)
    body = {"messages": [{"role": "user", "content": PROMPT}], "max_tokens": TOKENS}
    answer = post("/v1/chat/completions", body)
    if answer.status in REFUSED:
        return (
            f"{target.url} wants an API key, which is not at hand here: the server lives, and "
            "what it answers was not looked at",
        )
    if _is_without_template(answer):
        plain = post("/v1/completions", {"prompt": PROMPT, "max_tokens": TOKENS})
        told = _tell(plain, asked, say, "completion")
        return (
            "the model has no chat template: /v1/completions answers, /v1/chat/completions does "
            "not (--chat-template gives one)",
            *told.warnings,
        )
    first = _tell(answer, asked, say, "chat")
    if not tools:
        return first.warnings
    body = {
        "messages": [{"role": "user", "content": TOOL_PROMPT}],
        "max_tokens": TOOL_TOKENS,
        "tools": [TOOL],
        "tool_choice": "auto",
    }
    answer = post("/v1/chat/completions", body)
    _require_tools(answer)
    asked = Asked(target.model, reasoning, frozenset({TOOL["function"]["name"]}))
    second = _tell(answer, asked, say, "tools")
    return tuple(dict.fromkeys((*first.warnings, *second.warnings)))


def _post(target: Target, path: str, body: Mapping[str, Any], *, seconds: float) -> Reply:
    try:
        whole = {"model": target.model, "temperature": 0, **body}
        return ask(f"{target.url.rstrip('/')}{path}", whole, seconds=seconds)
    except TimeoutError:
        raise SwitchError(
            "chat",
            f"no answer from {path} within {seconds:.0f} s: the server takes requests and the "
            "engine does not work on them",
        ) from None
    except (OSError, http.client.HTTPException) as error:
        raise SwitchError(
            "chat",
            f"the connection ended during a request to {path} ({type(error).__name__}: {error}): "
            f"the server died of it or does not speak HTTP; journalctl -u {target.unit}",
        ) from None


def _is_without_template(answer: Reply) -> bool:
    """Whether the model is one that only completes text (vLLM 0.32.0 renderers/hf.py:798)."""
    return answer.status == http.HTTPStatus.BAD_REQUEST and "chat template" in answer.said


def _require_tools(answer: Reply) -> None:
    """Tell a missing or failing tool-call parser from other errors.

    Messages: vLLM 0.32.0 renderers/online_renderer.py:268.
    """
    if answer.status == http.HTTPStatus.OK:
        return
    if "tool choice requires" in answer.said:
        remedy = "set engine.tool_call_parser: the flags --enable-auto-tool-choice and "
        remedy += "--tool-call-parser follow from it"
    else:
        remedy = "chat without a tool works: see whether --tool-call-parser is the one for this "
        remedy += "model, and whether its chat template knows tools"
    raise SwitchError(
        "chat", f"HTTP {answer.status} to a request that offers a tool: {answer.said}; {remedy}"
    )


def _tell(answer: Reply, asked: Asked, say: Say, what: str) -> Judged:
    """Judge an answer and print a line about it."""
    if answer.status != http.HTTPStatus.OK:
        raise SwitchError("chat", f"HTTP {answer.status} to one {what} request: {answer.said}")
    try:
        judged = judge(answer.value, asked)
    except ValueError:
        raise SwitchError("chat", f"an answer that is not JSON: {shown(answer.text)}") from None
    except UnusableError as error:
        raise SwitchError("chat", f"{what}: {error}") from None
    tokens = "" if judged.tokens is None else f", {judged.tokens} tokens"
    say(f"smoke: {what}: {judged.summary} ({answer.seconds:.2f} s{tokens})")
    return judged


def main() -> int:
    """Parse the arguments and ask."""
    parser = argparse.ArgumentParser(description="Ask a served model for one chat completion.")
    parser.add_argument("--url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--unit", default="", help="for the hint where to read on")
    parser.add_argument("--tools", action="store_true", help="a tool-call parser is declared")
    parser.add_argument("--reasoning", action="store_true", help="a reasoning parser is declared")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each request")
    arguments = parser.parse_args()
    target = Target(arguments.unit or "UNIT", arguments.url, arguments.model)
    try:
        warnings = smoke(
            target,
            partial(print, flush=True),
            tools=arguments.tools,
            reasoning=arguments.reasoning,
            seconds=arguments.seconds,
        )
    except SwitchError as error:
        print(f"{error.kind} failed: {error.sentence}", flush=True)
        return 1
    for warning in warnings:
        print(f"warning: {warning}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
