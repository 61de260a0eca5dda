"""What a prepared confinement says of itself. That it is true is proved in integration/sandbox."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from doorward.launcher import linux, seed, syscalls
from doorward.launcher.backend import backend
from doorward.launcher.interface import Command, Mode, SandboxPolicy, SandboxUnavailable, Stdio, UnenforceableRule
from doorward.launcher.linux import Linux


@pytest.fixture
def prepare(tmp_path, monkeypatch):
    """Prepares a policy with a bubblewrap that only tells its version."""
    monkeypatch.setattr(linux, "filter_bytes", lambda cache_dir: b"program")
    folder = tmp_path / "bin"
    for name in ("w", "home", "bin"):
        (tmp_path / name).mkdir()
    (folder / "bwrap").write_text("#!/bin/sh\necho bubblewrap 0.8.0\n")
    (folder / "bwrap").chmod(0o755)

    def call(**more):
        values = {
            "mode": Mode.WORKSPACE_WRITE,
            "workspace": str(tmp_path / "w"),
            "home": str(tmp_path / "home"),
            "cache_dir": str(tmp_path / "home/cache"),
        }
        return Linux(str(folder)).prepare(SandboxPolicy(**(values | more)))

    return call


HOLDS = [
    ("read-only", "off", ("kernel", "kernel", "kernel", "kernel")),
    ("workspace-write", "proxied", ("kernel", "kernel", "kernel", "kernel")),
    ("workspace-write", "full", ("kernel", "none", "kernel", "kernel")),
    ("danger-full-access", "full", ("none", "none", "kernel", "none")),
    ("danger-full-access", "proxied", ("none", "kernel", "kernel", "kernel")),
    ("unconfined", "full", ("none", "none", "none", "none")),
]


@pytest.mark.parametrize(("mode", "network", "layers"), HOLDS)
def test_what_holds(prepare, mode, network, layers):
    assert tuple(prepare(mode=mode, network=network).enforcement) == layers


def test_what_is_weaker_than_it_looks_is_said(prepare, monkeypatch):
    assert prepare().notices == ()
    assert "unix socket" in prepare(mode="danger-full-access", network="proxied").notices[0]
    for able in (True, False):
        monkeypatch.setattr(syscalls, "can_scope", lambda able=able: able)
        assert ("abstract" in "".join(prepare(network="full").notices)) is not able


def test_a_filter_that_cannot_be_built(prepare, monkeypatch):
    """P-NS-04."""

    def fail(_):
        raise SandboxUnavailable("no libseccomp.")

    monkeypatch.setattr(linux, "filter_bytes", fail)
    with pytest.raises(SandboxUnavailable):
        prepare()
    assert prepare(mode="danger-full-access", network="full").enforcement.syscalls == "none"


def test_temporary_directories_inside(prepare):
    """P-FS-09."""
    env = {"TMPDIR": "/gone", "TEMP": "/gone", "XDG_RUNTIME_DIR": "/gone", "A": "1"}
    assert prepare().environment(env) == {
        "TMPDIR": "/tmp",
        "TMPPREFIX": "/tmp/zsh",
        "TEMP": "/tmp",
        "XDG_RUNTIME_DIR": f"/run/user/{os.geteuid()}",
        "A": "1",
    }
    assert prepare().environment({}) == {"TMPDIR": "/tmp", "TMPPREFIX": "/tmp/zsh"}
    assert prepare(mode="danger-full-access").environment(env) == env


def test_an_unknown_mode_is_an_error(prepare):
    with pytest.raises(ValueError, match="no-such"):
        prepare(mode="no-such")


def test_rules_are_checked_before_anything_is_started(prepare):
    with pytest.raises(UnenforceableRule):
        prepare(write=("/etc",))


def test_a_malformed_command_starts_nothing(prepare, monkeypatch):
    confinement = prepare()
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("forked"))
    process = confinement.spawn(Command(("a\0",), "/", {}), Stdio(-1, -1, -1))
    assert process.wait().exit_code == 126
    process.close()


def test_this_platform_has_a_door():
    assert isinstance(backend(), Linux)


def test_another_platform_says_so(monkeypatch):
    monkeypatch.setattr(sys, "platform", "plan9")
    with pytest.raises(SandboxUnavailable, match="plan9"):
        backend()


@pytest.mark.parametrize(("text", "uid", "made"), [("1\n", 1000, 0), ("0\n", 1000, 7), ("1\n", 0, 7), (None, 1000, 7)])
def test_user_namespaces_that_would_be_good_for_nothing_are_left_to_bubblewrap(tmp_path, monkeypatch, text, uid, made):
    """P-NS-02: AppArmor's restriction does not concern root."""
    if text is not None:
        (tmp_path / "restrict").write_text(text)
    monkeypatch.setattr(seed, "_APPARMOR", str(tmp_path / "restrict"))
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    user = seed.CLONE_NEWUSER
    assert seed.allowed(user | 7) == (0 if made == 0 else user | 7)
    assert seed.allowed(7) == 7


# What the supervisor's start must not pay for on the door's account.
HEAVY = {
    *("dataclasses", "asyncio", "subprocess", "pathlib", "argparse", "logging", "shutil", "tempfile", "uuid", "base64"),
    *("urllib", "inspect", "ipaddress", "datetime", "tomllib", "ctypes", "_ctypes", "hashlib", "socket"),
    *("signal", "pyseccomp", "random", "typing_extensions"),
    *(f"doorward.launcher.{name}" for name in ("shim", "starter", "namespaces", "diagnosis", "undo", "syscalls")),
}


def test_the_door_is_light_to_load():
    root = Path(__file__).parents[2]
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); before = set(sys.modules); "
        "import doorward.launcher.linux; print('\\n'.join(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(root)], capture_output=True, text=True, check=True, timeout=60
    )
    assert set(done.stdout.split()) & HEAVY == set()


def test_refusals_that_cannot_be_explained_are_said_to_be_so(prepare, monkeypatch):
    """Where AppArmor leaves namespaces to bubblewrap, a filter before it could keep it from its profile."""
    monkeypatch.setattr(linux, "allowed", lambda namespaces: 0)
    assert any("cannot be explained" in notice for notice in prepare(explain=True).notices)
    assert prepare(explain=True, mode="danger-full-access", network="full").notices == ()
    assert prepare().notices == ()


def test_what_is_confined_has_its_mounts_covered_in_a_namespace_of_ours_whatever_else_it_shares(prepare, monkeypatch):
    """With the whole network and the /proc it was started in, nothing else asks for one."""
    monkeypatch.setattr(linux, "allowed", lambda namespaces: namespaces)
    confinement = prepare(network="full")
    confinement._fresh_proc = False
    assert confinement._namespaces() == seed.CLONE_NEWUSER
