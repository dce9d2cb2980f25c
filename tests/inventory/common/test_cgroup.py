"""Where a process belongs, by its control group."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.common.cgroup import origin

HEX = "3f2a1b0c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a"


@pytest.mark.parametrize(
    ("path", "unit", "words"),
    [
        ("/system.slice/vllm-old.service", "vllm-old.service", "in vllm-old.service"),
        ("/system.slice/vllm-old.service (deleted)", "vllm-old.service", "in vllm-old.service"),
        ("/vllm.slice/vllm-old.service/worker", "vllm-old.service", "in vllm-old.service"),
        (
            "/user.slice/user-1000.slice/user@1000.service/app.slice/vllm-old.service",
            "user@1000.service/vllm-old.service",
            "in vllm-old.service of user 1000",
        ),
        (
            "/user.slice/user-1000.slice/session-3.scope",
            "session-3.scope",
            "in login session 3 of user 1000",
        ),
        (
            f"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{HEX}.scope",
            f"user@1000.service/libpod-{HEX}.scope",
            "in container 3f2a1b0c9d8e (libpod) of user@1000.service",
        ),
        (
            f"/system.slice/docker-{HEX}.scope",
            f"docker-{HEX}.scope",
            "in container 3f2a1b0c9d8e (docker)",
        ),
        (f"/docker/{HEX}", None, "in container 3f2a1b0c9d8e (docker)"),
        (
            f"/machine.slice/libpod-{HEX}.scope/container",
            f"libpod-{HEX}.scope",
            "in container 3f2a1b0c9d8e (libpod)",
        ),
        (
            f"/system.slice/chat.service/libpod-payload-{HEX}",
            "chat.service",
            "in container 3f2a1b0c9d8e (libpod) of chat.service",
        ),
        (
            f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/"
            f"cri-containerd-{HEX}.scope",
            f"cri-containerd-{HEX}.scope",
            "in container 3f2a1b0c9d8e (cri-containerd)",
        ),
        (f"/kubepods/burstable/pod1/{HEX}", None, "in container 3f2a1b0c9d8e (kubepods)"),
        ("/lxc.payload.train/system.slice/x.service", None, "in container train (lxc)"),
        (
            "/machine.slice/systemd-nspawn@lab.service/payload/system.slice/a.service",
            "systemd-nspawn@lab.service",
            "in container lab (machine)",
        ),
        (
            r"/machine.slice/machine-qemu\x2d1\x2dvm.scope/libvirt",
            r"machine-qemu\x2d1\x2dvm.scope",
            "in container qemu-1-vm (machine)",
        ),
        ("/", None, "in no unit"),
        ("/../../system.slice/a.service", None, "outside this system's control groups"),
    ],
)
def test_where_a_process_belongs(path: str, unit: str | None, words: str) -> None:
    found = origin([f"0::{path}"])
    assert (found.unit, found.words) == (unit, words)
    assert bool(found.unknown) == ("/../" in path)
    assert origin(["12:pids:/", f"1:name=systemd:{path}", "0::/"]).unit == unit


@given(st.text())
def test_any_control_group_has_an_origin(text: str) -> None:
    assert origin(text.splitlines()).words
    assert origin([f"0::{text}"]).words


def test_a_unit_of_ours_is_not_one_that_is_only_named_in_the_path() -> None:
    inside = origin([f"0::/system.slice/docker-{HEX}.scope/system.slice/vllm-old.service"])
    assert inside.unit == f"docker-{HEX}.scope"
    assert origin(["0::/lxc/box/system.slice/vllm-old.service"]).unit is None


def test_no_line_tells_nothing() -> None:
    found = origin([])
    assert (found.unit, found.words, found.unknown) == (None, "in no unit", "no cgroup line")
