"""A snapshot's differences, the room it needs, and what may be deleted for it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.actual import Actual
from facts.reading.neighbours import Neighbours
from inventory.errors import ConflictError, DesiredStateError, PreconditionError
from inventory.service import Model
from inventory.snapshot import LocalSnapshot, Snapshot, SnapshotFile
from operations.difference import Difference
from operations.prune import doomed, named_commits, prunable, prune_differences
from operations.room import missing_bytes, require_room
from operations.snapshot import require_loadable, snapshot_differences
from tests.operations.boxes import box

SHARD = "model-00000-of-00003.safetensors"
SIZE = 1 << 31
GIT, SHA = "git-sha1:" + "0" * 40, "sha256:" + "1" * 64
LISTING = Snapshot(
    repo="o/n",
    revision="main",
    commit="a" * 40,
    files=(
        SnapshotFile(path="config.json", size=10, digest=GIT),
        SnapshotFile(path=SHARD, size=SIZE, digest=SHA),
    ),
)
WANT = LocalSnapshot.of(Model(repo="o/n"), LISTING)
FOLDER = "/shared/models/o/n/" + "a" * 40
OLD, OLDER = "b" * 40, "c" * 40


def manifest(commit: str = "a" * 40, repo: str = "o/n", problem: str = "", inode: int = 7) -> str:
    files = [
        {**file.to_json(), "modified_ns": 5_000_000_000, "inode": inode} for file in LISTING.files
    ]
    return json.dumps({"repo": repo, "commit": commit, "problem": problem, "files": files})


def files(modified: str = "5.0000000000", size: int = SIZE, inode: int = 7) -> str:
    return f"f|10|5.0000000000|998|{inode}|config.json\nf|{size}|{modified}|998|{inode}|{SHARD}"


def differences(actual: Actual) -> tuple[Difference, ...]:
    return snapshot_differences(WANT, actual.snapshot)


class TestDifferences:
    def test_absent(self) -> None:
        (found,) = differences(box(files=("", 3)))
        assert (found.want, found.have) == ("2 files, 2.0 GiB", "absent")

    def test_complete(self) -> None:
        assert differences(box(files=files(), manifest=manifest())) == ()

    def test_extra_files_are_no_difference(self) -> None:
        listing = files() + "\nf|1|9.0|0|9|model-00009-of-00003.safetensors"
        assert differences(box(files=listing, manifest=manifest())) == ()

    @pytest.mark.parametrize(
        "listing",
        [
            "f|10|5.0|998|7|config.json",
            f"f|10|5.0|998|7|config.json\nf|7|5.0|998|7|{SHARD}",
            f"f|10|5.0|998|7|config.json\nf|{SIZE}|5.000000001|998|7|{SHARD}",
            f"f|10|5.0|998|7|config.json\nf|{SIZE}|5.0|998|8|{SHARD}",
            f"f|10|5.0|998|7|config.json\nl|{SIZE}|5.0|998|7|{SHARD}",
        ],
        ids=["missing", "other size", "touched", "another file", "a link"],
    )
    def test_a_shard_that_is_not_as_it_was_is_named(self, listing: str) -> None:
        (found,) = differences(box(files=listing, manifest=manifest()))
        assert found.have == f"1 missing or changed: {SHARD}"

    def test_inodes_say_nothing_where_they_do_not_last(self) -> None:
        assert differences(box(files=files(inode=9), manifest=manifest(inode=0))) == ()

    def test_other_bytes_of_the_same_name_are_a_difference(self) -> None:
        text = manifest().replace("1" * 64, "2" * 64)
        (found,) = differences(box(files=files(), manifest=text))
        assert found.have == f"1 missing or changed: {SHARD}"

    def test_each_box_on_a_shared_folder_is_written_down(self) -> None:
        there = {"files": files(), "manifest": manifest()}
        (found,) = differences(box(**there, users="two\none"))
        assert found.attribute == "used by two"
        assert differences(box(**there, users="two\none\ntwo")) == ()

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            (manifest("b" * 40), "the snapshot of o/n at bbbbbbbbbbbb"),
            (manifest(repo="x/y"), "the snapshot of x/y"),
            (manifest()[:-9], "the manifest is damaged"),
        ],
    )
    def test_a_folder_of_something_else_is_refused(self, text: str, found: str) -> None:
        with pytest.raises(ConflictError) as caught:
            differences(box(files=files(), manifest=text))
        assert found in caught.value.found
        assert f"model.source={FOLDER}.old" in caught.value.next_step

    def test_a_folder_without_a_manifest_is_refused(self) -> None:
        with pytest.raises(ConflictError, match="without boxwright's manifest"):
            differences(box(files=files(), manifest=("", 1)))

    def test_a_complete_snapshot_that_cannot_be_loaded_stops_before_the_switch(self) -> None:
        actual = box(files=files(), manifest=manifest(problem="the index names 30 shards"))
        with pytest.raises(PreconditionError, match="names 30 shards"):
            require_loadable(WANT, actual.snapshot)
        require_loadable(WANT, box(files=files(), manifest=manifest()).snapshot)


class TestRoom:
    def room(self, free: int, kind: str = "rw", **more: str) -> Actual:
        account = "vllm:x:998:998::/nonexistent:/usr/sbin/nologin"
        sections: dict[str, str | tuple[str, int]] = {
            "files": ("", 3),
            "account": account,
            **more,
        }
        return box(**sections, disks=f"{FOLDER}|/shared|{kind}|{free} 1 1 xfs /shared")

    def test_room_is_what_is_missing_and_not_what_is_there(self) -> None:
        assert missing_bytes(LISTING, box(files=("", 3)).snapshot) == LISTING.size
        assert missing_bytes(LISTING, box(files=files()).snapshot) == 0
        assert missing_bytes(LISTING, box(files=files(size=5)).snapshot) == SIZE

    @pytest.mark.parametrize(
        ("sections", "missing"),
        [
            ({"beside": f"file|1|99|{SIZE}|.fetching-{'a' * 40}/{SHARD}"}, 10),
            (
                {"beside": f"file|1|2048|5|.fetching-{'a' * 40}/.boxwright/parts/{'1' * 64}-0"},
                SIZE + 10 - (1 << 20),
            ),
            ({"beside": f"file|1|99|{SIZE}|.fetching-{OLD}/{SHARD}"}, SIZE + 10),
            ({"beside": "", "proven": manifest(OLD)}, 0),
            ({"beside": "device|2049", "cached": f"2049|998|{SIZE}|{'1' * 64}"}, 10),
            ({"beside": "device|2049", "cached": f"99|998|{SIZE}|{'1' * 64}"}, SIZE + 10),
            ({"beside": "device|2049", "cached": f"2049|0|{SIZE}|{'1' * 64}"}, SIZE + 10),
            ({"beside": "device|2049", "cached": f"2049|998|5|{'1' * 64}"}, SIZE + 10),
        ],
        ids=[
            "interrupted",
            "on its way",
            "another's",
            "older commit",
            "cache",
            "cache elsewhere",
            "another user's cache",
            "half a cache",
        ],
    )
    def test_what_the_box_has_already_needs_no_room(
        self, sections: dict[str, str], missing: int
    ) -> None:
        actual = self.room(0, **sections)
        assert missing_bytes(LISTING, actual.snapshot, actual.neighbours) == missing

    @pytest.mark.parametrize("free", [0, (2 << 30) + 10, (3 << 30) + 9])
    def test_too_little_room_is_refused_in_bytes(self, free: int) -> None:
        with pytest.raises(PreconditionError) as caught:
            require_room(WANT, self.room(free))
        assert "/shared (xfs)" in caught.value.found
        assert "2.0 GiB" in caught.value.wanted

    def test_enough_room(self) -> None:
        require_room(WANT, self.room((3 << 30) + 10))
        require_room(WANT, self.room(10), freed=3 << 30)

    def test_a_read_only_file_system_is_refused(self) -> None:
        with pytest.raises(PreconditionError, match="cannot be written"):
            require_room(WANT, self.room(1 << 50, "ro"))

    def test_a_complete_snapshot_needs_no_room(self) -> None:
        whole = box(
            files=files(),
            manifest=manifest(),
            disks=f"{FOLDER}|/shared|ro|0 1 1 nfs4 /shared",
        )
        require_room(WANT, whole)

    def test_what_could_be_deleted_is_named_with_what_it_frees(self) -> None:
        beside = (
            f"file|1|{(4 << 30) // 512}|5|{OLD}/a\nfile|2|{(9 << 30) // 512}|5|{OLD}/linked\n"
            f"file|1|8|5|{OLDER}/a\nfile|1|8|5|.fetching-{'a' * 40}/a"
        )
        uses = f"unit|{OLDER}|/etc/systemd/system/vllm-old.service"
        with pytest.raises(PreconditionError) as caught:
            require_room(WANT, self.room(0, beside=beside, uses=uses))
        step = caught.value.next_step
        assert f"--data prune={OLD[:12]} to delete {OLD} (4.0 GiB)" in step
        assert f"retire {OLDER[:12]} (unit vllm-old.service)" in step
        assert "fetching" not in step


class TestPrune:
    def beside(self, uses: str = "") -> Neighbours:
        lines = f"file|1|2048|5|{OLD}/a\nfile|1|2048|5|.fetching-{OLDER}/a"
        lines += f"\nfile|1|2048|5|.fetching-{'a' * 40}/a"
        return box(beside=lines, uses=uses).neighbours

    def test_only_what_is_named_goes(self) -> None:
        assert [one.name for one in doomed((OLD[:12],), WANT, self.beside())] == [OLD]
        assert [one.name for one in doomed((OLDER[:12],), WANT, self.beside())] == [
            f".fetching-{OLDER}"
        ]
        assert doomed((), WANT, self.beside()) == ()
        assert prunable((OLD[:9], OLDER[:9]), WANT, self.beside()) == 2 << 20

    def test_the_served_one_never_goes(self) -> None:
        assert prune_differences(("a" * 12,), WANT, self.beside()) == ()

    @pytest.mark.parametrize(
        "user", ["unit|{}|/etc/systemd/system/x.service", "process|{}|812", "box|{}|gpu2"]
    )
    def test_nothing_goes_that_is_used(self, user: str) -> None:
        with pytest.raises(ConflictError, match=r"x\.service|process 812|box gpu2"):
            doomed((OLD[:12],), WANT, self.beside(user.format(OLD)))

    def test_a_box_does_not_hold_itself(self) -> None:
        uses = f"box|{OLD}|gpu1"
        lines = f"file|1|2048|5|{OLD}/a"
        mine = box(beside=lines, uses=uses, users="gpu1").neighbours
        assert [one.name for one in doomed((OLD[:12],), WANT, mine)] == [OLD]
        others = box(beside=lines, uses=uses, users="gpu2").neighbours
        with pytest.raises(ConflictError, match="box gpu1"):
            doomed((OLD[:12],), WANT, others)

    @pytest.mark.parametrize("text", ["all", "*", "abc", "../../etc", "a" * 8 + ",x"])
    def test_names_are_commits(self, text: str) -> None:
        with pytest.raises(DesiredStateError):
            named_commits(text)

    @given(st.text())
    def test_whatever_is_said_only_commits_come_out(self, text: str) -> None:
        try:
            names = named_commits(text)
        except DesiredStateError:
            return
        assert all(set(name) <= set("0123456789abcdef") and len(name) >= 7 for name in names)
