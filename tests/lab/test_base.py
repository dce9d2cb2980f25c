"""What the lab says when something is missing, and how it takes turns."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.address import candidates
from tests.lab.base import REPO, WORKER, Lab, LabError, lock, require, run


def test_a_missing_tool_is_named_with_its_package() -> None:
    with pytest.raises(LabError, match="apt-get install no-such-tool"):
        require("no-such-tool")


def test_a_failed_program_shows_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(LabError, match=r"(?s)status 3.*the cause") as caught:
        run(["sh", "-c", "seq 100; echo the cause >&2; exit 3"], log=log)
    assert "\n80\n" not in str(caught.value)
    assert log.read_text().startswith("1\n2\n")


def test_a_program_that_hangs_is_given_up() -> None:
    with pytest.raises(LabError, match="sleep did not end within 0 s"):
        run(["sleep", "60"], timeout=0.2)


def test_one_process_at_a_time_holds_a_lock_and_a_killed_one_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "x.lock"
    code = (
        "import sys, time; from pathlib import Path; from tests.lab.base import lock\n"
        "with lock(Path(sys.argv[1])): print('mine', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "mine\n"
        taken = run(["sh", "-c", f"flock --nonblock '{path}' true && echo free || echo taken"])
        assert taken == "taken\n"
        other.kill()
        with lock(path):
            pass


def test_the_labs_of_workers_are_found_and_share_no_address(tmp_path: Path) -> None:
    usual = Lab(root=tmp_path, caches=tmp_path / "caches")
    assert usual.of_workers == ()
    for number in range(3):
        (tmp_path / f"{WORKER}{number}").mkdir()
    labs: tuple[Lab, ...] = (usual, *usual.of_workers)
    assert [lab.root.name for lab in labs[1:]] == ["worker-0", "worker-1", "worker-2"]
    assert {lab.caches for lab in labs} == {tmp_path / "caches"}
    assert len({next(candidates(lab.root)) for lab in labs}) == len(labs)
