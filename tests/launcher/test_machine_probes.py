"""What is said of a machine, where its answers are given."""

import errno
import os

import pytest

from doorward.launcher import machine_probes
from doorward.launcher.diagnosis import Facts


@pytest.fixture
def machine(monkeypatch):
    """A machine that answers what a test says: the kernel's release, facts, and texts of files."""

    def answers(release="6.1.0", facts=Facts(), files=None):  # noqa: B008
        name = type("Name", (), {"sysname": "Linux", "release": release, "machine": "x86_64"})
        monkeypatch.setattr(machine_probes.os, "uname", lambda: name)
        monkeypatch.setattr(machine_probes.os.path, "exists", lambda path: path in (files or {}))
        monkeypatch.setattr(machine_probes, "read_facts", lambda: facts)
        monkeypatch.setattr(machine_probes, "_read", lambda path: (files or {}).get(path, ""))

    return answers


@pytest.mark.parametrize(
    ("release", "ok"), [("6.18.44-fc-v595", True), ("5.10.0-28-amd64", True), ("5.9.16", False), ("4.19.0", False)]
)
def test_a_kernel_that_is_too_old(machine, release, ok):
    machine(release)
    found = machine_probes.kernel()
    assert found.ok is ok
    assert release in found.found
    assert bool(found.remedy) is not ok


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"/.dockerenv": ""}, "Docker"),
        ({"/run/.containerenv": ""}, "Podman"),
        ({"/proc/1/environ": "A=b\0container=lxc\0"}, "lxc"),
        ({"/proc/1/cgroup": "0::/system.slice/docker-abc.scope\n4:pids:/kubepods/x\n"}, "unknown kind"),
        ({"/proc/self/uid_map": "0 1000 1\n"}, "user namespace"),
        ({"/proc/self/uid_map": "0 0 4294967295\n"}, "none found"),
    ],
)
def test_containers(machine, monkeypatch, files, found):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    machine(files=files)
    assert found in machine_probes.container().found


def test_a_doorward_inside_a_doorward(machine):
    machine(facts=Facts(sandboxed=True))
    assert "doorward's own" in machine_probes.container().found


def test_apparmor_names_the_profile_to_install(machine):
    machine()
    assert machine_probes.apparmor().ok is None
    machine(facts=Facts(apparmor_restricts=True))
    found = machine_probes.apparmor()
    assert found.ok is False
    assert "bwrap-userns-restrict" in found.remedy


def test_a_kernel_without_user_namespaces_says_how_they_come_back(machine, monkeypatch):
    machine(facts=Facts(max_user_namespaces=0))

    def refused(flags):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(machine_probes.syscalls, "unshare", refused)
    found = machine_probes.user_namespaces()
    assert (found.ok, found.remedy) == (False, "sudo sysctl user.max_user_namespaces=15000")
    assert machine_probes.nftables().ok is None
    assert "captured" in machine_probes.nftables().found


def test_a_probe_that_dies_is_no_success():
    assert machine_probes._tried(lambda: os._exit(3)) is not None
    assert machine_probes._tried(lambda: None) is None
