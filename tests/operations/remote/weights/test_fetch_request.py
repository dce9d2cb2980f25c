"""What a fetch is asked to do, and what a file system's refusal is called."""

import errno
import json
from pathlib import Path

import pytest

from operations.remote.weights import fetch as program
from operations.remote.weights.errors import disk_sentence
from operations.remote.weights.fetch import read_request
from tests.operations.remote.weights.fetching import outcome

WORK = {"user": "vllm", "repo": "o/n", "commit": "a" * 40, "files": []}


class TestRequest:
    @pytest.mark.parametrize(
        "path", ["../x", "/etc/passwd", "a/../../x", ".boxwright/x", "a\nb", ""]
    )
    def test_no_path_leaves_the_folder(self, tmp_path: Path, path: str) -> None:
        work = {
            "user": "u",
            "repo": "o/n",
            "commit": "a" * 40,
            "folder": str(tmp_path / ("a" * 40)),
            "files": [{"path": path, "size": 1, "digest": "sha256:" + "0" * 64}],
        }
        assert "would leave the folder" in outcome(work)
        assert list(tmp_path.iterdir()) == []

    def test_a_token_is_in_no_repr(self, tmp_path: Path) -> None:
        work = {
            "user": "u",
            "repo": "o/n",
            "commit": "a" * 40,
            "folder": str(tmp_path),
            "files": [],
        }
        assert "hf_secret" not in repr(read_request(json.dumps({**work, "token": "hf_secret"})))

    def test_a_token_comes_as_a_credential_too(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "token").write_text("hf_secret\n")
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
        work = {
            "user": "u",
            "repo": "o/n",
            "commit": "a" * 40,
            "folder": str(tmp_path),
            "files": [],
        }
        assert read_request(json.dumps(work)).token == "hf_secret"  # noqa: S105


@pytest.mark.parametrize(
    "name", ["ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM", "ENOLCK", "ESTALE", "EIO"]
)
def test_a_file_systems_refusal_is_a_sentence(name: str, tmp_path: Path) -> None:
    error = OSError(getattr(errno, name), "x", str(tmp_path / "model"))
    told = program.explain(error, tmp_path)
    assert told == disk_sentence(error, tmp_path)
    assert str(tmp_path / "model") in told
    assert told.endswith(f"[{name}]")
