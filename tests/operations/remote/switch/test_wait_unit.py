"""The waiter under real systemd: every verdict, and how long after the event it came."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator

import pytest

from facts.journal.lines import read_journal
from facts.journal.phases import phases
from tests.lab.base import Lab
from tests.lab.box import Box
from tests.operations.remote.switch.waiting import (
    FOLDER,
    MODEL,
    PORT,
    Seen,
    engine,
    prepare,
    watch,
    write_unit,
)

pytestmark = [pytest.mark.lab, pytest.mark.timeout(120)]

UNIT = "new.service"
PROMPTLY = 2.0
"""Seconds from an event to its verdict."""
AT_ONCE = 0.25
"""Seconds from an event to its line."""


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    with Box("waiting", Lab(), user="root", simulated=True) as box:
        prepare(box, tmp_path_factory.mktemp("wheel"))
        yield box


def start(*commands: str) -> str:
    """Commands that start the unit before the wait."""
    return "; ".join([f"systemctl start {UNIT}", *commands])


def milestone_times(box: Box, seen: Seen) -> dict[str, float]:
    """Monotonic time of each entry of the start, by its text."""
    shown = box.run(
        f"journalctl -o json --output-fields=MESSAGE --no-pager "
        f"_SYSTEMD_INVOCATION_ID={seen.ready['invocation']}"
    ).stdout
    found = [json.loads(line) for line in shown.splitlines()]
    return {str(one["MESSAGE"]): int(one["__MONOTONIC_TIMESTAMP"]) / 1e6 for one in found}


def moment(box: Box, prop: str) -> float:
    """A time that systemd keeps of the unit."""
    return int(box.run(f"systemctl show --value -p {prop} {UNIT}").stdout) / 1e6


def delay(box: Box, seen: Seen) -> float:
    """Seconds from systemd's word that the start is over to the verdict."""
    said = "MESSAGE_ID=7ad2d189f7e94e70a38c781354912448 MESSAGE_ID=d9b373ed55a64feb8242e02dbe79a49c"
    shown = box.run(f"journalctl -o json -n 1 --no-pager UNIT={UNIT} {said}").stdout
    return seen.at - int(json.loads(shown)["__MONOTONIC_TIMESTAMP"]) / 1e6


def test_ready_with_its_phases(box: Box) -> None:
    write_unit(box, UNIT, engine(box, {"load_seconds": 2}))
    seen = watch(
        box,
        UNIT,
        first=start(),
        length=4096,
        before={"load": 0.8, "compile": 0.4, "capture": 0.2},
        environment="http_proxy=http://127.0.0.1:9 all_proxy=http://127.0.0.1:9",
    )
    assert (seen.kind, seen.sentence) == ("ready", "")
    took, parts = seen.ready["seconds"], seen.ready["phases"]
    assert sum(parts.values()) == pytest.approx(took, rel=0.02)
    assert parts["load"] == pytest.approx(0.8, abs=0.4)
    read = phases(read_journal("\n".join(seen.ready["lines"])))
    assert read.total == pytest.approx(took, abs=0.5)
    assert read.engine.kv_cache_tokens
    said = [line for _, line in seen.lines]
    assert f"{UNIT} active (running)" in said[0]
    assert "about" in next(line for line in said if "import took" in line)
    times = milestone_times(box, seen)
    assert seen.at - max(times.values()) < PROMPTLY
    lines_come_at_once(seen, times)


def lines_come_at_once(seen: Seen, times: dict[str, float]) -> None:
    began = seen.lines[0][0]
    ends = {
        "load": "Model loading took",
        "compile": "torch.compile took",
        "profile": "KV cache size:",
        "capture": "Graph capturing finished",
        "warm-up": "init engine",
        "server": "Application startup complete",
    }
    behind = []
    for phase, text in ends.items():
        said = min(at for at, line in seen.lines if f"{phase} took" in line)
        event = min(at for entry, at in times.items() if text in entry)
        if event > began:
            behind.append(said - event)
    assert len(behind) >= 4
    assert statistics.median(behind) < AT_ONCE
    assert min(behind) > -0.01


