"""What the program on the box is told: as the controller writes it, and as the box reads it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inventory.catalogue import KIMI_K25, MINIMAX_M25
from inventory.common import paths
from inventory.common.files import write_whole
from inventory.common.record import RecordedEngine, RecordedHost, StartRecord
from inventory.common.switch import OldService, SwitchRequest
from inventory.common.wire import WireError
from inventory.placement import Chosen
from inventory.snapshot import LocalSnapshot, Snapshot, SnapshotFile
from operations.remote.switch import old_services
from operations.remote.switch.waiting.expectation import SAME_START, SILENCE_SECONDS, expected
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
    MINIMAX_M25,
    [KIMI_K25],
    placement=CHOSEN,
    snapshot=LocalSnapshot.of(MINIMAX_M25.model, SNAPSHOT),
    driver="595.1",
    rollback=True,
)


LAST = StartRecord(
    **vars(REQUEST.about),
    unit=MINIMAX_M25.unit,
    invocation="0" * 32,
    ready=1.0,
    phases={"load": 40.0, "compile": 1.0},
)


def test_the_box_reads_what_the_controller_writes() -> None:
    request = SwitchRequest.from_json(json.loads(json.dumps(REQUEST.to_json())))
    assert request == REQUEST
    assert request.new.unit == "vllm-minimax-m25.service"
    assert request.new.url == "http://127.0.0.1:8000"
    assert request.gpus == set(CHOSEN.gpus)
    (old,) = request.replaces
    assert old.unit == "vllm-kimi-k25.service"
    assert old.timeout == KIMI_K25.start_limits.patience == 2 * 900
    expect = expected(request, LAST)
    assert expect.timeout == MINIMAX_M25.start_limits.patience == 2 * 300
    assert expect.before == {"load": 40.0, "compile": 1.0}
    assert (request.tools, request.reasoning, request.rollback) == (True, True, True)
    assert request.warm == Path(f"/shared/models/MiniMaxAI/MiniMax-M2.5/{COMMIT}")


def test_the_record_knows_names_of_variables_and_no_values() -> None:
    about = REQUEST.about
    assert about.weights_bytes == 150
    assert about.placement.tensor_parallel_size == 4
    assert about.argv[0].endswith("/bin/vllm")
    assert "NCCL_PROTO" in about.environment
    assert "LL" not in about.environment
    assert about.host == RecordedHost(driver="595.1")


OTHERS: dict[str, Any] = {
    "argv": ("another",),
    "commit": "another",
    "engine": RecordedEngine("vllm", "0"),
}


def test_the_record_of_another_start_makes_no_silence_suspicious() -> None:
    assert expected(REQUEST, LAST).patience_floor == SILENCE_SECONDS
    assert OTHERS.keys() == set(SAME_START)
    for key, value in OTHERS.items():
        other = expected(REQUEST, replace(LAST, **{key: value}))
        # Nothing is compiled yet for these arguments: a warm start says nothing about it.
        assert other.allowed_silence("compile") >= 900


def test_a_service_without_a_record_has_no_phases_to_compare() -> None:
    assert expected(REQUEST, None).before == {}


def test_a_request_of_another_version_is_refused() -> None:
    with pytest.raises(WireError):
        SwitchRequest.from_json({"new": REQUEST.new.to_json()})


class TestUnfinished:
    """What a switch that was killed had stopped."""

    OLD = OldService("old.service", "http://127.0.0.1:8000", "old/model", timeout=30.0, text="[U]")

    @pytest.fixture(autouse=True)
    def pending(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        path = tmp_path / "state" / "switch.json"
        monkeypatch.setattr(paths, "PENDING", str(path))
        return path

    def test_it_is_remembered_until_it_is_over(self, pending: Path) -> None:
        assert old_services.unfinished() == ()
        old_services.remember("new.service", [self.OLD])
        assert old_services.unfinished() == (self.OLD,)
        assert pending.stat().st_mode & 0o777 == 0o600
        old_services.forget()
        old_services.forget()
        assert old_services.unfinished() == ()

    def test_a_note_of_an_earlier_version_is_read(self, pending: Path) -> None:
        write_whole(pending, json.dumps({"to": "new.service", "from": [self.OLD.to_json()]}))
        assert old_services.unfinished() == (self.OLD,)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{",
            "[]",
            '{"to": "a", "old": [{}]}',
            '{"to": "a", "old": 3}',
            '{"to": "a", "from": 3}',
            "null",
        ],
    )
    def test_a_damaged_note_is_none(self, pending: Path, text: str) -> None:
        write_whole(pending, text)
        assert old_services.unfinished() == ()
