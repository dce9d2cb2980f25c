"""The lab's models: the same bytes everywhere, and files that hold together."""

import hashlib
import json
import struct
from itertools import pairwise
from math import prod
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lab import tokenizer
from tests.lab.model import MODELS, build, files

TINY = MODELS["tiny-minimax-m2"]


@pytest.fixture(scope="module")
def content() -> dict[str, bytes]:
    """The files of the first model."""
    return files(TINY)


def test_the_bytes_are_the_same_on_every_machine(content: dict[str, bytes]) -> None:
    digests = {name: hashlib.sha256(data).hexdigest()[:16] for name, data in content.items()}
    assert digests["model-00000-of-00006.safetensors"] == "4214d947b3a6f6b3"
    assert digests["model-lm_head.safetensors"] == "cd8c5c64d624a231"
    assert digests["tokenizer.json"] == "325c3506a570bd15"


def test_another_seed_is_another_model_of_the_same_shape(content: dict[str, bytes]) -> None:
    other = files(MODELS["tiny-minimax-m2-second"])
    for name in (name for name in content if name.endswith(".safetensors")):
        assert len(other[name]) == len(content[name])
        assert other[name] != content[name]
    assert other["config.json"] == content["config.json"]


def test_the_index_names_every_tensor_where_it_is(content: dict[str, bytes]) -> None:
    index = json.loads(content["model.safetensors.index.json"])
    found, size = {}, 0
    for name in (name for name in content if name.endswith(".safetensors")):
        (length,) = struct.unpack("<Q", content[name][:8])
        header = json.loads(content[name][8 : 8 + length])
        assert header.pop("__metadata__") == {"format": "pt"}
        assert length % 8 == 0
        end = 0
        for tensor, entry in header.items():
            begin, end = entry["data_offsets"][0], entry["data_offsets"][1]
            assert end - begin == 2 * prod(entry["shape"])
            found[tensor] = name
            size += end - begin
        assert 8 + length + end == len(content[name])
    assert found == index["weight_map"]
    assert size == index["metadata"]["total_size"]
    assert len(set(found.values())) == 6


def test_the_file_names_do_not_add_up_as_a_reader_may_expect(content: dict[str, bytes]) -> None:
    numbered = sorted(name for name in content if "-of-" in name)
    assert numbered[0] == "model-00000-of-00006.safetensors"
    assert len(numbered) == 5


def test_the_weights_are_small_finite_numbers(content: dict[str, bytes]) -> None:
    data = content["model-00001-of-00006.safetensors"]
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    begin, end = header["model.layers.1.self_attn.q_proj.weight"]["data_offsets"]
    raw = data[8 + length + begin : 8 + length + end]
    # A bfloat16 is the upper half of a float32.
    values = [struct.unpack("<f", b"\0\0" + raw[at : at + 2])[0] for at in range(0, 4000, 2)]
    assert all(1 / 128 <= abs(value) < 1 / 32 for value in values)
    assert abs(sum(values) / len(values)) < 0.002


def test_a_model_is_built_once_and_mended(tmp_path: Path) -> None:
    root = tmp_path / "models"
    folder = build(TINY, root)
    assert folder == root / "lab" / "tiny-minimax-m2"
    shard = folder / "model-00002-of-00006.safetensors"
    inode = shard.stat().st_ino
    assert build(TINY, root) == folder
    assert shard.stat().st_ino == inode
    intact = shard.read_bytes()
    shard.write_bytes(intact[:-1])
    (folder / "stray").touch()
    build(TINY, root)
    assert shard.read_bytes() == intact
    assert {path.name for path in folder.iterdir()} == set(files(TINY))
    assert [path.name for path in tmp_path.iterdir()] == ["models"]


def encode(text: str) -> list[int]:
    """Byte-level BPE as the `tokenizers` library applies it within one word."""
    letters, vocab = tokenizer.byte_letters(), tokenizer.vocabulary()
    rank = {pair: place for place, pair in enumerate(tokenizer.merges())}
    parts = [letters[byte] for byte in text.encode()]
    while True:
        pairs = [(rank.get(pair, len(rank)), at) for at, pair in enumerate(pairwise(parts))]
        best, at = min(pairs, default=(len(rank), 0))
        if best == len(rank):
            return [vocab[part] for part in parts]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


@given(st.text(max_size=40))
def test_any_text_can_be_encoded_and_read_back(text: str) -> None:
    bytes_of = {letter: byte for byte, letter in tokenizer.byte_letters().items()}
    tokens = {number: token for token, number in tokenizer.vocabulary().items()}
    letters = "".join(tokens[number] for number in encode(text))
    assert bytes(bytes_of[letter] for letter in letters).decode() == text


def test_common_words_are_one_token() -> None:
    assert len(encode(" model")) == 1
    assert len(encode(" weights")) == 1
    assert len(encode("model")) == 5  # the merges begin with the space