def test_a_start_that_began_before_is_read_from_its_beginning(box: Box) -> None:
    write_unit(box, UNIT, engine(box, {"load_seconds": 2}))
    late = start("sleep 1", "journalctl --rotate")
    seen = watch(box, UNIT, first=late, during="sleep 0.5; journalctl --rotate")
    assert seen.kind == "ready"
    parts, took = seen.ready["phases"], seen.ready["seconds"]
    assert {"import", "configuration", "load", "warm-up", "server"} <= set(parts)
    assert sum(parts.values()) == pytest.approx(took, rel=0.02)
    assert took > seen.at - seen.began
    again = watch(box, UNIT)
    assert again.kind == "ready"
    assert again.at - again.began < 1.5
    assert again.ready["seconds"] == pytest.approx(took, abs=0.5)
    assert set(again.ready["phases"]) == set(parts)
    wrong = watch(box, UNIT, length=512)
    assert wrong.kind == "wrong-length"
    assert "4096 tokens, and 512 are declared" in wrong.sentence


def test_a_key_guards_the_list_of_models(box: Box) -> None:
    write_unit(box, UNIT, engine(box, {}, more="--api-key letmein"))
    seen = watch(box, UNIT, first=start())
    assert seen.kind == "ready"
    assert "letmein" not in json.dumps(seen.ready)


def test_another_model(box: Box) -> None:
    write_unit(box, UNIT, engine(box, {}, name="lab/old"))
    seen = watch(box, UNIT, first=start())
    assert seen.kind == "wrong-model"
    assert "for lab/old and not for lab/new" in seen.sentence


def test_crashed(box: Box) -> None:
    limits = ("Restart=on-failure", "RestartSec=30", "[Unit]", "StartLimitBurst=3")
    write_unit(box, UNIT, engine(box, {"crash": "sampler-oom"}), *limits)
    seen = watch(box, UNIT, first=start())
    assert seen.kind == "crashed"
    assert "exit status 1; systemd tries again after 30 s (start 1 of the 3" in seen.sentence
    assert delay(box, seen) < PROMPTLY


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("/opt/waiting/absent", "exit status 203 (EXEC"),
        ("/bin/sh -c 'sleep 0.5; kill -9 $$$$'", "SIGKILL"),
    ],
)
def test_crashed_in_words(box: Box, command: str, words: str) -> None:
    write_unit(box, UNIT, command)
    seen = watch(box, UNIT, first=start())
    assert seen.kind == "crashed"
    assert words in seen.sentence
    assert delay(box, seen) < PROMPTLY


def test_crash_looping(box: Box) -> None:
    limits = ("Restart=always", "RestartSec=0.1", "[Unit]", "StartLimitBurst=100")
    write_unit(box, UNIT, "/bin/sh -c 'sleep 0.4; exit 3'", *limits)
    restarted = f"until systemctl show -p NRestarts {UNIT} | grep -q '=[1-9]'; do sleep 0.1; done"
    seen = watch(box, UNIT, first=start(restarted))
    assert seen.kind == "crash-looping"
    assert re.search(r"restarted it (once|\d+ times)", seen.sentence)
    assert seen.at - seen.began < PROMPTLY


def test_start_limit(box: Box) -> None:
    limits = ("Restart=always", "RestartSec=0.1", "[Unit]", "StartLimitBurst=2")
    write_unit(box, UNIT, "/bin/sh -c 'exit 4'", *limits)
    failed = f"until systemctl is-failed -q {UNIT}; do sleep 0.1; done"
    seen = watch(box, UNIT, first=start(failed))
    assert seen.kind == "start-limit"
    assert "exit status 4; it used up the 2 starts" in seen.sentence
    assert seen.at - seen.began < PROMPTLY


def test_a_restart_of_what_had_served_is_no_loop(box: Box) -> None:
    write_unit(box, UNIT, engine(box, {}), "Restart=always", "RestartSec=0.1")
    assert watch(box, UNIT, first=start()).kind == "ready"
    killed = f"systemctl kill -s KILL {UNIT}; sleep 0.4"
    seen = watch(box, UNIT, first=killed)
    assert box.run(f"systemctl show -p NRestarts {UNIT}").stdout.strip() == "NRestarts=1"
    assert (seen.kind, seen.sentence) == ("ready", "")


@pytest.mark.parametrize("restart", ["no", "always"])
def test_exited_0(box: Box, restart: str) -> None:
    plan = {"crash": "weights-oom", "exit": 0}
    write_unit(box, UNIT, engine(box, plan), f"Restart={restart}", "RestartSec=30")
    seen = watch(box, UNIT, first=start())
    assert seen.kind == "exited-0"
    assert delay(box, seen) < PROMPTLY


def test_hung(box: Box) -> None:
    write_unit(box, UNIT, engine(box, {"hang_at": "compile"}))
    seen = watch(box, UNIT, first=start(), before={"compile": 0.5, "load": 0.3}, patience_floor=1.0)
    assert seen.kind == "hung"
    assert "hangs in phase compile" in seen.sentence
    shown = box.run(f"journalctl -o json -n 1 -u {UNIT} _TRANSPORT=stdout").stdout
    last = int(json.loads(shown)["__MONOTONIC_TIMESTAMP"]) / 1e6
    assert 1.5 < seen.at - last < 1.5 + PROMPTLY


