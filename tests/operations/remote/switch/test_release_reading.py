"""What nvidia-smi and /proc say of the holders of a GPU, and what is concluded from it."""

from __future__ import annotations

import doctest
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.common.cgroup import ProcessOrigin
from operations.remote.switch.gpu_memory import holders
from operations.remote.switch.gpu_memory.holders import (
    Holder,
    phrase,
    since,
    start_ticks,
    title,
)
from operations.remote.switch.gpu_memory.occupancy import Sample, foreign, reasons
from operations.remote.switch.gpu_memory.smi import (
    GpuReading,
    ProcessRow,
    ToolOutput,
    on_cards,
    parse_apps,
    parse_cards,
)

A, B = "GPU-00000001-5107-4b0c-8000-000000000001", "GPU-00000002-5107-4b0c-8000-000000000002"
ROW = "{index}, Disabled, {uuid}, P8, {used}, 97887, NVIDIA RTX PRO 6000"


def cards(*lines: str, status: int | None = 0) -> dict[str, GpuReading]:
    return parse_cards(ToolOutput(status, "\n".join(lines) + "\n"), [A, B])


def test_memory_of_two_cards() -> None:
    read = cards(ROW.format(index=0, uuid=A, used=4), ROW.format(index=7, uuid=B, used=61440))
    assert [(card.used, card.label) for card in read.values()] == [
        (4, "GPU 0 (GPU-00000001)"),
        (61440, "GPU 7 (GPU-00000002)"),
    ]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (f"0, Disabled, {A}, P8, [N/A], 46068, NVIDIA L40S", "memory.used is [N/A]"),
        (
            f"0, Disabled, {A}, P8, [Insufficient Permissions], 46068, L40S",
            "[Insufficient Permissions]",
        ),
        (f"0, Disabled, {A}, [GPU requires reset], 0, 46068, NVIDIA L40S", "[GPU requires reset]"),
        (f"0, Disabled, {A}, [Unknown Error], 0, 46068, NVIDIA L40S", "[Unknown Error]"),
        (f"0, Enabled, {A}, P0, 59, 81559, NVIDIA H100 80GB HBM3", "MIG is Enabled"),
        (
            f"0, [Unknown Error], {A}, P0, 59, 81559, NVIDIA H100 80GB HBM3",
            "MIG is [Unknown Error]",
        ),
        ("Unable to determine the device handle for GPU0000:81:00.0: Unknown Error", "no row"),
        ("", "no row"),
    ],
)
def test_what_a_card_does_not_tell_is_never_a_number(row: str, why: str) -> None:
    read = cards(row)
    assert read[A].used is None
    assert why in read[A].why
    assert not Sample(read, ()).free
    assert any(why in words for words in Sample(read, ()).unknown)


def test_a_card_that_is_lost_spoils_the_status_and_not_the_other_rows() -> None:
    lost = "Unable to determine the device handle for GPU0000:81:00.0: Unknown Error"
    read = cards(ROW.format(index=0, uuid=A, used=0), lost, status=15)
    assert (read[A].used, read[B].used) == (0, None)
    assert lost in read[B].why


def test_a_driver_that_fails_tells_of_no_card() -> None:
    read = cards("Failed to initialize NVML: Driver/library version mismatch", status=18)
    assert {card.used for card in read.values()} == {None}
    assert Sample(read, ()).unknown == (
        f"{A}, {B}: not known to be free (nvidia-smi ended with status 18: "
        "Failed to initialize NVML: Driver/library version mismatch)",
    )


def test_an_answer_that_was_cut_off_in_time_counts_for_nothing() -> None:
    assert cards(ROW.format(index=0, uuid=A, used=0), status=None)[A].used is None


def test_a_gpu_without_memory_of_its_own_is_held_by_its_processes_alone() -> None:
    read = parse_cards(ToolOutput(0, f"0, [N/A], {A}, P8, [N/A], [N/A], NVIDIA GB10\n"), [A])
    assert Sample(read, ()).free
    held = Holder(5, "python3", ((A, None),))
    assert not Sample(read, (held,)).free


