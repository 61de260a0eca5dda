"""Bad input: one clear sentence, the exit status of DESIGN §6, and never an unconfined run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["run"], "no command given"),
        (["run", "--alow", "x", "--", "true"], "did you mean --allow"),
        (["run", "--allow", "https://a.test/x", "--", "true"], "a.test"),
        (["run", "--allow", "*.com", "--", "true"], "*.com"),
        (["run", "--allow", "ex*mple.test", "--", "true"], "ex*mple.test"),
        (["run", "--timeout", "soon", "--", "true"], "positive number of seconds"),
        (["run", "-c", "network.alow=[]", "--", "true"], "network.allow"),
        (["run", "-s", "loose", "--", "true"], "workspace-write"),
        (["run", "--session", "nobody", "--", "true"], "nobody"),
        (["run", "--network", "full", "--allow", "a.test", "--", "true"], "--network proxied"),
        (["run", "-C", "gone", "--", "true"], "does not exist"),
        (["run", "-C", "/", "--", "true"], "system folder"),
        (["run", "--profile", "none", "--", "true"], "profile"),
        (["show", "nobody"], "nobody"),
        (["sohw"], "did you mean"),
        ([], ""),
    ],
)
def test_usage_errors_are_2_and_say_what_would_be_right(doorward: Any, args: list[str], words: str) -> None:
    seen = doorward(*args)
    assert seen.status == 2, seen.err
    assert words in seen.err
    assert "Traceback" not in seen.err
    assert doorward.rollouts() == []


def test_several_bad_rules_are_all_named(doorward: Any) -> None:
    """P-DM-08."""
    seen = doorward("run", "--allow", "https://*.a.test", "--allow", "b.test/path", "--", "true")
    assert seen.status == 2
    assert "https://*.a.test" in seen.err
    assert "b.test/path" in seen.err


def test_every_entry_that_is_no_rule_is_named_with_its_place_and_what_was_meant(doorward: Any) -> None:
    """P-DM-08: nothing starts half-configured."""
    entries = ["https://*.a.test", "b.test/path", "user@c.test", " d.test ", "*.com", ""]
    doorward.home.mkdir(mode=0o700)
    file = doorward.home / "config.toml"
    file.write_text("[network]\nallow = [\n" + "".join(f'  "{entry}",\n' for entry in ["ok.test", *entries]) + "]\n")
    file.chmod(0o600)
    seen = doorward("run", "--", "touch", "ran")
    assert seen.status == 2 and not (doorward.workspace / "ran").exists() and doorward.rollouts() == []
    for number, entry in enumerate(entries, 4):
        (line,) = [line for line in seen.err.splitlines() if f"config.toml:{number}, entry {number - 2}: " in line]
        assert f"{entry!r} is no usable rule" in line, line
    assert [line.rpartition("; write ")[2] for line in seen.err.splitlines()[1:6]] == [
        "'*.a.test'", "'b.test'", "'c.test'", "'d.test'", "'*.NAME.com'",
    ]  # fmt: skip


def test_what_the_kernel_takes_is_passed_intact_and_more_is_126_with_sizes(doorward: Any) -> None:
    """P-EV-16, through every process between the caller and the command."""
    code = "import os, sys; print(len(sys.argv), len(sys.argv[1]), len(os.environ['LONG']), os.environ['VARIABLE_499'])"
    env = {f"VARIABLE_{number}": str(number) for number in range(500)} | {"LONG": "x" * 100_000}
    seen = doorward("run", "--", "/usr/bin/python3", "-c", code, "y" * 100_000, *["a"] * 2000, env=env)
    assert (seen.status, seen.out.split()) == (0, [b"2002", b"100000", b"100000", b"499"]), seen.err
    unset = ("env", "-u", "LONG", "sh", "-c", "echo ${LONG-gone} $VARIABLE_499")
    assert doorward("run", "--", *unset, env=env).out == b"gone 499\n"
    # above the kernel's limit nothing can be handed to doorward's own process: a script inside reaches it
    more = doorward("run", "--", "/usr/bin/python3", "-c", "import os; os.execv('/bin/true', ['x' * 131_072])")
    assert more.status == 1 and "Argument list too long" in more.err


def test_an_unknown_key_names_file_line_and_nearest_spelling(doorward: Any) -> None:
    doorward.home.mkdir(mode=0o700)
    (doorward.home / "config.toml").write_text('[network]\nallow = ["a.test"]\nhoost = {}\n')
    (doorward.home / "config.toml").chmod(0o600)
    seen = doorward("run", "--", "true")
    assert seen.status == 2
    assert "config.toml:3" in seen.err
    assert "network.hosts" in seen.err


def test_a_working_folder_that_is_gone(doorward: Any) -> None:
    gone = doorward.workspace / "gone"
    gone.mkdir()
    script = f'cd {gone} && rmdir {gone} && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", *doorward.argv("run", "--", "true")],
        env=doorward.env, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert b"does not exist" in done.stderr


def test_a_full_disk_under_the_rollout_stops_the_run(doorward: Any) -> None:
    """RLIMIT_FSIZE stands in for a full disk: a write comes back short, or fails."""
    doorward("run", "--", "true")  # makes the home, the key and the caches
    marker = doorward.workspace / "ran"
    done = subprocess.run(
        ["bash", "-c", 'ulimit -f 1; exec "$@"', "sh", *doorward.argv("run", "--", "touch", "ran")],
        cwd=doorward.workspace,
        # nor may the interpreter keep a compiled module that is cut short
        env={**doorward.env, "PYTHONDONTWRITEBYTECODE": "1", **{f"V{number}": "x" * 50 for number in range(60)}},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 125
    assert b"cannot be recorded" in done.stderr
    assert not marker.exists()


def test_a_home_that_cannot_be_written(doorward: Any, tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    seen = doorward("run", "--", "touch", "ran", env={"DOORWARD_HOME": str(blocker / "home")})
    assert seen.status == 125
    assert not (doorward.workspace / "ran").exists()


def test_no_bubblewrap_is_125_with_the_remedy(doorward: Any) -> None:
    """The binary is covered in a mount namespace of the test's own."""
    bubblewrap = shutil.which("bwrap")
    assert bubblewrap is not None
    cover = f'mount --bind /dev/null {bubblewrap} && exec "$@"'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", cover, "sh", *doorward.argv("run", "--", "touch", "ran")],
        cwd=doorward.workspace,
        env=doorward.env,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 125
    assert b"bubblewrap" in done.stderr
    assert not (doorward.workspace / "ran").exists()


