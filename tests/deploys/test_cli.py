"""The command line of boxwright itself."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from deploys.cli import main

BOXWRIGHT = Path(sys.executable).with_name("boxwright")


def test_fit_answers_offline_for_the_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "vllm-minimax-m25", "--gpus", "4xRTX PRO 6000"]) == 0
    assert "53.76 GiB" in capsys.readouterr().out


def test_a_start_that_cannot_be_is_exit_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "vllm-minimax-m25", "--gpus", "2xRTX PRO 6000", "--json"]) == 1
    rules = [verdict["rule"] for verdict in json.loads(capsys.readouterr().out)["verdicts"]]
    assert "weights" in rules


def test_the_installed_command_is_this_one() -> None:
    done = subprocess.run(
        [BOXWRIGHT, "fit", "no-such-model", "--gpus", "1xH100"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("wanted: ")
