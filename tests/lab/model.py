"""Tiny MiniMax-M2 models that the lab makes itself, byte for byte the same on every machine.

The weights are random but fixed: each tensor's bytes come from SHAKE-256 over the model's seed and
the tensor's name, so neither torch nor numpy is needed, and the digest of every file is known
before it is written. What such a model says is noise; that it says something is the point.

Example: `build(MODELS["tiny-minimax-m2"], Path(".lab/models"))` writes
`.lab/models/lab/tiny-minimax-m2/`.
"""

import hashlib
import json
import shutil
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Final

from tests.lab import tokenizer

HIDDEN: Final = 256
INTERMEDIATE: Final = 256
LAYERS: Final = 5
HEADS: Final = 8
KV_HEADS: Final = 4
HEAD_DIM: Final = 64
EXPERTS: Final = 8
MAX_LENGTH: Final = 4096

_ONE: Final = b"\x80\x3f"  # 1.0 as little-endian bfloat16

Shape = tuple[int, ...]


@dataclass(frozen=True)
class TinyModel:
    """What one of the lab's models is.

    + name: folder name, and the second half of its repository id
    + seed: what its weights are drawn from; another seed is another model
    + scoring_func: of the router. `softmax` works on a CPU. With `sigmoid`, vLLM's CPU backend
      starts and reports itself healthy, and its engine dies on the first request
    """

    name: str
    seed: int
    scoring_func: str = "softmax"

    @property
    def repo(self) -> str:
        """Its repository id on the lab's Hub."""
        return f"lab/{self.name}"


MODELS: Final[Mapping[str, TinyModel]] = {
    model.name: model
    for model in (
        TinyModel("tiny-minimax-m2", seed=1),
        TinyModel("tiny-minimax-m2-second", seed=2),
        TinyModel("tiny-minimax-m2-sigmoid", seed=1, scoring_func="sigmoid"),
    )
}


def config(model: TinyModel) -> dict[str, object]:
    """The content of `config.json`, with the field names of MiniMaxAI/MiniMax-M2.5."""
    vocab = tokenizer.vocabulary()
    return {
        "architectures": ["MiniMaxM2ForCausalLM"],
        "model_type": "minimax_m2",
        "attention_dropout": 0.0,
        "bos_token_id": vocab[tokenizer.BOS],
        "eos_token_id": vocab[tokenizer.EOS],
        "dtype": "bfloat16",
        "head_dim": HEAD_DIM,
        "hidden_act": "silu",
        "hidden_size": HIDDEN,
        "initializer_range": 0.02,
        "intermediate_size": INTERMEDIATE,
        "max_position_embeddings": MAX_LENGTH,
        "num_attention_heads": HEADS,
        "num_experts_per_tok": 2,
        "num_hidden_layers": LAYERS,
        "num_key_value_heads": KV_HEADS,
        "num_local_experts": EXPERTS,
        "output_router_logits": False,
        "qk_norm_type": "per_layer",
        "rms_norm_eps": 1e-06,
        "rope_theta": 5000000,
        "rotary_dim": HEAD_DIM // 2,
        "router_aux_loss_coef": 0.001,
        "router_jitter_noise": 0.0,
        "scoring_func": model.scoring_func,
        "tie_word_embeddings": False,
        "use_cache": True,
        "use_qk_norm": True,
        "use_routing_bias": model.scoring_func == "sigmoid",
        "vocab_size": len(vocab),
    }


def shards(model: TinyModel) -> dict[str, dict[str, Shape]]:
    """File name to its tensors and their shapes.

    The files are counted from zero, and the last one is not numbered at all: a reader who derives
    the set of files from `-of-00006` looks for one that does not exist.
    """
    vocab = len(tokenizer.vocabulary())
    files = {
        f"model-{number:05}-of-{LAYERS + 1:05}.safetensors": dict(_layer(model, number))
        for number in range(LAYERS)
    }
    first, last = next(iter(files)), list(files)[-1]
    files[first] = {"model.embed_tokens.weight": (vocab, HIDDEN)} | files[first]
    files[last] |= {"model.norm.weight": (HIDDEN,)}
    files["model-lm_head.safetensors"] = {"lm_head.weight": (vocab, HIDDEN)}
    return files


