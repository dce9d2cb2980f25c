"""What counts as an answer, and what is odd about one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from operations.remote.switch.smoke_test.judging import (
    ENDINGS,
    Asked,
    Judged,
    UnusableError,
    judge,
    repeated,
)

MODEL = "lab/model"
PLAIN = Asked(MODEL)
THINKING = Asked(MODEL, reasoning=True)
CALLING = Asked(MODEL, tools=frozenset({"get_weather"}))


def answer(content: str | None = "Hello, how are you today?", **fields: Any) -> dict[str, Any]:
    """A chat completion as vLLM shapes it."""
    message = {"role": "assistant", "content": content}
    top: dict[str, Any] = {key: fields.pop(key) for key in ("model", "usage") if key in fields}
    ending = fields.pop("finish_reason", "stop")
    return {
        "model": MODEL,
        "usage": {"prompt_tokens": 9, "completion_tokens": 7},
        "choices": [{"index": 0, "finish_reason": ending, "message": message | fields}],
        **top,
    }


def call(name: str = "get_weather", arguments: str = '{"city": "Paris"}') -> list[dict[str, Any]]:
    """The list of one tool call."""
    return [{"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}]


GOOD = [
    (answer(), PLAIN),
    (answer(finish_reason="length"), PLAIN),
    (answer("Hello.\nIt is 5 < 6, and <b>bold</b>.", reasoning="The user greets me."), THINKING),
    # Cut off while it was still thinking: nothing odd about a short limit.
    (answer(None, reasoning="The user wants a", finish_reason="length"), THINKING),
    (answer(None, tool_calls=call(), finish_reason="tool_calls"), CALLING),
    (answer("I cannot look at the weather, sorry."), CALLING),
    (answer("Grüße aus K\ufffd", finish_reason="length"), PLAIN),
    # Without a parser the tags are what the client asked for.
    (answer("<think>Hm.</think>Hello."), PLAIN),
    (answer("Ha ha! Hello there, and a very good morning to you."), PLAIN),
]


@pytest.mark.parametrize(("given_answer", "asked"), GOOD)
def test_nothing_is_odd_about_a_good_answer(given_answer: Any, asked: Asked) -> None:
    judged = judge(given_answer, asked)
    assert judged.warnings == ()
    assert judged.summary
    assert judged.tokens == 7


ODD = [
    (answer("!" * 64, finish_reason="length"), PLAIN, "repeats '!' over and over"),
    (answer("Oh " + "the cat " * 12), PLAIN, "repeats 'the cat ' over and over"),
    (
        answer(None, reasoning="wait, " * 20, finish_reason="length"),
        THINKING,
        "the reasoning repeats 'wait, '",
    ),
    (answer("He\ufffd\ufffdlo to you"), PLAIN, "2 replacement characters"),
    (answer("Hello to all\ufffd"), PLAIN, "1 replacement characters"),
    (answer(finish_reason=None), PLAIN, "finish_reason is None"),
    (answer(finish_reason="abort"), PLAIN, "finish_reason is 'abort'"),
    (answer(model="other"), PLAIN, "names the model 'other', asked was 'lab/model'"),
    (answer(usage={"completion_tokens": 0}), PLAIN, "completion_tokens is 0"),
    (answer("<think>Hm.</think>Hello."), THINKING, "'<think>': --reasoning-parser"),
    (answer("Hm.</think>Hello."), THINKING, "'</think>'"),
    (answer("◁think▷Hm."), THINKING, "'◁think▷'"),
    (answer("<|channel|>analysis"), THINKING, "'<|channel|>'"),
    (answer("<mm:think>Hm."), THINKING, "'<mm:think>'"),
    (answer(None, reasoning="Hello."), THINKING, "with reasoning alone"),
    (answer('<minimax:tool_call>\n<invoke name="get_weather">'), CALLING, "'<minimax:tool_call>'"),
    (answer('<tool_call>{"name": "get_weather"}'), CALLING, "'<tool_call>': --tool-call-parser"),
    (answer("<|tool_calls_section_begin|>"), CALLING, "'<|tool_calls_section_begin|>'"),
    (answer("<\uff5ctool▁calls▁begin\uff5c>"), CALLING, "'<\uff5ctool▁calls▁begin\uff5c>'"),
    (answer('functools[{"name": "get_weather"}]'), CALLING, "'functools['"),
    (answer('[TOOL_CALLS][{"name": "get_weather"}]'), CALLING, "'[TOOL_CALLS]'"),
    (answer("<function=get_weather>"), CALLING, "'<function=g'"),
    (answer(None, tool_calls=call(name="search")), CALLING, "'search', which was not offered"),
    (answer(None, tool_calls=call(arguments='{"city": "Pa')), CALLING, "are not a JSON object"),
    (answer(None, tool_calls=call(arguments='["Paris"]')), CALLING, "are not a JSON object"),
]


@pytest.mark.parametrize(("given_answer", "asked", "words"), ODD)
def test_one_oddity_is_one_warning(given_answer: Any, asked: Asked, words: str) -> None:
    (warning,) = judge(given_answer, asked).warnings
    assert words in warning


UNUSABLE: list[tuple[Any, str]] = [
    (None, "without choices"),
    ([], "without choices"),
    ({"object": "error"}, "without choices"),
    ({"choices": []}, "without choices"),
    ({"choices": ["Hello"]}, "without choices"),
    (answer(None), "without text, reasoning or tool call"),
    (answer("  \n"), "without text, reasoning or tool call"),
    (answer(None, tool_calls=[]), "without text, reasoning or tool call"),
    ({"choices": [{"message": None}]}, "without text, reasoning or tool call"),
]


@pytest.mark.parametrize(("given_answer", "words"), UNUSABLE)
def test_no_answer_is_no_answer(given_answer: Any, words: str) -> None:
    with pytest.raises(UnusableError, match=words):
        judge(given_answer, PLAIN)


def test_the_field_of_older_engines_is_read_too() -> None:
    judged = judge(answer(reasoning_content="The user greets me."), THINKING)
    assert judged.reasoning == "The user greets me."


def test_a_completion_without_chat_is_read_too() -> None:
    judged = judge({"model": MODEL, "choices": [{"text": "Hi", "finish_reason": "stop"}]}, PLAIN)
    assert (judged.content, judged.tokens, judged.warnings) == ("Hi", None, ())


PIECES = st.text(
    alphabet=st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20
).map(lambda word: f"{word} ")


@given(piece=PIECES, times=st.integers(8, 40), start=st.text("abc ", max_size=8))
def test_a_loop_is_seen_wherever_it_is_cut(piece: str, times: int, start: str) -> None:
    loop = piece * times
    found = repeated(start[: len(loop) // 8] + loop)
    assert found is not None
    # The unit is found, or a shorter one that it is made of.
    assert len(found) <= len(piece)
    assert found.strip() in piece * 2


@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=60, unique=True))
def test_text_that_goes_on_is_no_loop(numbers: list[int]) -> None:
    text = " ".join(f"w{number}." for number in numbers)
    found = repeated(text)
    # Numbers such as 1111111111 may fill most of a short text.
    assert found is None or len(found) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(("content", "reasoning", "reasoning_content", "tool_calls"), JSON),
)
CHOICES = st.fixed_dictionaries({}, optional={"message": MESSAGES | JSON, "finish_reason": JSON})
ANSWERS = JSON | st.fixed_dictionaries(
    {"choices": st.lists(CHOICES | JSON, max_size=2)}, optional={"model": JSON, "usage": JSON}
)


@given(ANSWERS, st.sampled_from([PLAIN, THINKING, CALLING]))
@example({"choices": [{"message": {"content": "text"}, "finish_reason": []}]}, PLAIN)
def test_any_json_is_judged_or_unusable(value: Any, asked: Asked) -> None:
    try:
        judged = judge(json.loads(json.dumps(value)), asked)
    except UnusableError:
        return
    assert isinstance(judged, Judged)
    assert judged.content.strip() or judged.reasoning.strip() or judged.calls
    assert judged.summary
    assert all("\n" not in warning for warning in judged.warnings)


@given(st.text(min_size=1).filter(str.strip), st.sampled_from(sorted(ENDINGS)))
def test_any_text_is_an_answer(text: str, ending: str) -> None:
    judged = judge(answer(text, finish_reason=ending), PLAIN)
    assert judged.content == text
    assert all("\ufffd" in text or "repeats" in warning for warning in judged.warnings)
