"""The lab's own promises, on real boxes: what other tests build on."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import hub_service
from tests.lab.__main__ import main
from tests.lab.base import REPO, Lab, LabError
from tests.lab.box import Box, connections
from tests.lab.group import groups

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]  # the first box makes the image


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A lab beside the usual one, so that its `down` stops nobody else's boxes."""
    usual = Lab()
    own = Lab(root=usual.root / "self-test", caches=usual.caches)
    main(["down"], own)  # what a killed run left
    yield own
    main(["down"], own)
    for link in connections(own):
        Box(link.name, own).destroy()


@pytest.fixture(scope="module")
def box(lab: Lab) -> Box:
    """A box that several tests look at."""
    return Box("one", lab).rebuild()


def output(box: Box, command: str, user: str | None = None) -> str:
    """What a command in the box prints."""
    return box.run(command, user=user).stdout.strip()


def mounts() -> str:
    """The mounts of this machine, as this process sees them."""
    return Path("/proc/self/mounts").read_text()


def test_a_box_is_a_host_with_systemd(box: Box) -> None:
    assert output(box, "systemctl is-system-running") == "running"
    assert output(box, "hostname") == "one"
    assert output(box, "getent hosts one").split()[0] == box.address
    assert output(box, "systemd-detect-virt") == "systemd-nspawn"
    assert box.root.joinpath("etc/hostname").read_text() == "one\n"


def test_who_may_do_what(box: Box) -> None:
    assert output(box, "id -u", "root") == "0"
    assert output(box, "sudo -n id -u", "operator") == "0"
    refused = box.run("sudo -n id -u", user="guest", check=False)
    assert refused.returncode != 0
    assert "password is required" in refused.stderr


def test_units_are_hidden_limited_and_given_secrets(box: Box) -> None:
    box.run("echo -n hush > /root/secret")
    transient = (
        "systemd-run --wait --quiet --pipe -p DynamicUser=yes -p ProtectSystem=strict"
        " -p ProtectHome=yes -p PrivateTmp=yes -p NoNewPrivileges=yes"
        " -p LoadCredential=token:/root/secret -p LimitNOFILE=2000 sh -c"
        " 'cat $CREDENTIALS_DIRECTORY/token; id -u; ulimit -n; touch /usr/x; ls /root'"
    )
    done = box.run(transient, check=False)
    secret_user, files = done.stdout.split()
    assert secret_user.startswith("hush")
    assert int(secret_user.removeprefix("hush")) >= 61184  # systemd's range of dynamic users
    assert files == "2000"
    assert "/usr/x" in done.stderr
    assert done.returncode != 0  # /root is hidden


def test_a_unit_that_keeps_failing_hits_its_start_limit(box: Box) -> None:
    unit = (
        "[Unit]\nStartLimitBurst=2\nStartLimitIntervalSec=60\n"
        "[Service]\nExecStart=/bin/sh -c 'echo going down; exit 3'\n"
        "Restart=always\nRestartSec=0.1\n"
    )
    box.run("cat > /etc/systemd/system/failing.service", stdin=unit)
    assert box.run("systemd-analyze verify failing.service").stderr == ""
    box.run("systemctl daemon-reload; systemctl start failing; sleep 1")
    shown = output(box, "systemctl show failing -p NRestarts,ExecMainStatus,ActiveState --value")
    assert set(shown.split()) == {"2", "3", "failed"}
    assert output(box, "journalctl -u failing -o cat").count("going down") == 2
    box.run("systemctl reset-failed failing; rm /etc/systemd/system/failing.service")


def test_a_rebuilt_box_is_a_fresh_host_at_the_same_address(box: Box) -> None:
    known, address = Path(box.connection.ssh_known_hosts_file), box.address
    before = (output(box, "cat /etc/machine-id"), known.read_text())
    box.run("touch /root/mark; systemctl mask ssh.socket")
    box.rebuild()
    after = (output(box, "cat /etc/machine-id"), known.read_text())
    assert box.address == address
    assert before[0] != after[0]
    assert before[1] != after[1]
    assert output(box, "ls /root") == ""


def test_a_reboot_from_inside_comes_back(box: Box) -> None:
    box.run("touch /root/mark")
    before = output(box, "cat /proc/sys/kernel/random/boot_id")
    box.reboot()
    assert output(box, "cat /proc/sys/kernel/random/boot_id") != before
    assert output(box, "ls /root") == "mark"
    assert (
        len(output(box, "journalctl --list-boots --quiet --no-pager | grep -v IDX").split("\n"))
        == 2
    )