def test_a_bubblewrap_that_fails_is_125_and_not_the_commands_failure(doorward: Any, tmp_path: Path) -> None:
    """P-NS-02."""
    fake = tmp_path / "bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text(
        "#!/bin/sh\n"
        '[ "$1" = --version ] && { echo bubblewrap 0.8.0; exit; }\n'
        "echo 'bwrap: setting up uid map: Permission denied' >&2\n"
        "exit 1\n"
    )
    fake.chmod(0o755)
    seen = doorward("run", "--", "touch", "ran", env={"PATH": f"{fake.parent}:{os.environ['PATH']}"})
    assert seen.status == 125
    assert not (doorward.workspace / "ran").exists()


def test_a_doorward_inside_a_doorward_says_one_line(doorward: Any, tmp_path: Path) -> None:
    """DESIGN §6: a nested run exits 125 with one line."""
    # the inner one's home lies in the workspace, its program wherever this one's is visible
    argv = doorward.argv("run", "--", "true")
    seen = doorward("run", "--", "env", f"DOORWARD_HOME={doorward.workspace}/inner", *argv)
    if seen.status == 127:
        pytest.skip("the interpreter lies in a folder that the sandbox does not show")
    assert seen.status == 125
    assert len(seen.err.splitlines()) == 1
    assert "already runs inside one" in seen.err


def test_a_pattern_without_a_slash_hides_at_every_depth(doorward: Any) -> None:
    """P-FS-17, through the command line."""
    deep = doorward.workspace / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "my-secret.txt").write_text("k")
    (deep / "open.txt").write_text("k")
    seen = doorward("run", "--deny-read", "*secret*", "--", "grep", "-rl", "k", ".")
    assert seen.out == b"./a/b/open.txt\n"