@given(st.text(), st.sampled_from([None, 0, 15]))
def test_any_text_is_read_and_no_card_is_left_out(text: str, status: int | None) -> None:
    read = parse_cards(ToolOutput(status, text), [A, B])
    assert set(read) == {A, B}
    for card in read.values():
        assert (card.used is None) == bool(card.why)


@given(st.lists(st.sampled_from([A, B, "[N/A]"])), st.text(alphabet="abc,/ ?[]é\ufffd"))
def test_no_process_is_lost(gpus: list[str], name: str) -> None:
    text = "".join(f"{gpu}, {10 + at}, 5, {name}\n" for at, gpu in enumerate(gpus))
    read = parse_apps(text)
    assert [(p.gpu, p.pid, p.mib) for p in read] == [(g, 10 + at, 5) for at, g in enumerate(gpus)]
    assert {process.name for process in read} <= {name.strip()}


@given(st.text())
def test_any_line_about_processes_is_a_process(text: str) -> None:
    assert len(parse_apps(text)) == sum(1 for line in text.splitlines() if line.strip())


def test_processes_that_are_told_badly_are_processes_all_the_same() -> None:
    row = "[Insufficient Permissions]"
    hidden, garbage, silent = parse_apps(
        f"{row}, {row}, {row}, {row}\n{A}, 4294967295, 12, python\n{A}, 3183, [N/A], [Not Found]\n"
    )
    assert (hidden.pid, garbage.pid, silent) == (
        None,
        None,
        ProcessRow(A, 3183, None, "[Not Found]"),
    )
    read = cards(ROW.format(index=0, uuid=A, used=0), ROW.format(index=1, uuid=B, used=0))
    assert on_cards([hidden, garbage, silent], read) == (hidden, garbage, silent)
    for process in (hidden, garbage, silent):
        assert not Sample(read, holders.identify([process])).free


def test_slices_count_where_one_of_the_cards_is_cut() -> None:
    part = ProcessRow("MIG-1c5e6a0f-0000", 5, 100, "python")
    assert on_cards([part], {A: GpuReading(A, 0, 5)}) == ()
    assert on_cards([part], {A: GpuReading(A, 0, None, "MIG is Enabled", mig=True)}) == (part,)


@given(st.text(alphabet=") (a1S"), st.integers(0, 1 << 62))
def test_the_start_is_read_behind_any_command(command: str, ticks: int) -> None:
    fields = ["S", *["1"] * 18, str(ticks), "9", "9"]
    assert start_ticks(f"77 ({command}) {' '.join(fields)}\n") == ticks


@given(st.text())
def test_any_stat_is_read(text: str) -> None:
    assert start_ticks(text) is None or str(start_ticks(text))


def test_since() -> None:
    at = time.mktime((2026, 11, 30, 14, 2, 11, 0, 0, -1))
    assert since(at, at + 5) == "since 14:02:11, 5 s ago"
    assert since(at, at + 185) == "since 14:02:11, 3 min ago"
    assert since(at, at + 7300) == "since 14:02:11, 2 h ago"
    assert since(at, at + 86400 * 3 + 7) == "since 2026-11-30 14:02:11, 3 d ago"
    assert since(at + 1, at) == "since 14:02:12, 0 s ago"


@pytest.mark.parametrize(
    ("name", "words", "shown"),
    [
        (
            "/usr/bin/python3",
            "/usr/bin/python3 -I /home/u/train.py --key secret",
            "python3 train.py",
        ),
        ("python3.12", "python3.12 -m vllm.serve --api-key secret", "python3.12 -m vllm.serve"),
        ("/usr/bin/python3", "/usr/bin/python3 -c secret()", "python3"),
        ("/usr/bin/python3", "", "python3"),
        ("VLLM::Worker_TP0", "VLLM::Worker_TP0", "VLLM::Worker_TP0"),
        ("/opt/trtllm/server", "/opt/trtllm/server --key secret", "server"),
    ],
)
def test_a_name_shows_no_arguments(name: str, words: str, shown: str) -> None:
    assert title(name, words.split()) == shown


