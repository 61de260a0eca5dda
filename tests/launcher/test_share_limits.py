"""What holds each limit on a machine, and that one which nothing would hold is never passed over in silence."""

import pytest

from doorward.launcher import share_limits
from doorward.launcher.cgroups import Delegation
from doorward.launcher.interface import Limits, Mode, SandboxPolicy, SandboxUnavailable


def policy(require="full", **limits):
    return SandboxPolicy(Mode.WORKSPACE_WRITE, "/w", "/h", "/c", require=require, limits=Limits(**limits))


@pytest.fixture
def machine(monkeypatch):
    """A machine with the given control group and kernel."""

    def set_up(delegated, release="6.1.0-1"):
        monkeypatch.setattr(share_limits, "delegation", lambda wanted: delegated)
        monkeypatch.setattr(share_limits.os, "uname", lambda: type("Name", (), {"release": release}))

    return set_up


NONE = Delegation("", frozenset(), "there is no group")


def test_with_a_group_nothing_is_weaker(machine):
    machine(Delegation("/g", frozenset({"memory", "pids"})))
    shared = share_limits.share(policy(memory=1, pids=1, files=20), kernel_uid=0, own_users=True)
    assert shared == ({"memory": "cgroup", "pids": "cgroup", "files": "rlimit"}, "/g", ())


def test_memory_without_a_group_is_said_to_be_of_each_process(machine):
    machine(NONE)
    shared = share_limits.share(policy(memory=1), kernel_uid=1000, own_users=True)
    assert shared.held == {"memory": "rlimit"}
    assert "each process" in shared.notices[0]
    assert "there is no group" in shared.notices[0]


def test_an_ordinary_users_processes_are_counted_in_the_sandboxs_own_namespace(machine):
    machine(NONE)
    assert share_limits.share(policy(pids=9), kernel_uid=1000, own_users=True) == ({"pids": "rlimit"}, "", ())


@pytest.mark.parametrize(
    ("uid", "own_users", "release", "why"),
    [
        (0, True, "6.1.0", "root's processes"),
        (1000, False, "6.1.0", "user namespace of ours"),
        (1000, True, "5.10.0-28-amd64", "this kernel counts"),
    ],
)
def test_a_number_of_processes_that_would_not_hold_is_refused_or_said(machine, uid, own_users, release, why):
    machine(NONE, release)
    with pytest.raises(SandboxUnavailable, match=why) as caught:
        share_limits.share(policy(pids=9), kernel_uid=uid, own_users=own_users)
    assert "systemd-run" in caught.value.remedy
    shared = share_limits.share(policy("best-effort", pids=9), kernel_uid=uid, own_users=own_users)
    assert shared.held == {}
    assert why in shared.notices[0]


def test_time_and_files_ask_no_group(monkeypatch):
    monkeypatch.setattr(share_limits, "delegation", None)
    shared = share_limits.share(policy(cpu_time=1, files=20), kernel_uid=0, own_users=False)
    assert shared == ({"cpu_time": "doorward", "files": "rlimit"}, "", ())
