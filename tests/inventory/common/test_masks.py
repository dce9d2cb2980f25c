"""No secret passes, and nothing else goes."""

from __future__ import annotations

import ast
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from inventory.common.masks import masked

PLAIN = st.text(string.ascii_letters + string.digits, min_size=16, max_size=40)
SECRETS = PLAIN.map(lambda text: f"q7{text}")
"""Of characters that occur in no shape below, with a beginning that no context has."""
NAMES = st.sampled_from(
    ["api_key", "api-key", "hf_token", "HF_TOKEN", "password", "client_secret", "Authorization"]
)
SHAPES = st.sampled_from(
    [
        "non-default args: {{'port': 8000, '{name}': '{secret}', 'model': 'm'}}",
        "non-default args: {{'{name}': ['{secret}', 'x'], 'model': 'm'}}",
        "args: {{'{name}': ['{secret}",
        "args: {{'{name}': '{secret}",
        '{{"{name}": "{secret}", "n": 1}}',
        '{{"text": "{{\\"{name}\\": \\"{secret}\\"}}"}}',
        "{name}={secret}",
        "{name}: {secret}, and more",
        "{name} = '{secret}'",
        "secret: {name}: {secret}",
        "vllm serve m --{name} {secret} --port 8000",
        "vllm serve m --{name}={secret} --port 8000",
        "vllm serve m --{name} '{secret}'",
        "vllm serve m --{name} ''{secret}",
        "{name}: Bearer {secret}",
        "{name}: Basic {secret}",
        "curl -H bearer {secret}",
        "bearer {name}: {secret}",
        "https_proxy=http://user:{secret}@proxy:3128",
        "from hf_{secret} on",
        "key sk-{secret} is wrong",
    ]
)


@given(SHAPES, NAMES, SECRETS, st.text(max_size=20), st.text(max_size=20))
def test_no_planted_secret_survives(
    shape: str, name: str, secret: str, before: str, behind: str
) -> None:
    text = f"{before} {shape.format(name=name, secret=secret)} {behind}"
    assert secret not in masked(text)


PIECES = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        [
            *"'\"[]{}:=,@/\\ \n-",
            "token",
            "--api-key ",
            "bearer ",
            "password: ",
            "x://",
            "a:b@",
            "***",
        ]
    ),
)


@example("--api-key ''0")
@given(st.lists(PIECES, max_size=25).map("".join))
@example('--api-key ""0')
def test_masking_twice_is_masking_once(text: str) -> None:
    once = masked(text)
    assert masked(once) == once


@given(PLAIN)
def test_a_dictionary_stays_one(secret: str) -> None:
    arguments = {"model": "m", "api_key": [secret], "hf_token": secret, "max_num_seqs": 8}
    kept = ast.literal_eval(masked(repr(arguments)))
    assert kept == {**arguments, "api_key": "***", "hf_token": "***"}


@pytest.mark.parametrize(
    "text",
    [
        "GPU KV cache size: 399,424 tokens",
        "Maximum concurrency for 131,072 tokens per request: 3.05x",
        "{'max_num_batched_tokens': 8192, 'tokenizer_mode': 'auto'}",
        "vllm serve m --max-num-batched-tokens 8192 --tokenizer t",
        "http://127.0.0.1:8000/v1/models",
        "user@box: basic checks",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert masked(text) == text


def test_a_value_that_a_shell_joins_is_masked_to_its_end() -> None:
    assert masked("serve --api-key 'abc'def --port 8000") == "serve --api-key *** --port 8000"
