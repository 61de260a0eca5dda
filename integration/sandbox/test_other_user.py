"""A command that root starts as another user: it is that user in every respect, and everything else still holds."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from doorward.launcher.interface import Identity, Mode, SandboxPolicy, SandboxUnavailable
from doorward.launcher.linux import Linux

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="root only: nobody else may become another user")

UID, GID, GROUP = 64251, 64252, 64253  # ids nobody has
ROOT = Path(__file__).resolve().parent.parent.parent
USER = ["tester", UID, GID, [GID, GROUP]]
WHILE_IT_RUNS = [["release"], ["await", "up"], ["say", "x"], ["hang"]]


@pytest.fixture
def theirs(caller_sandbox):
    """A sandbox of root's whose workspace belongs to the user; doorward's own folder stays closed to them."""
    os.chown(caller_sandbox.workspace, UID, GID)
    caller_sandbox.workspace.chmod(0o700)
    return caller_sandbox


def run(sandbox, argv, **more):
    policy = {"user": USER, **more.pop("policy", {})}
    return sandbox.run(argv, policy=policy, **more)


def test_ids_files_and_capabilities_are_the_users(theirs):
    answer = run(
        theirs, "id -u; id -g; echo x > made; mkdir d; grep -h Cap /proc/self/status | sort -u; cat /etc/shadow"
    )
    lines = answer["stdout"].split("\n")
    assert lines[:2] == [str(UID), str(GID)]
    assert {line.split()[1] for line in lines[2:] if line.startswith(("CapEff", "CapPrm", "CapInh", "CapBnd"))} == {
        "0000000000000000"
    }
    assert "Permission denied" in answer["stderr"]
    for name in ("made", "d"):
        found = theirs.path(name).stat()
        assert (found.st_uid, found.st_gid) == (UID, GID)
    assert answer["enforcement"] == ["kernel"] * 4


def test_supplementary_groups_open_what_the_group_may(theirs):
    shared = theirs.mkdir("shared")
    os.chown(shared, 0, GROUP)
    shared.chmod(0o2770)
    closed = theirs.mkdir("closed")
    os.chown(closed, 0, GROUP + 1)
    closed.chmod(0o2770)
    answer = run(theirs, "echo x > shared/made; echo x > closed/made")
    assert theirs.path("shared", "made").stat().st_gid == GROUP
    assert "closed/made" in answer["stderr"]
    assert not theirs.path("closed", "made").exists()


def test_roots_own_groups_are_gone(theirs):
    for_root = theirs.mkdir("for root")
    for_root.chmod(0o070)
    assert run(theirs, "ls 'for root'")["exit_code"] != 0


def test_a_hidden_path_below_roots_own_folder_stays_hidden(theirs):
    secret = theirs.write("secret", "no")
    os.chown(secret, UID, GID)
    answer = run(theirs, "cat secret; echo x >> secret", policy={"deny_read": [str(secret)]})
    assert answer["stdout"] == ""
    assert secret.read_text() == "no"


@pytest.mark.parametrize("mode", ["workspace-write", "danger-full-access", "unconfined"])
def test_in_every_mode(theirs, mode):
    network = "off" if mode == "workspace-write" else "full"
    answer = run(
        theirs, "id -u; id -G; umask; sleep 60 & echo $PPID > /dev/null", policy={"mode": mode, "network": network}
    )
    assert answer["stdout"].split("\n")[0] == str(UID)
    assert str(GROUP) in answer["stdout"].split("\n")[1] or mode != "unconfined"
    assert answer["exit_code"] == 0
    assert theirs.gone() == []


def test_protected_names_are_put_back_where_only_the_user_can_go(theirs):
    """The workspace is closed to everybody but the user; what is looked after lies in it."""
    answer = run(
        theirs, "mkdir -p .git .claude; echo '#!/bin/sh' > .claude/x; git init -q . ; echo x > .git/hooks/pre-commit"
    )
    assert answer["exit_code"] == 0, answer
    assert not theirs.path(".claude").exists()
    assert not theirs.path(".git", "hooks", "pre-commit").exists()
    assert answer["undone"]


def test_a_terminal_is_the_users(theirs):
    answer = run(theirs, "exec 3<>/dev/tty && tty >/dev/null && id -u", terminal=True)
    assert answer["stdout"].split() == [str(UID)]


def test_a_folder_the_user_cannot_enter_is_said(theirs):
    theirs.workspace.chmod(0o700)
    os.chown(theirs.workspace, 0, 0)
    answer = run(theirs, "true")
    assert answer["exit_code"] == 125
    kind, sentence, remedy = answer["failure"]
    assert kind == "directory"
    assert "cannot be entered by tester" in sentence
    assert "tester" in remedy


def test_a_program_the_user_may_not_run_is_said(theirs):
    program = theirs.base / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    answer = run(theirs, [str(program)])
    assert (answer["exit_code"], answer["failure"][0]) == (126, "not-executable")


def test_a_granted_path_the_user_cannot_reach_is_named(theirs):
    closed = theirs.base / "closed" / "inner"
    closed.mkdir(parents=True)
    closed.parent.chmod(0o700)
    answer = run(theirs, "true", policy={"write": [str(closed)]})
    assert answer["exit_code"] == 125
    assert str(closed) in answer["failure"][1]
    assert "cannot be reached" in answer["failure"][1]


def test_a_shim_that_was_started_ahead_for_root_is_not_used_for_the_user(theirs):
    answer = run(theirs, "id -u", ahead=True, repeat=2)
    assert answer["stdout"].split() == [str(UID)] * 2


def test_nothing_is_left_after_the_supervisor_was_killed(theirs):
    driver = theirs.start("mkdir .claude; echo up; sleep 60", policy={"user": USER}, steps=WHILE_IT_RUNS)
    assert driver.stderr.read(1) == b"x"
    driver.kill()
    driver.communicate(timeout=20)
    assert theirs.gone() == []
    assert not theirs.path(".claude").exists()


def test_the_users_other_processes_can_neither_signal_nor_trace_the_shim(theirs):
    """The shim keeps root's real ids, so a process of the user outside cannot end it."""
    driver = theirs.start("echo up; sleep 60", policy={"user": USER}, steps=WHILE_IT_RUNS)
    try:
        assert driver.stderr.read(1) == b"x"
        shims = [pid for pid, line in theirs.survivors() if pid != driver.pid and "driver.py" in line]
        assert shims
        for pid in shims:
            kill = ["/bin/sh", "-c", f"kill -9 {pid}"]
            tried = subprocess.run(
                kill, user=UID, group=GID, extra_groups=[], check=False, capture_output=True, timeout=20
            )
            assert tried.returncode != 0
            assert Path(f"/proc/{pid}").exists()
    finally:
        driver.kill()
        driver.communicate(timeout=20)
    assert theirs.gone() == []


