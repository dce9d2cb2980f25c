"""Desired state: what is accepted, what is refused, and with which words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.catalogue import CATALOGUE, KIMI_K25, MINIMAX_M25, MINIMAX_M25_THROUGHPUT
from inventory.engine import ELSEWHERE, FLAGS, SHORT, Vllm
from inventory.errors import DesiredStateError
from inventory.override import overridden
from inventory.service import Endpoint, Model, Placement, Service, tensor_parallel_size


def service(**fields: object) -> Service:
    base: dict[str, object] = {
        "name": "vllm-x",
        "model": Model(repo="org/name"),
        "engine": Vllm(version="0.32.0"),
        "placement": Placement(gpus=4),
    }
    return Service(**{**base, **fields})


@pytest.mark.parametrize(
    "name", ["a/b", "-x", "", ".hidden", "a b", "a\nb", "../x", "x.service", "a%n", "ü", "x" * 300]
)
def test_a_name_that_is_no_unit_is_refused(name: str) -> None:
    with pytest.raises(DesiredStateError) as caught:
        service(name=name)
    assert caught.value.found.startswith("name: ")
    assert caught.value.message.splitlines()[0] == "wanted: a valid Service"
    assert len(caught.value.message.splitlines()) == 4


@pytest.mark.parametrize(
    "path",
    ["models", "./models", "/", "/a b", "/a/../b", "/a/", "//", "", "/a\n", "/a;b", "/$HOME"],
)
def test_a_path_that_is_not_plain_and_absolute_is_refused(path: str) -> None:
    with pytest.raises(DesiredStateError, match="under"):
        Model(repo="org/name", under=path)


@pytest.mark.parametrize(
    "repo", ["name", "a/b/c", "/a", "a/", "a/..", "-a/b", "a/b c", "", "a/b--c"]
)
def test_a_repository_without_organisation_and_name_is_refused(repo: str) -> None:
    with pytest.raises(DesiredStateError, match="repo"):
        Model(repo=repo)


@pytest.mark.parametrize(
    "version", [">=0.30", "latest", "0.32.*", "", "0.32 ", "v0.32.0", "0.32,0.33"]
)
def test_only_one_exact_version_is_accepted(version: str) -> None:
    with pytest.raises(DesiredStateError, match="version"):
        Vllm(version=version)


@pytest.mark.parametrize("version", ["0.32.0", "0.32.0rc1", "0.32.0.post1", "0.32.0+cpu", "1"])
def test_exact_versions_of_every_shape_are_accepted(version: str) -> None:
    assert Vllm(version=version).version == version


def test_the_error_names_every_field_by_its_path() -> None:
    with pytest.raises(DesiredStateError) as caught:
        Service(
            name="x",
            model={"repo": "org/name", "under": "relative", "colour": 1},
            engine={"version": "0.32.0"},
            placement={"gpus": 4},
        )
    assert "model.under: " in caught.value.found
    assert "model.colour: there is no such field" in caught.value.found


@pytest.mark.parametrize("flag", [*FLAGS.values(), *ELSEWHERE, *SHORT])
@pytest.mark.parametrize("form", ["{}", "{}=1"])
def test_a_flag_that_has_a_field_is_refused_in_extra_args(flag: str, form: str) -> None:
    with pytest.raises(DesiredStateError, match="belongs to"):
        Vllm(version="0.32.0", extra_args=(form.format(flag), "1"))


def test_underscores_do_not_smuggle_a_flag_in() -> None:
    with pytest.raises(DesiredStateError, match=r"engine\.max_num_seqs"):
        Vllm(version="0.32.0", extra_args=("--max_num_seqs", "3"))


def test_flags_are_rendered_from_the_fields() -> None:
    engine = Vllm(
        version="0.32.0",
        max_num_seqs=256,
        enable_expert_parallel=True,
        tool_call_parser="minimax_m2",
        speculative_config={"num_speculative_tokens": 1, "method": "mtp"},
        extra_args=("--moe-backend", "triton"),
    )
    assert engine.flags(8) == [
        "--tensor-parallel-size",
        "8",
        "--enable-expert-parallel",
        "--max-num-seqs",
        "256",
        "--speculative-config",
        '{"method":"mtp","num_speculative_tokens":1}',
        "--enable-auto-tool-choice",
        "--tool-call-parser",
        "minimax_m2",
        "--moe-backend",
        "triton",
    ]


def test_further_requirements_make_another_environment() -> None:
    plain = Vllm(version="0.32.0")
    more = Vllm(version="0.32.0", requirements=("flashinfer-cubin==0.6.1",))
    assert plain.environment_folder == "/opt/vllm/vllm-0.32.0"
    assert more.environment_folder.startswith("/opt/vllm/vllm-0.32.0+")
    with pytest.raises(DesiredStateError, match="not pinned"):
        Vllm(version="0.32.0", requirements=("flashinfer",))


@pytest.mark.parametrize("command", [(), ("/usr/bin/vllm",), ("../bin/vllm",)])
def test_the_entry_point_is_inside_the_environment(command: tuple[str, ...]) -> None:
    with pytest.raises(DesiredStateError, match="command"):
        Vllm(version="0.32.0", command=command)


def test_the_tensor_parallel_size_follows_from_the_placement() -> None:
    assert tensor_parallel_size(MINIMAX_M25) == 4
    assert tensor_parallel_size(KIMI_K25) == 8
    assert tensor_parallel_size(service(engine={"version": "1", "pipeline_parallel_size": 2})) == 2
    assert tensor_parallel_size(service(placement={"gpus": 0})) is None


@given(
    gpus=st.integers(1, 64),
    sizes=st.tuples(st.none() | st.integers(1, 16), st.integers(1, 8), st.integers(1, 8)),
)
def test_the_parallel_sizes_use_exactly_the_gpus_or_are_refused(
    gpus: int, sizes: tuple[int | None, int, int]
) -> None:
    tensor, pipeline, data = sizes
    wanted = service(
        engine={
            "version": "1",
            "tensor_parallel_size": tensor,
            "pipeline_parallel_size": pipeline,
            "data_parallel_size": data,
        },
        placement={"gpus": gpus},
    )
    try:
        size = tensor_parallel_size(wanted)
    except DesiredStateError:
        assert (tensor or gpus // (pipeline * data)) * pipeline * data != gpus
    else:
        assert size is not None
        assert size * pipeline * data == gpus


def test_the_endpoint_is_local_unless_said_otherwise() -> None:
    assert Endpoint().url == "http://127.0.0.1:8000"
    assert Endpoint(host="0.0.0.0").url == "http://127.0.0.1:8000"
    assert Endpoint(host="::").url == "http://[::1]:8000"
    assert Endpoint(host="10.0.0.5", port=9000).url == "http://10.0.0.5:9000"


@pytest.mark.parametrize("bad", [{"A B": "1"}, {"A": "1\n2"}, {"": "1"}, {"A=B": "1"}])
def test_environment_variables_are_names_and_single_lines(bad: dict[str, str]) -> None:
    with pytest.raises(DesiredStateError, match="environment"):
        service(environment=bad)


def test_the_catalogue_names_each_service_once() -> None:
    names = [entry.name for entry in CATALOGUE]
    assert len(set(names)) == len(names)
    assert MINIMAX_M25_THROUGHPUT.engine.enable_expert_parallel


class TestOverride:
    def test_nothing_to_override_changes_nothing(self) -> None:
        for nothing in (None, {}, {"vllm-other": {"listen": {"port": 1}}}):
            assert overridden(MINIMAX_M25, nothing) is MINIMAX_M25

    def test_fields_are_merged_and_the_services_own_entry_wins(self) -> None:
        override = {
            "*": {"model": {"under": "/data"}, "engine": {"max_num_seqs": 1}},
            "vllm-minimax-m25": {"engine": {"max_num_seqs": 2}, "environment": {"NEW": "1"}},
        }
        result = overridden(MINIMAX_M25, override)
        assert result.model.under == "/data"
        assert result.model.repo == MINIMAX_M25.model.repo
        assert result.engine.max_num_seqs == 2
        assert result.engine.tool_call_parser == "minimax_m2"
        assert result.environment == {**MINIMAX_M25.environment, "NEW": "1"}
        assert overridden(KIMI_K25, override).engine.max_num_seqs == 1

    def test_an_unknown_field_is_refused_with_its_path(self) -> None:
        with pytest.raises(DesiredStateError) as caught:
            overridden(MINIMAX_M25, {"*": {"engine": {"max_num_seq": 2}}})
        assert "engine.max_num_seq: there is no such field" in caught.value.found
        assert "vllm-minimax-m25" in caught.value.wanted

    @pytest.mark.parametrize("bad", [[], "x", 3, {"*": 3}, {"engine": {"max_num_seqs": 3}}])
    def test_a_malformed_override_is_refused(self, bad: object) -> None:
        if not bad:
            assert overridden(MINIMAX_M25, bad) is MINIMAX_M25
            return
        with pytest.raises(DesiredStateError):
            overridden(MINIMAX_M25, bad)

    def test_a_merged_service_is_still_checked(self) -> None:
        with pytest.raises(DesiredStateError, match="port"):
            overridden(MINIMAX_M25, {"*": {"listen": {"port": 70000}}})

    def test_data_from_the_command_line_arrives_as_text_or_json(self) -> None:
        with pytest.raises(DesiredStateError, match="max_num_seqs"):
            overridden(MINIMAX_M25, {"*": {"engine": {"max_num_seqs": "many"}}})
        assert overridden(MINIMAX_M25, {"*": {"placement": {"gpus": 0}}}).placement.gpus == 0
