"""What the macOS door says of itself, before anything runs. Its processes are in integration/platforms."""

import os
import sys

import pytest

from doorward.launcher.interface import Identity, Limits, Mode, SandboxPolicy, SandboxUnavailable, UnenforceableRule
from doorward.launcher.seatbelt import Seatbelt, needs_profile, unavailable
from doorward.launcher.seatbelt_survey import as_on_disk, refuse_system


@pytest.fixture
def prepare(tmp_path):
    for name in ("work", "home"):
        (tmp_path / name).mkdir()

    def call(**more):
        values = {
            "mode": Mode.WORKSPACE_WRITE, "workspace": str(tmp_path / "work"), "home": str(tmp_path / "home"),
            "cache_dir": str(tmp_path / "cache"),
        }  # fmt: skip
        return Seatbelt(sys.executable).prepare(SandboxPolicy(**(values | more)))

    return call


@pytest.mark.parametrize(
    ("mode", "network", "layers"),
    [
        ("read-only", "off", ("kernel", "kernel", "kernel", "none")),
        ("workspace-write", "proxied", ("kernel", "kernel", "kernel", "none")),
        ("workspace-write", "full", ("kernel", "none", "kernel", "none")),
        ("danger-full-access", "proxied", ("none", "kernel", "none", "none")),
        ("danger-full-access", "full", ("none", "none", "none", "none")),
        ("unconfined", "full", ("none", "none", "none", "none")),
    ],
)
def test_what_holds(prepare, mode, network, layers):
    assert tuple(prepare(mode=mode, network=network).enforcement) == layers


def test_what_is_weaker_than_it_looks_is_said(prepare):
    assert prepare().notices == ()
    assert "localhost" in prepare(local_binding=True).notices[0]
    assert "no boundary" in prepare(mode="danger-full-access", network="proxied").notices[0]
    assert "certificates" in prepare(replaced=(("/a", "/b"),)).notices[0]
    assert "explain-denials" in prepare(explain=True).notices[0]


def test_what_macos_does_not_have_is_refused(prepare):
    with pytest.raises(SandboxUnavailable, match="another user"):
        prepare(user=Identity("ada", 1000, 1000, ()))
    with pytest.raises(SandboxUnavailable, match="--memory"):
        prepare(limits=Limits(memory=1 << 30))


def test_a_rule_that_cannot_hold_is_refused_before_anything_runs(prepare):
    with pytest.raises(UnenforceableRule):
        prepare(deny_read=("x" * 2000,))


@pytest.mark.parametrize("path", ["/System", "/System/Library", "/Library", "/Users", "/private/var", "/var", "/etc"])
def test_system_folders_are_never_made_writable(path):
    with pytest.raises(UnenforceableRule, match="system folder of macOS"):
        refuse_system(path, path)
    refuse_system("/Users/ada/x", "/Users/ada/x")
    refuse_system("/private/tmp/x", "/private/tmp/x")


def test_temporary_folders_are_the_runs_own(prepare, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    confinement = prepare()
    env = confinement.environment({"TEMP": "/gone", "A": "1"})
    assert env["TMPDIR"].startswith(os.path.realpath(tmp_path))
    assert env["TEMP"] + "/" == env["TMPDIR"]
    confinement.close()
    assert not os.path.exists(env["TEMP"])


@pytest.mark.skipif(sys.platform == "darwin", reason="there the disk is asked")
def test_a_path_is_as_it_is_where_the_disk_cannot_be_asked(tmp_path):
    assert as_on_disk(str(tmp_path)) == str(tmp_path)


def test_the_disk_is_asked_for_a_paths_letters(monkeypatch, tmp_path):
    import fcntl

    monkeypatch.setattr(fcntl, "F_GETPATH", 50, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", lambda fd, command, room: b"/Users/Ada" + bytes(len(room) - 10))
    assert as_on_disk(str(tmp_path)) == "/Users/Ada"
    assert as_on_disk(str(tmp_path / "none")) == str(tmp_path / "none")


def test_only_what_is_held_back_needs_a_profile(prepare, tmp_path):
    values = ("w", "h", "c")
    assert needs_profile(SandboxPolicy(Mode.WORKSPACE_WRITE, *values, network="full"))
    assert needs_profile(SandboxPolicy(Mode.DANGER_FULL_ACCESS, *values, network="proxied"))
    assert not needs_profile(SandboxPolicy(Mode.DANGER_FULL_ACCESS, *values, network="full"))
    assert not needs_profile(SandboxPolicy(Mode.UNCONFINED, *values, network="off"))


def test_what_sandbox_exec_says_is_told():
    assert "inside another one" in unavailable("sandbox-exec: sandbox_apply: Operation not permitted\n").sentence
    assert "unbound variable" in unavailable("sandbox-exec: unbound variable: x\nmore\n").sentence
    assert "nothing" in unavailable("").sentence
