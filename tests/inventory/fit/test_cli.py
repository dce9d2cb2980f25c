"""``boxwright fit``: answers offline, for people and as JSON."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from inventory.errors import DesiredStateError
from inventory.fit.cli import add_fit_command
from inventory.fit.model.known import KNOWN, architecture_in, known_architecture
from tests.inventory.fit.data import FIXTURES, LLAMA_8B

RTX = '4x"RTX PRO 6000"'


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="boxwright")
    add_fit_command(parser.add_subparsers(required=True))
    parsed = parser.parse_args(arguments)
    return int(parsed.run(parsed))


def answered(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["fit", *words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_a_service_of_the_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _err = answered(capsys, "vllm-minimax-m25", "--gpus", RTX)
    assert code == 0
    assert "TP4" in out
    assert "nothing speaks against it" in out


def test_a_repository_gets_sizes_chosen_for_the_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _err = answered(
        capsys, "MiniMaxAI/MiniMax-M2.5", "--gpus", '8x"RTX PRO 6000"', "--engine", "0.20.2"
    )
    assert code == 0
    assert "TP8 EP, vLLM 0.20.2" in out
    assert "parallel sizes: whole experts on each rank, because 1536 / 8 = 192" in out


def test_what_does_not_fit_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _err = answered(capsys, "nvidia/Kimi-K2.5-NVFP4", "--gpus", "4xH100")
    assert code == 1
    assert "REFUSED [weights]" in out


def test_flags_override_the_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _err = answered(
        capsys, "vllm-minimax-m25", "--gpus", RTX, "-tp", "3", "--max-num-seqs", "64", "--json"
    )
    data = json.loads(out)
    assert code == 1
    assert data["resolved"]["max_num_seqs"] == 64
    assert {v["rule"] for v in data["verdicts"] if v["certain"]} == {"kv-heads", "fp8-block"}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("Llama-9", "--gpus", RTX), "known models"),
        (("MiniMax-M2.5", "--gpus", "4xVoodoo"), "no published figures"),
        (("MiniMax-M2.5", "--gpus", "0xH100"), "no count of at least one"),
        (("MiniMax-M2.5", "--gpus", RTX, "--gpu-memory-utilization", "9"), "not a share"),
        (("MiniMax-M2.5", "--gpus", RTX, "--engine-help", "/nowhere"), "No such file"),
    ],
)
def test_mistakes_end_with_2_and_four_parts(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], reason: str
) -> None:
    code, out, err = answered(capsys, *words)
    assert (code, out) == (2, "")
    assert reason in err
    assert [line.split(":")[0].strip() for line in err.splitlines()[:4]] == [
        "wanted",
        "found",
        "why",
        "next",
    ]


def test_the_installed_engines_flags_count(capsys: pytest.CaptureFixture[str]) -> None:
    code, _out, _err = answered(
        capsys,
        "vllm-kimi-k25",
        "--gpus",
        '8x"RTX PRO 6000"',
        "--engine-help",
        str(FIXTURES / "usage-0.32.0.txt"),
    )
    assert code == 0


def test_a_local_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_8B))
    code, out, _err = answered(capsys, str(tmp_path), "--gpus", "1xH100", "--engine", "0.19.0")
    assert code == 0
    assert "14.99 GiB from architecture" in out


def test_a_positive_number_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["fit", "MiniMax-M2.5", "--gpus", RTX, "-tp", "0"])
    assert stopped.value.code == 2
    assert "not a positive number" in capsys.readouterr().err


def test_it_is_a_command_among_others(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_fit_command(parser.add_subparsers(required=True))
    parsed = parser.parse_args(["fit", "MiniMax-M2.5", "--gpus", RTX])
    assert parsed.run(parsed) == 0
    assert "MiniMaxM2" in capsys.readouterr().out


# --- folders -----------------------------------------------------------------------------------


def weight_file(path: Path, tensors: dict[str, int]) -> None:
    entries: dict[str, Any] = {}
    place = 0
    for name, size in tensors.items():
        entries[name] = {"dtype": "U8", "shape": [size], "data_offsets": [place, place + size]}
        place += size
    body = json.dumps(entries).encode()
    path.write_bytes(len(body).to_bytes(8, "little") + body + bytes(place))


def test_headers_are_read_where_all_files_are_there(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_8B))
    weight_file(tmp_path / "a.safetensors", {"model.embed_tokens.weight": 100})
    weight_file(tmp_path / "b.safetensors", {"model.layers.0.mlp.up_proj.weight": 50})
    a = architecture_in(tmp_path)
    assert a.tensors is not None
    assert (a.tensors.first_stage, a.tensors.sharded) == (100, 50)


def test_the_index_tells_the_size_before_the_download(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_8B))
    index = {"metadata": {"total_size": 16_060_522_496}, "weight_map": {"x": "a.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    a = architecture_in(tmp_path)
    assert a.tensors is None
    assert a.checkpoint is not None
    assert a.checkpoint.size == 16_060_522_496


@pytest.mark.parametrize("damage", [b"", b"version https://git-lfs", b"\xff" * 40])
def test_damaged_weights_fall_back_on_sizes(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_8B))
    (tmp_path / "a.safetensors").write_bytes(damage)
    assert architecture_in(tmp_path).tensors is None


@pytest.mark.parametrize("content", [None, b"{", b"[]", b"\xff"])
def test_a_folder_without_a_readable_configuration(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(DesiredStateError, match=r"config\.json"):
        architecture_in(tmp_path)


@pytest.mark.parametrize("name", [*KNOWN, "minimax-m2.5"])
def test_every_known_model_has_a_source_and_no_gaps(name: str) -> None:
    assert known_architecture(name).unknown_fields == ()
    assert all(one.source for one in KNOWN.values())
