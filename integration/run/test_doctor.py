"""`doorward doctor`: what it says is what a run would find."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

LAYERS = ("filesystem", "network", "process", "syscalls")


def _named(document: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(check for check in document["checks"] if check["name"] == name)
    return found


def _inside(doorward: Any, setup: str, *args: str, namespaces: str = "-Urm") -> subprocess.CompletedProcess[bytes]:
    """doorward after `setup`, as root of namespaces of the test's own."""
    return subprocess.run(
        ["unshare", namespaces, "sh", "-c", f'{setup} && exec "$@"', "sh", *doorward.argv(*args)],
        cwd=doorward.workspace, env=doorward.env, capture_output=True, timeout=60, check=False,
    )  # fmt: skip


def test_where_runs_are_enforced_it_says_so(doorward: Any) -> None:
    assert doorward("run", "--", "true").status == 0
    seen = doorward("doctor", "--json")
    assert seen.status == 0, seen.out
    document = seen.document
    for name in ("bubblewrap", *LAYERS, "configuration", "network rules", "records", "kernel", "seccomp"):
        assert _named(document, name)["ok"] is True, name
    for name in ("container", "AppArmor", "landlock", "control groups", "nftables", "TUN", "user namespaces"):
        assert _named(document, name)["ok"] is not False, name
    inspection = _named(document, "inspection")  # where it is not, runs without it are as enforced
    assert inspection["ok"] is True or "pip install" in inspection["remedy"]
    assert (document["ok"], document["level"]) == (True, "full")
    assert document["enforcement"] == dict.fromkeys(LAYERS, "kernel")
    assert "fully enforced" in doorward("doctor").out.decode()


def test_a_probe_that_could_write_outside_would_say_so(doorward: Any) -> None:
    """The probe itself works: run outside the sandbox it sees everything that the sandbox takes away."""
    from doorward.doctor_checks import _PROBE

    outside = doorward.workspace / "outside"
    done = subprocess.run(["/bin/sh", "-c", _PROBE, "sh", str(outside)], capture_output=True, timeout=20, check=False)
    assert {b"wrote-outside", b"unfiltered", b"new-privileges", b"probed"} <= {*done.stdout.split()}


def test_a_missing_bubblewrap_is_named_with_its_remedy(doorward: Any) -> None:
    """The binary is covered in a mount namespace of the test's own."""
    done = _inside(doorward, f"mount --bind /dev/null {shutil.which('bwrap')}", "doctor", "--json")
    assert done.returncode == 125
    document = json.loads(done.stdout)
    assert document["level"] == "none"
    bad = [check for check in document["checks"] if check["ok"] is False]
    assert {check["name"] for check in bad} == {"bubblewrap", "sandbox"}
    for check in bad:
        assert "bubblewrap" in check["found"]
        assert "apt install bubblewrap" in check["remedy"]


def test_where_user_namespaces_are_switched_off(doorward: Any) -> None:
    """P-NS-02: in a user namespace of the test's own, never on the machine."""
    off = "echo 0 > /proc/sys/user/max_user_namespaces"
    done = _inside(doorward, off, "doctor", "--json", namespaces="-Ur")
    assert done.returncode == 125, done.stderr
    document = json.loads(done.stdout)
    for name in ("user namespaces", "sandbox"):
        assert _named(document, name)["ok"] is False
        assert _named(document, name)["remedy"] == "sudo sysctl user.max_user_namespaces=15000"
    assert document["level"] == "none"
    said = _inside(doorward, off, "doctor", namespaces="-Ur").stdout.decode()
    assert "sudo sysctl user.max_user_namespaces=15000" in said
    assert "would be refused here (exit status 125)" in said
    # and that is what a run finds, whatever it requires
    for require in ("full", "best-effort"):
        run = _inside(doorward, off, "run", "--require", require, "--", "sh", "-c", "echo x > ran", namespaces="-Ur")
        assert run.returncode == 125
        assert b"user.max_user_namespaces" in run.stderr
    assert not (doorward.workspace / "ran").exists()


def test_where_only_best_effort_would_run(doorward: Any) -> None:
    """A container whose own /proc is partly covered, as container engines do."""
    cover = "mount -t tmpfs cover /proc/acpi"
    done = _inside(doorward, cover, "doctor", "--json")
    assert done.returncode == 125, done.stderr
    document = json.loads(done.stdout)
    assert document["level"] == "best-effort"
    assert document["enforcement"] == {**dict.fromkeys(LAYERS, "kernel"), "process": "none"}
    assert "best-effort" in _named(document, "sandbox")["remedy"]
    assert b"--require best-effort it holds" in _inside(doorward, cover, "doctor").stdout
    refused = _inside(doorward, cover, "run", "--", "true")
    assert refused.returncode == 125
    ran = _inside(doorward, cover, "run", "--json", "--require", "best-effort", "--", "true")
    assert ran.returncode == 0
    observation = json.loads(ran.stdout)
    assert observation["enforcement"] == document["enforcement"]
    assert b"processes outside are visible" in ran.stderr
    (started,) = [line["payload"] for line in doorward.lines(observation["session"]) if line["type"] == "exec"]
    assert started["enforcement"] == document["enforcement"]
    assert any("processes outside are visible" in notice for notice in started["notices"])


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("[network\n", "configuration", "config.toml"),
        ('[network]\nallow = ["exa mple.com"]\n', "network rules", "exa mple.com"),
    ],
)
def test_a_broken_configuration_is_a_finding(doorward: Any, text: str, name: str, found: str) -> None:
    doorward.home.mkdir(mode=0o700)
    (doorward.home / "config.toml").write_text(text)
    seen = doorward("doctor", "--json")
    assert seen.status == 125
    (bad,) = [check for check in seen.document["checks"] if check["ok"] is False]
    assert bad["name"] == name
    assert found in bad["found"]
    assert seen.document["ok"] is False


def test_a_records_folder_that_cannot_be_made_is_a_finding(doorward: Any) -> None:
    (doorward.workspace / "file").write_text("")
    seen = doorward("doctor", "--json", env={"DOORWARD_HOME": str(doorward.workspace / "file" / "home")})
    assert seen.status == 125
    assert _named(seen.document, "records")["ok"] is False
    assert "DOORWARD_HOME" in _named(seen.document, "records")["remedy"]


def test_it_can_be_asked_from_anywhere(doorward: Any) -> None:
    """Also where no run could have its workspace."""
    seen = doorward("doctor", "--json", cwd="/etc")
    assert seen.status == 0, seen.out
