"""What the program on the box is told: as the controller writes it, and as the box reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inventory.catalogue import KIMI_K25, MINIMAX_M25
from inventory.placement import Chosen
from inventory.snapshot import Snapshot, SnapshotFile
from operations.remote.switch import files, formers
from operations.remote.switch.request import SAME_START, SILENCE_SECONDS, Former, read_request
from operations.remote.switch.waiting.target import Target
from operations.remote.switch.waiting.verdicts import patience
from operations.switch_request import switch_request

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SNAPSHOT = Snapshot(
    repo="MiniMaxAI/MiniMax-M2.5",
    revision="main",
    commit=COMMIT,
    files=(
        SnapshotFile(path="config.json", size=10, digest=f"git-sha1:{'0' * 40}"),
        SnapshotFile(path="model-1.safetensors", size=90, digest=f"sha256:{'0' * 64}"),
        SnapshotFile(path="model-2.safetensors", size=60, digest=f"sha256:{'1' * 64}"),
    ),
)
CHOSEN = Chosen(
    gpus=("GPU-1", "GPU-2", "GPU-3", "GPU-4"),
    numa_nodes=(0, 0, 0, 0),
    closeness="numa-node",
    why=(),
    environment={"CUDA_VISIBLE_DEVICES": "GPU-1,GPU-2,GPU-3,GPU-4"},
    numa_bind_nodes=(0, 0, 0, 0),
    numa_bind_reason="",
)
REQUEST = switch_request(
    MINIMAX_M25, [KIMI_K25], placement=CHOSEN, snapshot=SNAPSHOT, driver="595.1", rollback=True
)


def test_the_box_reads_what_the_controller_writes() -> None:
    request = read_request(json.loads(json.dumps(REQUEST)), {"phases": {"load": 40.0}})
    assert request.new.unit == "vllm-minimax-m25.service"
    assert request.new.url == "http://127.0.0.1:8000"
    assert request.gpus == set(CHOSEN.gpus)
    (old,) = request.replaces
    assert old.target.unit == "vllm-kimi-k25.service"
    assert old.timeout == KIMI_K25.start_limits.patience == 2 * 900
    assert request.expect.timeout == MINIMAX_M25.start_limits.patience == 2 * 300
    assert request.expect.before == {"load": 40.0}
    assert (request.tools, request.reasoning, request.rollback) == (True, True, True)
    assert request.warm == Path(f"/shared/models/MiniMaxAI/MiniMax-M2.5/{COMMIT}")


def test_the_record_knows_names_of_variables_and_no_values() -> None:
    about = REQUEST["about"]
    assert about["weights_bytes"] == 150
    assert about["placement"]["tensor_parallel_size"] == 4
    assert about["argv"][0].endswith("/bin/vllm")
    assert "NCCL_PROTO" in about["environment"]
    assert "LL" not in about["environment"]
    assert about["host"] == {"driver": "595.1"}


def test_the_record_of_another_start_makes_no_silence_suspicious() -> None:
    alike = {key: REQUEST["about"][key] for key in SAME_START}
    last = {"phases": {"compile": 1.0}, **alike}
    assert read_request(REQUEST, last).expect.patience_floor == SILENCE_SECONDS
    for key in SAME_START:
        other = read_request(REQUEST, {**last, key: "another"}).expect
        # Nothing is compiled yet for these arguments: a warm start says nothing about it.
        assert patience("compile", other.before, other.patience, 3.0, other.patience_floor) >= 900


def test_a_request_of_another_version_is_refused() -> None:
    with pytest.raises(KeyError):
        read_request({"service": REQUEST["service"]}, {})


class TestUnfinished:
    """What a switch that was killed had stopped."""

    OLD = Former(Target("old.service", "http://127.0.0.1:8000", "old/model"), 30.0, "[Unit]\n")

    @pytest.fixture(autouse=True)
    def pending(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr(formers, "PENDING", tmp_path / "state" / "switch.json")
        return formers.PENDING

    def test_it_is_remembered_until_it_is_over(self, pending: Path) -> None:
        assert formers.unfinished() == ()
        formers.remember("new.service", [self.OLD])
        assert formers.unfinished() == (self.OLD,)
        assert pending.stat().st_mode & 0o777 == 0o600
        formers.forget()
        formers.forget()
        assert formers.unfinished() == ()

    @pytest.mark.parametrize("text", ["", "{", "[]", '{"from": [{}]}', '{"from": 3}', "null"])
    def test_a_damaged_note_is_none(self, pending: Path, text: str) -> None:
        files.write(pending, text)
        assert formers.unfinished() == ()


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    files.write(path, "one", mode=0o640)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("one", 0o640)
    with pytest.raises(UnicodeEncodeError):
        files.write(path, "\udc80")
    assert path.read_text() == "one"
    assert list(path.parent.iterdir()) == [path]