def _layer(model: TinyModel, number: int) -> Iterator[tuple[str, Shape]]:
    here = f"model.layers.{number}"
    queries, keys = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM
    yield f"{here}.self_attn.q_proj.weight", (queries, HIDDEN)
    yield f"{here}.self_attn.k_proj.weight", (keys, HIDDEN)
    yield f"{here}.self_attn.v_proj.weight", (keys, HIDDEN)
    yield f"{here}.self_attn.o_proj.weight", (HIDDEN, queries)
    yield f"{here}.self_attn.q_norm.weight", (queries,)
    yield f"{here}.self_attn.k_norm.weight", (keys,)
    yield f"{here}.input_layernorm.weight", (HIDDEN,)
    yield f"{here}.post_attention_layernorm.weight", (HIDDEN,)
    yield f"{here}.block_sparse_moe.gate.weight", (EXPERTS, HIDDEN)
    if model.scoring_func == "sigmoid":
        yield f"{here}.block_sparse_moe.e_score_correction_bias", (EXPERTS,)
    for expert in range(EXPERTS):
        weights = f"{here}.block_sparse_moe.experts.{expert}"
        yield f"{weights}.w1.weight", (INTERMEDIATE, HIDDEN)
        yield f"{weights}.w2.weight", (HIDDEN, INTERMEDIATE)
        yield f"{weights}.w3.weight", (INTERMEDIATE, HIDDEN)


def _bfloat16(model: TinyModel, name: str, shape: Shape) -> bytes:
    """The bytes of one tensor."""
    count = prod(shape)
    if "norm" in name:
        return _ONE * count
    # A bfloat16 is a sign, eight bits of exponent and seven of fraction. The low byte may be
    # anything; the high byte is one of two, which fixes the sign and the magnitude.
    high = 0x3E if name == "lm_head.weight" else 0x3C  # 1/8 to 1/2, or 1/128 to 1/32
    signs = bytes(high | (byte & 0x80) for byte in range(256))
    random = hashlib.shake_256(f"{model.seed} {name}".encode()).digest(2 * count)
    values = bytearray(2 * count)
    values[0::2] = random[:count]
    values[1::2] = random[count:].translate(signs)
    if name == "lm_head.weight":
        # A token whose row is zero scores zero and loses to the best of the others: the model
        # answers in visible letters, and does not end its answer before it began.
        row = 2 * shape[1]
        for number in set(range(shape[0])) - tokenizer.printable_ids():
            values[number * row : (number + 1) * row] = bytes(row)
    return bytes(values)


def safetensors(model: TinyModel, tensors: Mapping[str, Shape]) -> bytes:
    """One safetensors file: the header's length (8 bytes), the header (JSON), the numbers."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    place = 0
    for name, shape in tensors.items():
        end = place + 2 * prod(shape)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [place, end]}
        place = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the numbers start at a multiple of eight
    numbers = (_bfloat16(model, name, shape) for name, shape in tensors.items())
    return struct.pack("<Q", len(text)) + text + b"".join(numbers)


def files(model: TinyModel) -> dict[str, bytes]:
    """Every file of the model: name to bytes (about 20 MB together)."""
    parts = shards(model)
    generation = {
        "bos_token_id": tokenizer.vocabulary()[tokenizer.BOS],
        "eos_token_id": tokenizer.vocabulary()[tokenizer.EOS],
        "do_sample": True,
        "temperature": 1.0,
        "top_k": 40,
        "top_p": 0.95,
    }
    index = {
        "metadata": {
            "total_size": sum(2 * prod(s) for part in parts.values() for s in part.values())
        },
        "weight_map": {name: file for file, part in parts.items() for name in part},
    }
    documents = {
        "config.json": config(model),
        "generation_config.json": generation,
        "model.safetensors.index.json": index,
    }
    content = {
        name: json.dumps(document, indent=1).encode() for name, document in documents.items()
    }
    content |= {name: text.encode() for name, text in tokenizer.files().items()}
    content["README.md"] = (
        f"# {model.name}\nRandom weights, seed {model.seed}. For tests.\n".encode()
    )
    return content | {file: safetensors(model, part) for file, part in parts.items()}


def build(model: TinyModel, root: Path) -> Path:
    """Write the model to `root/lab/NAME` and return that folder.

    The folder appears complete or not at all. One that already holds these very bytes is left as
    it is; any other is replaced.

    + root: folder of repositories, `ORGANISATION/NAME/`
    """
    folder = root / model.repo
    content = files(model)
    if folder.is_dir() and _holds(folder, content):
        return folder
    draft = root.with_name(f"{model.name}.part")
    for leftover in (draft, folder):
        shutil.rmtree(leftover, ignore_errors=True)
    draft.mkdir(parents=True)
    for name, data in content.items():
        (draft / name).write_bytes(data)
    folder.parent.mkdir(parents=True, exist_ok=True)
    return draft.rename(folder)


def _holds(folder: Path, content: Mapping[str, bytes]) -> bool:
    names = {path.name for path in folder.iterdir()}
    return names == set(content) and all(
        (folder / name).read_bytes() == data for name, data in content.items()
    )