def test_a_server_that_says_nothing_hangs(box: Box) -> None:
    write_unit(box, UNIT, engine(box, {"serve": "silent"}))
    seen = watch(box, UNIT, first=start(), patience={"answer": 1.0})
    assert seen.kind == "hung"
    assert "says that it is up, and has not answered" in seen.sentence
    said = next(at for at, line in seen.lines if "server took" in line)
    assert seen.at - said < 1.0 + PROMPTLY + 4, "two rounds of questions come first"


def test_a_stranger_listens(box: Box) -> None:
    write_unit(box, UNIT, "/bin/sleep 60")
    stranger = (
        "import socket, time, pathlib; "
        f"taken = socket.create_server(('{box.address}', {PORT})); "
        f"pathlib.Path('{FOLDER}/taken').write_text(str(time.monotonic())); time.sleep(60)"
    )
    box.run(f"cat >{FOLDER}/stranger.py", stdin=stranger)
    during = f"sleep 0.5; systemd-run --unit stranger python3 {FOLDER}/stranger.py"
    seen = watch(box, UNIT, first=start(), during=during)
    assert seen.kind == "wrong-listener"
    shown = f"systemctl show --value -p MainPID stranger; cat {FOLDER}/taken"
    pid, taken = box.run(f"{shown}; systemctl stop stranger").stdout.split()
    assert f"python3 (pid {pid}, stranger.service)" in seen.sentence
    assert seen.at - float(taken) < PROMPTLY


def test_stopped(box: Box) -> None:
    # An engine that loads ignores the signal: the verdict does not wait for its end.
    write_unit(box, UNIT, engine(box, {"hang_at": "load"}), "TimeoutStopSec=20")
    during = f"sleep 1; systemctl stop --no-block {UNIT}"
    seen = watch(box, UNIT, first=start(), during=during)
    assert seen.kind == "stopped"
    changed = moment(box, "ActiveExitTimestampMonotonic")
    assert seen.at - changed < PROMPTLY


def test_stopped_before_it_began(box: Box) -> None:
    write_unit(box, UNIT, "/bin/sleep 60")
    assert watch(box, UNIT).kind == "stopped"
    absent = watch(box, "absent.service")
    assert (absent.kind, "not-found" in absent.sentence) == ("stopped", True)


def test_timeout(box: Box) -> None:
    # What prints elsewhere may be silent in the journal for as long as it likes.
    write_unit(box, UNIT, "/bin/sleep 60", "StandardOutput=null")
    seen = watch(box, UNIT, first=start(), timeout=1.5, patience={"": 0.2})
    assert seen.kind == "timeout"
    assert "not ready in 1.5 s: unit active (running), phase import" in seen.sentence
    began = moment(box, "ExecMainStartTimestampMonotonic")
    assert 1.5 <= seen.at - began < 1.5 + PROMPTLY


def test_progress_of_the_shards_does_not_flood(box: Box) -> None:
    script = (
        "echo '(W pid=1) INFO 01-01 00:00:00 [a.py:1] Loading model from scratch...'; "
        "for i in $(seq 1 42); do "
        "printf '\\rLoading safetensors checkpoint shards: %%3d%%%% Completed\\n' $i; "
        "sleep 0.1; done; exit 5"
    )
    write_unit(box, UNIT, f'/bin/bash -c "{script.replace("$", "$$")}"')
    seen = watch(box, UNIT, first=start())
    assert seen.kind == "crashed"
    moved = [line for _, line in seen.lines if " %" in line]
    assert 1 <= len(moved) <= 2
    assert re.search(r"load \d+ % after \d\.\d s", moved[0])


def test_by_hand(box: Box) -> None:
    write_unit(box, UNIT, engine(box, {}))
    box.run(start())
    command = (
        f"cd {FOLDER}; python3 -m operations.remote.switch.waiting.wait --unit {UNIT} "
        f"--url http://{box.address}:{PORT} --timeout 30 --model"
    )
    shown = box.run(f"{command} {MODEL}").stdout
    assert re.search(r"ready after \d+\.\d s$", shown.strip())
    failed = box.run(f"{command} lab/other", check=False)
    assert failed.returncode == 1
    assert "journal: " in failed.stdout
    assert "wrong-model: " in failed.stdout
    assert not box.run("pgrep -f remote.switch.waiting", check=False).stdout