def test_one_holder_on_two_cards_is_one_phrase(tmp_path: Path) -> None:
    processes = [ProcessRow(A, 5, 2048, "python3"), ProcessRow(B, 5, None, "python3")]
    (holder,) = holders.identify(processes, tmp_path)
    assert holder.is_hidden
    assert phrase(holder, {A: GpuReading(A, 0), B: GpuReading(B, 1)}, 0.0) == (
        "python3 (pid 5, not in /proc: of another pid namespace, or just gone) holds "
        "2.0 GiB of GPU 0 (GPU-00000001), an unknown amount of GPU 1 (GPU-00000002)"
    )


def test_a_number_of_another_namespace_is_nobody_here(tmp_path: Path) -> None:
    (tmp_path / "5").mkdir()
    (tmp_path / "5" / "stat").write_text(f"5 (sshd) {' '.join(['S', *['1'] * 30])}\n")
    (tmp_path / "5" / "cgroup").write_text("0::/system.slice/vllm-old.service\n")
    (tmp_path / "5" / "cmdline").write_bytes(b"sshd\0")
    (seen,) = holders.identify([ProcessRow(A, 5, 1, "/usr/sbin/sshd")], tmp_path)
    assert (seen.unit, seen.name, seen.ticks) == ("vllm-old.service", "sshd", 1)
    (hidden,) = holders.identify([ProcessRow(A, 5, 1, "[Not Found]")], tmp_path)
    assert (hidden.unit, hidden.name, hidden.is_hidden) == (None, "a process without a name", True)


OURS = frozenset({"vllm-old.service"})
OUR = Holder(1, "VLLM::Worker", ((A, 9),), ProcessOrigin("vllm-old.service", "in vllm-old.service"))
OTHER = Holder(2, "train", ((A, 9),), ProcessOrigin("tenant.service", "in tenant.service"))
LOOSE = Holder(3, "train", ((A, 9),), ProcessOrigin(None, "in no unit"))
HIDDEN = Holder(4, "train", ((A, 9),))


def seen(*holders: Holder, numbered: bool = True) -> Sample:
    return Sample({A: GpuReading(A, 0, 9)}, holders, numbered=numbered)


def test_strangers_are_those_of_no_unit_of_ours() -> None:
    assert foreign(seen(OUR, OTHER, LOOSE), OURS, running=True) == (OTHER, LOOSE)
    assert foreign(seen(OUR), frozenset(), running=False) == (OUR,)


def test_a_hidden_process_may_be_ours_only_where_none_is_told_by_its_number_here() -> None:
    assert foreign(seen(HIDDEN, numbered=False), OURS, running=False) == (HIDDEN,)
    assert foreign(seen(HIDDEN, numbered=False), OURS, running=True) == ()
    assert foreign(seen(HIDDEN, OUR), OURS, running=True) == (HIDDEN,)


@given(
    used=st.integers(0, 100_000),
    total=st.sampled_from([0, 24_576, 143_771]),
    held=st.lists(st.sampled_from([OUR, OTHER, LOOSE, HIDDEN])),
    blind=st.sampled_from(["", "no answer"]),
)
def test_free_is_all_known_and_nothing_held(
    used: int, total: int, held: list[Holder], blind: str
) -> None:
    used_card = GpuReading(A, 0, used, total=total)
    sample = Sample({A: used_card, B: GpuReading(B, 1, 0)}, tuple(held), blind)
    assert sample.free == (used <= max(500, total / 100) and not held and not blind)
    assert bool(reasons(sample)) == (not sample.free), "what is not free has a reason"


def test_the_reserve_of_a_large_card_is_nobodys_memory() -> None:
    row = f"0, Disabled, {A}, P8, 614, 143771, NVIDIA H200"
    assert Sample({A: cards(row)[A]}, ()).free
    assert not Sample({A: cards(row.replace("143771", "[N/A]"))[A]}, ()).free


def test_memory_without_a_process_is_said() -> None:
    (words,) = reasons(Sample({A: GpuReading(A, 0, 61440), B: GpuReading(B, 1, 0)}, ()))
    assert words == "60.0 GiB of GPU 0 (GPU-00000001) in use, by no process that is shown"


def test_examples() -> None:
    assert doctest.testmod(holders).failed == 0