def test_a_power_cut_ends_everything_and_spares_the_disk(box: Box) -> None:
    box.run("echo kept > /root/mark; sync; systemd-run --quiet sleep 1000")
    box.cut()
    assert not box.is_running
    with pytest.raises(LabError, match="Connection refused"):
        box.run("true")
    box.boot()
    assert output(box, "cat /root/mark") == "kept"
    assert output(box, "pgrep -c sleep || true") == "0"


def test_two_boxes_do_not_meet(box: Box, lab: Lab) -> None:
    with Box("two", lab, user="operator") as other:
        assert other.address != box.address
        assert other.connection.ssh_user == "operator"
        start = "systemd-run --quiet --unit=same sleep 1000"
        box.run(start)
        other.run(f"sudo {start}")
        # Their units have one name; in one control group, stopping one would end both.
        box.run("systemctl stop same")
        assert output(other, "systemctl is-active same") == "active"
        assert output(other, "pgrep -c sleep") == "1"
        assert output(box, "pgrep -c sleep || true") == "0"
    assert "two" not in {link.name for link in connections(lab)}


def test_a_box_without_systemd(lab: Lab) -> None:
    with Box("bare", lab, systemd=False) as bare:
        assert output(bare, "ps -o comm= -p 2") == "sshd"
        assert bare.run("systemctl is-system-running", check=False).stdout == "offline\n"
        with pytest.raises(LabError, match="no systemd"):
            bare.reboot()


def test_an_address_that_was_taken_meanwhile_is_left_alone(box: Box) -> None:
    box.cut()
    taken = box.address
    with socket.create_server((taken, box.connection.ssh_port)):
        box.boot()
        assert box.address != taken
        assert output(box, "getent hosts one").split()[0] == box.address


def test_a_run_killed_while_it_boots_a_box_is_coped_with(box: Box, lab: Lab) -> None:
    box.cut()
    code = (
        "from pathlib import Path; from tests.lab.base import Lab; from tests.lab.box import Box;"
        f"Box('one', Lab(Path({str(lab.root)!r}), Path({str(lab.caches)!r}))).boot()"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=REPO) as victim:
        while not box.is_running:
            time.sleep(0.01)
        victim.kill()
    assert main(["boot", "one"], lab) == 0
    assert output(box, "systemctl is-system-running") == "running"


def test_a_box_that_outlived_its_supervisor_is_taken_over(box: Box) -> None:
    box.boot()
    for pid in box.group.named("sh") | box.group.named("systemd-nspawn"):
        os.kill(pid, signal.SIGKILL)
    assert box.is_running  # systemd and sshd in it do not notice
    before = output(box, "cat /proc/sys/kernel/random/boot_id")
    box.boot()
    assert output(box, "cat /proc/sys/kernel/random/boot_id") != before
    assert box.reboot().is_running


def test_the_hub_is_started_once_and_stopped(lab: Lab) -> None:
    first = hub_service.ensure(lab)
    assert hub_service.ensure(lab) == first
    assert hub_service.find(lab) == first
    hub_service.stop(lab)
    assert hub_service.find(lab) is None


def test_down_leaves_nothing_running_or_mounted(
    box: Box, lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    box.boot()
    hub_service.ensure(lab)
    pids = {pid for group in groups(lab) for pid in group.processes()}
    assert pids
    assert str(lab.root) not in mounts()  # not even while it runs
    assert main(["down"], lab) == 0
    assert not [*groups(lab)]
    assert not any(Path(f"/proc/{pid}/exe").exists() for pid in pids)
    assert str(lab.root) not in mounts()
    capsys.readouterr()
    assert main(["status"], lab) == 0
    shown = capsys.readouterr().out
    assert "hub         off" in shown
    assert "one: off" in shown


@pytest.mark.parametrize("command", ["reboot", "rebuild"])
def test_what_cannot_be_done_is_said_in_a_sentence(
    command: str, lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    name = {"reboot": "nobody", "rebuild": "no such name"}[command]
    assert main([command, name], lab) == 1
    said = capsys.readouterr().err
    assert name in said
    assert said.count("\n") == 1
