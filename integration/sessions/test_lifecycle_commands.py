"""`resume`, `fork`, `rename`, `archive`, `unarchive` and `delete` on sessions that real runs made."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def session(doorward: Any) -> str:
    """A session with two turns, named `nightly`, that began read-only."""
    first = doorward("run", "--json", "-s", "read-only", "--name", "nightly", "--", "echo", "one").document["session"]
    doorward("run", "--session", "nightly", "--", "echo", "two")
    return str(first)


def test_resume_appends_a_turn_in_the_sandbox_it_began_with(doorward: Any, session: str) -> None:
    ran = doorward("resume", "nightly", "--", "sh", "-c", "echo three; touch made")
    assert ran.status != 0
    assert ran.out == b"three\n"
    assert not (doorward.workspace / "made").exists()
    seen = doorward("resume", session, "--json", "--", "true").document
    assert (seen["session"], seen["turn"], seen["exit_code"]) == (session, 4, 0)
    contexts = [line["payload"] for line in doorward.lines(session) if line["type"] == "turn_context"]
    assert {context["sandbox_policy"]["type"] for context in contexts} == {"read-only"}
    assert doorward("verify", session).status == 0


@pytest.mark.parametrize(
    "looser",
    [
        ("-s", "workspace-write"),
        ("-s", "danger-full-access"),
        ("--network", "full"),
        ("--dangerously-bypass-approvals-and-sandbox",),
    ],
)
def test_a_looser_sandbox_is_refused_on_resume(doorward: Any, session: str, looser: tuple[str, ...]) -> None:
    for command in (("resume", *looser, session), ("run", *looser, "--session", session)):
        ran = doorward(*command, "--", "touch", "made")
        assert ran.status == 2
        assert "pinned" in ran.err
    assert not (doorward.workspace / "made").exists()
    assert doorward("sessions", "--json").document[0]["turns"] == 2


def test_what_may_be_written_is_pinned_and_may_be_tightened(doorward: Any, tmp_path: Path) -> None:
    extra, other = tmp_path / "extra", tmp_path / "other"
    extra.mkdir()
    other.mkdir()
    session = doorward("run", "--json", "--add-dir", str(extra), "--", "true").document["session"]
    assert doorward("resume", "-a", "never", session, "--", "touch", str(extra / "again")).status == 0
    assert doorward("resume", "--add-dir", str(other), session, "--", "true").status == 2
    assert doorward("resume", session, "--", "pwd", cwd=other).out.decode().strip() == str(doorward.workspace)
    assert doorward("resume", "-C", str(other), session, "--", "true").status == 2
    assert doorward("resume", "-s", "read-only", session, "--", "touch", "made").status != 0
    assert not (doorward.workspace / "made").exists()
    assert doorward("resume", session, "--", "touch", "made").status == 0


def test_a_limited_network_stays_limited(doorward: Any) -> None:
    session = doorward("run", "--json", "--network", "limited", "--", "true").document["session"]
    assert doorward("resume", "--network", "proxied", session, "--", "true").status == 2
    assert doorward("resume", session, "--", "true").status == 0
    settings = [line["payload"]["doorward"] for line in doorward.lines(session) if line["type"] == "turn_context"]
    assert [each["rules"]["limited"] for each in settings] == [True, True]


def test_resume_without_a_command_tells_and_writes_nothing(doorward: Any, session: str) -> None:
    (path,) = doorward.rollouts()
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    shown = doorward("resume", "nightly")
    assert shown.status == 0
    assert "2 turns" in shown.out.decode()
    assert "echo two" in shown.out.decode()
    state = doorward("resume", "--json", session).document
    assert (state["turns"], state["last_command"], state["last_exit_code"]) == (2, ["echo", "two"], 0)
    assert (state["live"], state["open_turn"]) == (False, None)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_archived_is_refused_with_the_remedy(doorward: Any, session: str) -> None:
    assert doorward("archive", "nightly").status == 0
    assert doorward("sessions", "--json").document == []
    assert [row["archived"] for row in doorward("sessions", "--all", "--json").document] == [True]
    for command in (("resume", session), ("run", "--session", "nightly")):
        ran = doorward(*command, "--", "true")
        assert ran.status == 2
        assert f"doorward unarchive {session}" in ran.err
    assert doorward("rename", session, "x").status == 2
    assert doorward("unarchive", "nightly", "--json").document == {"id": session, "name": "nightly", "archived": False}
    assert doorward("resume", session, "--", "true").status == 0


def test_fork_shares_and_goes_on(doorward: Any, session: str) -> None:
    path = doorward.rollouts()[0]
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    made = doorward("fork", "--at", "2", "--name", "second", "nightly")
    assert made.status == 0
    identifier = made.out.decode().strip()
    assert made.out == f"{identifier}\n".encode()
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    row = next(row for row in doorward("sessions", "--json").document if row["id"] == identifier)
    assert (row["name"], row["turns"]) == ("second", 1)
    assert doorward("resume", "second", "--json", "--", "echo", "other").document["turn"] == 2
    commands = [line["payload"]["argv"] for line in doorward.lines(identifier) if line["type"] == "exec"]
    assert commands == [["echo", "one"], ["echo", "other"]]
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert doorward("verify", identifier).status == 0
    assert doorward("verify", "--all").status == 0
    assert doorward("resume", "-s", "workspace-write", "second", "--", "true").status == 2


@pytest.mark.parametrize("at", ["3", "0", "-1", "x", "99999999999999999999"])
def test_fork_at_what_is_no_turn(doorward: Any, session: str, at: str) -> None:
    assert doorward("fork", f"--at={at}", session).status == 2
    assert len(doorward.rollouts()) == 1


def test_a_live_session_is_left_alone_and_its_pid_named(doorward: Any) -> None:
    running = doorward.start("run", "--name", "busy", "--", "sh", "-c", "echo started; exec cat", stdin=subprocess.PIPE)
    assert running.stdout.readline() == b"started\n"
    try:
        (row,) = doorward("sessions", "--json").document
        for command in (
            ("archive", "busy"),
            ("rename", "busy", "x"),
            ("delete", "--force", row["id"]),
        ):
            ran = doorward(*command)
            assert ran.status == 1, command
            assert str(running.pid) in ran.err, command
        assert doorward("fork", "busy").status == 2
        before = doorward("fork", "--at", "1", "busy")
        assert before.status == 0
        assert doorward("resume", "--json", "busy").document["live"] is True
        assert doorward("resume", "busy", "--", "true").status == 125
    finally:
        running.stdin.close()
        assert running.wait(30) == 0
        running.stdout.close()
        running.stderr.close()
    assert doorward("archive", "busy").status == 0


def test_a_turn_whose_writer_was_killed_is_open_until_it_is_gone_on_with(doorward: Any) -> None:
    """P-RS-14, through the command line."""
    running = doorward.start("run", "--name", "cut", "--", "sh", "-c", "echo started; exec sleep 600")
    assert running.stdout.readline() == b"started\n"
    os.kill(running.pid, signal.SIGKILL)
    running.wait(30)
    running.stdout.close()
    running.stderr.close()
    assert doorward("fork", "cut").status == 2
    assert doorward("resume", "--json", "cut").document["open_turn"] == 1
    assert doorward("resume", "cut", "--", "true").status == 0
    session = doorward("sessions", "--json").document[0]["id"]
    assert [line["payload"].get("type") for line in doorward.lines(session)].count("turn_aborted") == 1
    assert doorward("fork", "cut").status == 0


def test_delete_asks_and_force_takes_only_a_uuid(doorward: Any, session: str) -> None:
    unasked = doorward("delete", "nightly")
    assert unasked.status == 2
    assert f"doorward delete --force {session}" in unasked.err
    assert doorward("delete", "--force", "nightly").status == 2
    fork = doorward("fork", "nightly").out.decode().strip()
    assert doorward("delete", "--force", session.upper(), "--json").document == {
        "id": session,
        "deleted": True,
        "kept_for": [fork],
    }
    assert [line["payload"]["argv"] for line in doorward.lines(fork) if line["type"] == "exec"] == [
        ["echo", "one"],
        ["echo", "two"],
    ]
    assert doorward("verify", fork).status == 0
    assert doorward("delete", "--force", fork).status == 0
    assert doorward("sessions", "--all", "--json").document == []
    assert list(doorward.home.rglob("*.jsonl")) == []


def test_an_unknown_and_an_ambiguous_name(doorward: Any) -> None:
    """P-RS-15: a tie lists the ids."""
    ids = [doorward("run", "--json", "--name", "twin", "--", "true").document["session"] for _ in range(2)]
    for command in ("show", "resume", "fork", "archive", "delete", "verify"):
        ran = doorward(command, "twin")
        assert ran.status == 2, command
        assert all(identifier in ran.err for identifier in ids), command
        assert doorward(command, "nobody").status == 2
    assert json.loads(doorward("rename", ids[0], "single", "--json").out) == {"id": ids[0], "name": "single"}
    assert doorward("show", "single").status == 0
    assert doorward("show", "twin").status == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run commands as another user")
def test_the_user_is_pinned(doorward: Any, tmp_path: Path) -> None:
    for folder in (doorward.workspace, tmp_path, *tmp_path.parents):
        if folder == Path(tempfile.gettempdir()):
            break
        folder.chmod(0o755)
    session = doorward("run", "--json", "--user", "nobody", "--", "id", "-un").document["session"]
    assert doorward("resume", session, "--", "id", "-un").out == b"nobody\n"
    assert doorward("resume", "--user", "daemon", session, "--", "true").status == 2


@pytest.mark.parametrize(("answer", "status"), [(b"y\n", 0), (b"\n", 1), (b"nightly\n", 1)])
def test_delete_asks_on_a_terminal(doorward: Any, session: str, answer: bytes, status: int) -> None:
    """Only a yes is a yes."""
    ours, theirs = os.openpty()
    asking = doorward.start("delete", "nightly", stdin=theirs, stderr=theirs)
    os.close(theirs)
    asked = b""
    while b"[y/N]" not in asked:
        asked += os.read(ours, 4096)
    assert session.encode() in asked
    os.write(ours, answer)
    assert asking.wait(30) == status
    asking.stdout.close()
    os.close(ours)
    assert len(doorward.rollouts()) == (0 if status == 0 else 1)
