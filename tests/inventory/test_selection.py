"""Which files of a repository come onto a box."""

from typing import Any

import pytest

from inventory.catalogue import MINIMAX_M25
from inventory.errors import DesiredStateError
from inventory.selection import selected
from inventory.service import Service
from inventory.snapshot import Snapshot, SnapshotFile

SAFE = [
    "LICENSE",
    "README.md",
    "chat_template.jinja",
    "config.json",
    "merges.txt",
    "model-00001-of-00002.safetensors",
    "model.safetensors.index.json",
    "sub/tokenizer.model",
    "vocab.tiktoken",
]
PICKLED = ["a.pt", "b.PTH", "pytorch_model-00001-of-00002.bin", "training.pkl"]
OTHER = ["figures/plot.png", "m.gguf", "run.sh", "x.so"]
CODE = ["modeling_minimax_m2.py"]


def listing(paths: list[str]) -> Snapshot:
    return Snapshot(
        repo="o/n",
        revision="main",
        commit="a" * 40,
        files=tuple(SnapshotFile(path=path, size=1, digest="sha256:" + "0" * 64) for path in paths),
    )


def service(trust_remote_code: bool = False, **model: Any) -> Service:
    engine = MINIMAX_M25.engine.model_copy(update={"trust_remote_code": trust_remote_code})
    repo = MINIMAX_M25.model.model_copy(update=model)
    return MINIMAX_M25.model_copy(update={"engine": engine, "model": repo})


@pytest.mark.parametrize(
    ("want", "more"),
    [
        (service(), []),
        (service(pickled_weights=True), PICKLED),
        (service(trust_remote_code=True), CODE),
        (service(also=("figures/*", "*.gguf")), ["figures/plot.png", "m.gguf"]),
    ],
    ids=["by default", "pickled weights", "remote code", "by name"],
)
def test_safetensors_and_text_and_what_is_asked_for(want: Service, more: list[str]) -> None:
    everything = sorted(SAFE + PICKLED + OTHER + CODE)
    snapshot, left_out = selected(listing(everything), want)
    assert [file.path for file in snapshot.files] == sorted(SAFE + more)
    assert sorted([*left_out, *SAFE, *more]) == everything


def test_a_repository_of_pickles_alone_is_refused() -> None:
    with pytest.raises(DesiredStateError, match="pickled_weights=True"):
        selected(listing(["config.json", *PICKLED]), service())
    snapshot, _ = selected(listing(["config.json", *PICKLED]), service(pickled_weights=True))
    assert len(snapshot.files) == 1 + len(PICKLED)