def test_refusals_are_explained_by_what_the_user_could_have_done(theirs):
    for name, owner in (("theirs", UID), ("roots", 0)):
        (theirs.base / name).mkdir()
        os.chown(theirs.base / name, owner, owner)
    answer = run(theirs, f"touch '{theirs.base}/theirs/x' '{theirs.base}/roots/x'", policy={"explain": True})
    assert [path for path, *_ in answer["denied"]] == [f"{theirs.base}/theirs/x"]


def test_nobody_but_root_may_ask():
    """With the way out said."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.setresuid(UID, UID, UID)
        try:
            Linux().prepare(
                SandboxPolicy(
                    Mode.WORKSPACE_WRITE,
                    "/var/tmp",
                    "/var/tmp/h",
                    "/var/tmp/h/cache",
                    "off",
                    user=Identity("x", 1, 1, ()),
                )
            )
        except SandboxUnavailable as error:
            os.write(write, f"{error.sentence} {error.remedy}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read) as said:
        text = said.read()
    assert "Only root" in text
    assert "sudo doorward run --user x" in text


CLOSED = """
import os, sys
from doorward.launcher.interface import Command, Identity, Limits, Mode, SandboxPolicy, Stdio
from doorward.launcher.linux import Linux

folder, work = sys.argv[1:]
for mode in (Mode.WORKSPACE_WRITE, Mode.UNCONFINED):
    policy = SandboxPolicy(
        mode, work, folder + "/home", folder + "/home/cache", "off" if mode is Mode.WORKSPACE_WRITE else "full",
        user=Identity("tester", 64251, 64252, ()), limits=Limits(files=64, cpu_time=60), explain=True,
    )
    script = "mkdir -p .git/hooks && git init -q . && echo x > .git/hooks/post-commit; touch /etc/x; exit 3"
    command = Command(("sh", "-c", script), work, {"PATH": "/usr/bin:/bin"})
    process = Linux().prepare(policy).spawn(command, Stdio(-1, -1, -1))
    process.release()
    outcome = process.wait()
    process.close()
    print(outcome.exit_code, outcome.failure, [undone.path for undone in outcome.undone])
"""


def test_an_interpreter_the_user_cannot_read_serves_as_well(theirs):
    """doorward in a home of root's: what is loaded late must be loaded while it can be."""
    closed = theirs.base / "closed"
    shutil.copytree(ROOT, closed / "tree", ignore=shutil.ignore_patterns(".git", "__pycache__", "build"), symlinks=True)
    closed.chmod(0o700)
    site = [path for path in sys.path if path.endswith("site-packages")]
    done = subprocess.run(
        [sys.executable, "-P", "-c", CLOSED, str(closed), str(theirs.workspace)],
        env={"PYTHONPATH": os.pathsep.join([str(closed / "tree"), *site]), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    hook = str(theirs.path(".git", "hooks", "post-commit"))
    assert done.stdout.splitlines() == [f"3 None ['{hook}']", "3 None []"], done.stderr
