"""What is different is found, and nothing else: each concern, case by case."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.actual import Actual, read_actual
from facts.query import PACKAGES, query_for, script
from facts.reading.engines import EngineState
from inventory.catalogue import KIMI_K25, MINIMAX_M25
from inventory.engine import Vllm
from inventory.errors import ConflictError, PreconditionError
from operations.difference import Difference, differing
from operations.engine import engine_differences, engine_script
from operations.host import ground_differences
from operations.service import (
    old_service_differences,
    readiness_differences,
    require_port,
    service_differences,
)
from operations.unit import unified, unit_differences
from tests.operations.boxes import absent, box, unit

NAME = MINIMAX_M25.unit


def attributes(differences: tuple[Difference, ...]) -> list[str]:
    return [difference.attribute for difference in differences]


@given(st.lists(st.tuples(st.text(), st.integers(0, 2), st.integers(0, 2))))
def test_a_difference_is_two_values_that_differ(rows: list[tuple[str, int, int]]) -> None:
    expected = [name for name, want, have in rows if want != have]
    assert attributes(differing("x", rows)) == expected


class TestGround:
    FOLDERS = "\n".join(
        f"{path}|directory|755|{owner}|{owner}"
        for path, owner in {
            "/shared/models": "root",
            "/shared/models/MiniMaxAI/MiniMax-M2.5": "vllm",
            "/opt/vllm": "root",
            "/var/lib/boxwright": "root",
            "/var/lib/boxwright/ready": "root",
        }.items()
    )
    INSTALLED = "\n".join(f"{name} installed" for name in PACKAGES)

    def box(self, **changed: str | tuple[str, int]) -> Actual:
        sections: dict[str, str | tuple[str, int]] = {
            "packages": self.INSTALLED,
            "account": "vllm:x:998:998::/nonexistent:/usr/sbin/nologin",
            "folders": self.FOLDERS,
        }
        return box(**{**sections, **changed})

    def test_a_prepared_box(self) -> None:
        assert ground_differences(MINIMAX_M25, self.box()) == ()

    def test_a_fresh_box_lacks_everything_by_name(self) -> None:
        fresh = self.box(
            packages="",
            account=("", 2),
            folders=self.FOLDERS.replace("directory|755|root|root", "absent").replace(
                "directory|755|vllm|vllm", "absent"
            ),
        )
        resources = [d.resource for d in ground_differences(MINIMAX_M25, fresh)]
        assert resources[: len(PACKAGES)] == [f"package {name}" for name in PACKAGES]
        assert "user vllm" in resources
        assert "folder /shared/models/MiniMaxAI/MiniMax-M2.5" in resources

    def test_a_shared_folder_keeps_its_owner_and_the_models_own_does_not(self) -> None:
        found = ground_differences(
            MINIMAX_M25, self.box(folders=self.FOLDERS.replace("|vllm|vllm", "|root|root"))
        )
        assert [(d.attribute, d.want, d.have) for d in found] == [("owner", "vllm", "root")]

    def test_packages_that_could_not_be_read_are_not_installed_again(self) -> None:
        assert ground_differences(MINIMAX_M25, self.box(packages=("dpkg: not found", 127))) == ()


class TestEngine:
    WANT = Vllm(version="0.32.0", requirements=("flashinfer-cubin==0.6.1",))

    def test_absent_and_unfinished(self) -> None:
        absent_one = engine_differences(self.WANT, EngineState(exists=False))
        assert (absent_one[0].attribute, absent_one[0].have) == ("state", "absent")
        half = EngineState(
            exists=True, distributions={"vllm": "0.32.0", "flashinfer-cubin": "0.6.1"}
        )
        assert [(d.attribute, d.have) for d in engine_differences(self.WANT, half)] == [
            ("state", "unfinished")
        ]

    def test_another_version_is_a_difference(self) -> None:
        have = EngineState(
            exists=True,
            finished=True,
            distributions={"vllm": "0.31.0", "flashinfer-cubin": "0.6.1"},
        )
        (found,) = engine_differences(self.WANT, have)
        assert (found.attribute, found.want, found.have) == ("vllm", "0.32.0", "0.31.0")

    def test_a_finished_environment_is_mended_in_place(self) -> None:
        assert "rm -rf" in engine_script(self.WANT, EngineState(exists=True))
        assert "rm -rf" not in engine_script(self.WANT, EngineState(exists=True, finished=True))

    def test_a_wheelhouse_replaces_every_index(self) -> None:
        want = Vllm(version="0.32.0", wheelhouse="/srv/wheelhouse")
        assert "--no-index --find-links /srv/wheelhouse" in engine_script(
            want, EngineState(exists=False)
        )


class TestUnit:
    TEXT = "[Unit]\nDescription=x\n[Service]\nEnvironment=A=1\nExecStart=/bin/a \\\n    -b\n"

    def installed(self, text: str, **changed: str) -> Actual:
        digest = hashlib.sha256(text.encode()).hexdigest()
        head = f"regular file|{changed.pop('mode', '644')}|root|root|1.0\n{digest}  -\n"
        return box(**{"units": unit(NAME, **changed), f"unit-file__{NAME}": head + text})

    def uninstalled(self) -> Actual:
        sections: dict[str, str | tuple[str, int]] = {"units": absent(NAME)}
        return box(**sections, **{f"unit-file__{NAME}": ("", 3)})

    def differences(self, actual: Actual) -> tuple[Difference, ...]:
        return unit_differences(NAME, self.TEXT, actual.unit(NAME))

    def test_installed(self) -> None:
        assert self.differences(self.installed(self.TEXT)) == ()

    def test_absent(self) -> None:
        actual = self.uninstalled()
        assert attributes(self.differences(actual)) == ["file"]

    def test_directives_are_named_one_by_one(self) -> None:
        other = self.TEXT.replace("A=1", "A=2").replace("-b", "-c").replace("Description=x\n", "")
        found = self.differences(self.installed(other))
        assert attributes(found) == [
            "[Unit] Description",
            "[Service] Environment A",
            "[Service] ExecStart",
        ]
        assert (found[1].want, found[1].have) == ("1", "2")

    def test_a_comment_alone_is_still_a_difference(self) -> None:
        assert attributes(self.differences(self.installed(f"# mine\n{self.TEXT}"))) == ["text"]

    def test_mode_and_load(self) -> None:
        found = self.differences(self.installed(self.TEXT, mode="600", reload="yes"))
        assert attributes(found) == ["mode", "loaded"]

    @pytest.mark.parametrize("word", ["masked", "masked-runtime"])
    def test_a_masked_unit_is_an_administrators_word(self, word: str) -> None:
        actual = box(units=unit(NAME, "inactive", "dead", word, "masked"))
        with pytest.raises(PreconditionError, match="unmask"):
            self.differences(actual)

    def test_a_link_is_not_written_through(self) -> None:
        head = "symbolic link|777|root|root|1.0\n" + "0" * 64 + "  -\n"
        actual = box(**{"units": unit(NAME), f"unit-file__{NAME}": head})
        with pytest.raises(ConflictError, match="symbolic link"):
            self.differences(actual)

    def test_the_diff_of_an_absent_file_is_all_of_it(self) -> None:
        actual = self.uninstalled()
        lines = unified(NAME, self.TEXT, actual.unit(NAME)).splitlines()
        assert [line[1:] for line in lines[3:]] == self.TEXT.splitlines()


class TestRetire:
    @pytest.mark.parametrize(
        ("text", "left"),
        [
            (absent("o.service"), []),
            (unit("o.service", "inactive", "dead", "disabled"), []),
            (unit("o.service", "failed", "failed", "disabled"), []),
            (unit("o.service", "inactive", "dead", "masked", "masked"), []),
            (unit("o.service", "inactive", "dead", "static"), []),
            (unit("o.service"), ["state", "enablement"]),
            (unit("o.service", "failed", "failed", "enabled"), ["enablement"]),
            (unit("o.service", "inactive", "dead", "enabled-runtime"), ["enablement"]),
            (unit("o.service", "activating", "auto-restart", "disabled"), ["state"]),
            (unit("o.service", "deactivating", "stop-sigterm", "disabled"), ["state"]),
            (unit("o.service", "active", "running", "masked", "masked"), ["state"]),
        ],
    )
    def test_what_is_left(self, text: str, left: list[str]) -> None:
        actual = box(units=text)
        assert attributes(old_service_differences("o.service", actual.unit("o.service"))) == left

    def test_a_unit_that_was_not_read_is_not_retired(self) -> None:
        actual = box(units=("Failed to connect to bus", 1))
        assert old_service_differences("o.service", actual.unit("o.service"))


class TestService:
    def test_running(self) -> None:
        assert service_differences(NAME, box(units=unit(NAME)).unit(NAME)) == ()

    @pytest.mark.parametrize(
        ("active", "sub"),
        [("failed", "failed"), ("activating", "auto-restart"), ("inactive", "dead")],
    )
    def test_not_running(self, active: str, sub: str) -> None:
        found = service_differences(NAME, box(units=unit(NAME, active, sub)).unit(NAME))
        assert [(d.attribute, d.have) for d in found] == [("state", f"{active} ({sub})")]

    def test_enabled_until_the_next_boot_is_not_enabled(self) -> None:
        actual = box(units=unit(NAME, file="enabled-runtime"))
        assert attributes(service_differences(NAME, actual.unit(NAME))) == ["enablement"]

    def test_a_process_older_than_its_file_is_restarted(self) -> None:
        head = "regular file|644|root|root|1796032800.5\n" + "0" * 64 + "  -\n"
        actual = box(**{"units": unit(NAME), f"unit-file__{NAME}": head})
        assert attributes(service_differences(NAME, actual.unit(NAME))) == ["process"]

    LISTENING = (
        'LISTEN 0 9 {address}:8000 0.0.0.0:* users:(("python",pid=7,fd=5))\n'
        "cgroup|7|0::/system.slice/{unit}"
    )

    @pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "*", "[::]"])
    def test_a_strangers_listener_is_named(self, address: str) -> None:
        actual = box(listeners=self.LISTENING.format(address=address, unit="nginx.service"))
        with pytest.raises(ConflictError) as caught:
            require_port(MINIMAX_M25, actual, frozenset())
        assert "python (pid 7, nginx.service)" in caught.value.found

    @pytest.mark.parametrize("holder", [NAME, KIMI_K25.unit])
    def test_our_own_and_the_leaving_service_may_hold_it(self, holder: str) -> None:
        actual = box(listeners=self.LISTENING.format(address="127.0.0.1", unit=holder))
        require_port(MINIMAX_M25, actual, frozenset({KIMI_K25.unit}))

    def test_another_address_is_another_port(self) -> None:
        actual = box(listeners=self.LISTENING.format(address="10.0.0.5", unit="x.service"))
        require_port(MINIMAX_M25, actual, frozenset())


class TestReadiness:
    READY = f"{NAME} abc"
    ANSWER = 'HTTP/1.1 200 OK\n\n{"data": [{"id": "MiniMaxAI/MiniMax-M2.5"}]}'

    def box(self, **changed: str | tuple[str, int]) -> Actual:
        sections: dict[str, str | tuple[str, int]] = {
            "units": unit(NAME),
            "ready": self.READY,
            "answer": self.ANSWER,
        }
        return box(**{**sections, **changed})

    def test_ready(self) -> None:
        assert readiness_differences(MINIMAX_M25, self.box()) == ()

    @pytest.mark.parametrize(
        ("changed", "have"),
        [
            ({"units": absent(NAME)}, "known after the start"),
            ({"units": unit(NAME, "activating", "auto-restart")}, "known after the start"),
            ({"ready": f"{NAME} other"}, "this start was never seen to answer"),
            ({"answer": ("Connection refused", 1)}, "nothing answers"),
            ({"answer": 'HTTP/1.1 200 OK\n\n{"data": [{"id": "x"}]}'}, "x"),
            ({"answer": "HTTP/1.1 503 Busy\n\n"}, "HTTP 503"),
        ],
    )
    def test_not_ready(self, changed: dict[str, str], have: str) -> None:
        (found,) = readiness_differences(MINIMAX_M25, self.box(**changed))
        assert found.have == have

    def test_a_box_that_could_not_be_asked_is_not_restarted(self) -> None:
        assert readiness_differences(MINIMAX_M25, self.box(answer=("", 127))) == ()

    def test_a_server_that_wants_a_key_is_alive(self) -> None:
        assert readiness_differences(MINIMAX_M25, self.box(answer="HTTP/1.1 401 No\n\n")) == ()


def test_the_probe_is_one_script_that_frames_what_it_reads() -> None:
    query = query_for(MINIMAX_M25, folder="/s/x", tools="/t", replaces=(KIMI_K25,))
    text = script(query, "cafe")
    assert "UNITS='vllm-minimax-m25.service vllm-kimi-k25.service " in text
    assert text.rstrip().endswith("exit 0")
    assert not read_actual(text, "cafe").complete
