"""What the stub answers over HTTP, as vLLM's API server shapes it."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping
from typing import Any

from .setting import Setting

_NUMBERS = itertools.count(1)
DEFAULT_TOKENS = 16
"""Tokens of an answer where the request does not limit them."""


def models(setting: Setting, since: int) -> dict[str, Any]:
    """``/v1/models``."""
    arguments = setting.arguments
    length = arguments.max_model_len or setting.model.number("max_position_embeddings")
    return {
        "object": "list",
        "data": [
            {
                "id": name,
                "object": "model",
                "created": since,
                "owned_by": "vllm",
                "root": str(arguments.model),
                "parent": None,
                "max_model_len": length,
            }
            for name in arguments.served_model_name or [setting.served_name]
        ],
    }


def error(status: int, message: str, kind: str) -> dict[str, Any]:
    """An error's body."""
    return {"error": {"message": message, "type": kind, "param": None, "code": status}}


def words_of(setting: Setting, limit: int, endless: bool = False) -> list[str]:
    """The tokens of an answer: one word is one token.

    + endless: say it again and again up to the limit, as a model does that must ignore its end
    """
    match setting.plan.serve:
        case "empty":
            return []
        case "garbage":
            return ["!"] * limit
    words = setting.plan.text.split()
    count = limit if endless else min(limit, len(words))
    return [words[n % len(words)] for n in range(count)]


def refused(setting: Setting, body: Mapping[str, Any]) -> str:
    """Why a request is a bad one; empty for a good one.

    The sentence is vLLM's (0.32.0 renderers/online_renderer.py:268).
    """
    arguments = setting.arguments
    parsed = arguments.enable_auto_tool_choice and arguments.tool_call_parser
    if body.get("tools") and body.get("tool_choice", "auto") == "auto" and not parsed:
        return (
            '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
        )
    return ""


def message(setting: Setting, body: Mapping[str, Any], text: str) -> dict[str, Any]:
    """What the parsers make of a text: reasoning up to ``</think>``, and one ``<tool_call>``."""
    reasoning, calls = None, []
    if setting.arguments.reasoning_parser and "</think>" in text:
        reasoning, _, text = text.partition("</think>")
        reasoning = reasoning.removeprefix("<think>").strip()
    if body.get("tools") and setting.arguments.tool_call_parser and "<tool_call>" in text:
        text, _, call = text.partition("<tool_call>")
        function = json.loads(call.partition("</tool_call>")[0])
        function["arguments"] = json.dumps(function["arguments"])
        calls = [{"id": "call-1", "type": "function", "function": function}]
    return {
        "role": "assistant",
        "content": text.strip() or None,
        "reasoning": reasoning,
        "tool_calls": calls,
    }


def completion(setting: Setting, body: Mapping[str, Any], chat: bool) -> dict[str, Any]:
    """``/v1/chat/completions`` or ``/v1/completions``."""
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or DEFAULT_TOKENS
    words = words_of(setting, int(limit), bool(body.get("ignore_eos")))
    text = ("" if setting.plan.serve == "garbage" else " ").join(words)
    asked = str(body.get("messages") if chat else body.get("prompt"))
    ending = "length" if len(words) == int(limit) else "stop"
    choice: dict[str, Any] = {"index": 0, "finish_reason": ending, "logprobs": None}
    if chat:
        choice["message"] = message(setting, body, text)
        if choice["message"]["tool_calls"]:
            choice["finish_reason"] = "tool_calls"
    else:
        choice["text"] = text
    prompt = len(asked.split())
    return {
        "id": f"{'chatcmpl' if chat else 'cmpl'}-{next(_NUMBERS):08x}",
        "object": "chat.completion" if chat else "text_completion",
        "created": int(time.time()),
        "model": body.get("model", setting.served_name),
        "choices": [choice],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": len(words),
            "total_tokens": prompt + len(words),
        },
    }


def chunks(whole: Mapping[str, Any], words: list[str], chat: bool) -> list[dict[str, Any]]:
    """An answer in parts, for ``"stream": true``; the last one holds the usage."""
    base = {key: whole[key] for key in ("id", "created", "model")}
    base["object"] = "chat.completion.chunk" if chat else "text_completion"
    found = []
    for number, word in enumerate(words):
        text = word if number == 0 else f" {word}"
        piece = {"delta": {"content": text}} if chat else {"text": text}
        last = whole["choices"][0]["finish_reason"] if number == len(words) - 1 else None
        found.append({**base, "choices": [{"index": 0, "finish_reason": last, **piece}]})
    return [*found, {**base, "choices": [], "usage": whole["usage"]}]


def metrics(setting: Setting, running: int, generated: int) -> str:
    """``/metrics``, the lines that a watcher needs."""
    label = f'{{engine="0",model_name="{setting.served_name}"}}'
    lines = []
    for name, kind, value in (
        ("vllm:num_requests_running", "gauge", running),
        ("vllm:num_requests_waiting", "gauge", 0),
        ("vllm:kv_cache_usage_perc", "gauge", 0.0),
        ("vllm:generation_tokens_total", "counter", generated),
    ):
        lines += [f"# TYPE {name.removesuffix('_total')} {kind}", f"{name}{label} {float(value)}"]
    return "\n".join(lines) + "\n"
