"""A small, real tokenizer for the lab's models: byte-level BPE, written by hand.

Every byte is a token, so any text can be encoded; a few merges make the common English words
shorter. The special tokens are those that vLLM's `minimax_m2` reasoning and tool-call parsers
look for in the vocabulary.
"""

import json
from typing import Final

BOS: Final = "]~!b["
EOS: Final = "[e~["
ROLE: Final = "]~b]"
THINK: Final = ("<think>", "</think>")
TOOL_CALL: Final = ("<minimax:tool_call>", "</minimax:tool_call>")
SPECIAL: Final = (BOS, EOS, ROLE, *THINK, *TOOL_CALL)

# Words whose pieces become merges. What they are hardly matters; that they are fixed does.
_WORDS: Final = (
    *("the", "and", "of", "to", "in", "is", "that", "for", "with", "as"),
    *("box", "model", "serve", "weights", "shard", "engine", "token", "memory", "node", "unit"),
)

CHAT_TEMPLATE: Final = (
    "{{ '" + BOS + "' }}"
    "{% for message in messages %}"
    "{{ '" + ROLE + "' + message.role + '\\n' }}"
    "{% if message.content is string %}{{ message.content }}"
    "{% else %}{% for part in message.content %}{{ part.text }}{% endfor %}{% endif %}"
    "{{ '" + EOS + "\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '" + ROLE + "ai\\n' }}{% endif %}"
)


def byte_letters() -> dict[int, str]:
    """The letter that stands for each byte in a byte-level vocabulary.

    Printable bytes stand for themselves; the others get letters from 256 up, in order. This is the
    alphabet that the `ByteLevel` pre-tokenizer of the `tokenizers` library expects.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    letters = {byte: chr(byte) for byte in printable}
    letters |= {byte: chr(256 + place) for place, byte in enumerate(others)}
    return dict(sorted(letters.items()))


def merges() -> list[tuple[str, str]]:
    """Pairs that are joined, most important first: each word from its left, with a space before."""
    space = byte_letters()[0x20]
    found: dict[tuple[str, str], None] = {}
    for word in _WORDS:
        left = space
        for letter in word:
            found.setdefault((left, letter))
            left += letter
    return list(found)


def vocabulary() -> dict[str, int]:
    """Token to id: the special tokens first, then the bytes, then the merged pieces."""
    pieces = [left + right for left, right in merges()]
    tokens = [*SPECIAL, *byte_letters().values(), *dict.fromkeys(pieces)]
    return {token: number for number, token in enumerate(tokens)}


def printable_ids() -> frozenset[int]:
    """Ids whose text is visible ASCII (with or without a space before it)."""
    space = byte_letters()[0x20]
    return frozenset(
        number
        for token, number in vocabulary().items()
        if token not in SPECIAL
        and (text := token.removeprefix(space))
        and text.isascii()
        and text.isprintable()
    )


def files() -> dict[str, str]:
    """The tokenizer's files: name to text."""
    vocab = vocabulary()
    added = [
        {
            "id": vocab[token],
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            # The parsers need these in the text; the others are left out of an answer.
            "special": token not in {*THINK, *TOOL_CALL},
        }
        for token in SPECIAL
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": byte_level | {"use_regex": True},
        "post_processor": None,
        "decoder": byte_level | {"use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {token: number for token, number in vocab.items() if token not in SPECIAL},
            "merges": [list(pair) for pair in merges()],
        },
    }
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": EOS,
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": 4096,
    }
    return {
        "tokenizer.json": json.dumps(tokenizer, indent=1),
        "tokenizer_config.json": json.dumps(config, indent=1),
        "chat_template.jinja": CHAT_TEMPLATE,
    }
