"""A command that asks: through the queue, answered from another process, and every pair in the rollout."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

RM = ("rm", "-f", "a")


def test_a_yes_from_elsewhere_lets_it_run(doorward: Any, observation: Any) -> None:
    process = doorward.start("run", "--json", "--", *RM)
    asked = doorward.question()
    (row,) = doorward.waiting()
    assert list(row) == ["id", "kind", "argv", "cwd", "gate", "asked_at"]
    assert (row["id"], row["kind"], row["argv"]) == (asked["id"], "shell", list(RM))
    assert (row["cwd"], row["gate"]) == (str(doorward.workspace), "approval")
    doorward.answer("allow", row["id"])
    seen = observation(process)
    assert (seen["exit_code"], seen["verdict"]["verdict"]) == (0, "allow")
    assert seen["verdict"]["reasons"][-1]["switch"] == "approvals.queue"
    lines = doorward.lines(seen["session"])
    told = [line["payload"].get("type") if line["type"] == "event_msg" else line["type"] for line in lines]
    order = [told.index(kind) for kind in ("approval_asked", "approval_answered", "verdict", "exec", "observation")]
    assert order == sorted(order), "each is written before it is seen"
    pair = [line["payload"] for line in lines if str(line["payload"].get("type")).startswith("approval_")]
    assert [(each["id"], each["channel"]) for each in pair] == [(row["id"], "approvals.queue")] * 2
    assert (pair[1]["answer"], pair[1]["scope"]) == ("yes", "once")
    assert doorward.waiting() == [] and os.listdir(doorward.home / "approvals") == []


def test_a_no_is_an_observation(doorward: Any, observation: Any) -> None:
    process = doorward.start("run", "--json", "--", *RM)
    doorward.answer("deny", doorward.question()["id"])
    seen = observation(process)
    assert (seen["success"], seen["exit_code"]) == (True, 126)
    assert [(each["reason"], each["gate"]) for each in seen["refusals"]] == [("person_denied", "approval")]
    types = [line["type"] for line in doorward.lines(seen["session"])]
    assert "exec" not in types


def test_nobody_in_time_means_no(doorward: Any, observation: Any) -> None:
    process = doorward.start("run", "--json", "-c", "approvals.timeout=0.2", "--", *RM)
    asked = doorward.question()
    seen = observation(process)
    assert seen["exit_code"] == 126 and seen["refusals"][0]["reason"] == "not_answered"
    assert doorward("approvals", "allow", asked["id"]).status == 2
    answers = [line["payload"] for line in doorward.lines(seen["session"]) if "answer" in line["payload"]]
    assert [each["answer"] for each in answers] == ["nobody"]


def test_without_the_queue_there_is_nobody(doorward: Any, observation: Any) -> None:
    seen = observation(doorward.start("run", "--json", "-c", "approvals.queue=false", "--", *RM))
    assert seen["exit_code"] == 126 and seen["refusals"][0]["reason"] == "not_answered"
    assert doorward.quiet()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_question_of_a_run_that_ended_disappears(doorward: Any, number: int) -> None:
    process = doorward.start("run", "--json", "--", *RM)
    asked = doorward.question()
    process.send_signal(number)
    process.communicate(timeout=60)
    assert doorward.waiting() == []
    done = doorward("approvals", "allow", asked["id"])
    assert done.status == 2 and "there is no question" in done.err
    assert os.listdir(doorward.home / "approvals") == []


def library(doorward: Any, script: str) -> subprocess.Popen[bytes]:
    """A program that embeds doorward: `run(...)` prints the exit code of each command."""
    program = (
        "import doorward, sys\n"
        "with doorward.open_session() as session:\n"
        "    def run(*argv, **more):\n"
        "        print(session.exec(argv, **more).exit_code, flush=True)\n"
        + "".join(f"    {line}\n" for line in script.splitlines())
    )
    return subprocess.Popen(
        [sys.executable, "-P", "-c", program],
        cwd=doorward.workspace,
        env=doorward.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )


def test_an_approval_for_the_session_is_found_again(doorward: Any) -> None:
    """P-AP-21: the same and the wrapped form are the same; another file and another folder are not."""
    (doorward.workspace / "sub").mkdir()
    process = library(
        doorward,
        'run("rm", "-f", "a")\nrun("rm", "-f", "a")\nrun("bash", "-lc", "rm -f a")\n'
        'run("rm", "-f", "b")\nrun("rm", "-f", "a", cwd="sub")\nrun("rm", "-f", "a")',
    )
    answers = [("allow", "--session"), ("deny",), ("deny",)]
    subjects = []
    for answer in answers:
        asked = doorward.question()
        subjects.append((asked["argv"], Path(asked["cwd"]).name))
        doorward.answer(*answer, asked["id"])
    out, _ = process.communicate(timeout=60)
    assert out.split() == [b"0", b"0", b"0", b"126", b"126", b"0"]
    assert subjects == [(["rm", "-f", "a"], "work"), (["rm", "-f", "b"], "work"), (["rm", "-f", "a"], "sub")]
    assert doorward.quiet()


def test_an_approval_for_the_session_is_found_by_a_later_process(doorward: Any, observation: Any) -> None:
    """P-AP-21"""
    process = doorward.start("run", "--name", "s", "--json", "--", *RM)
    doorward.answer("allow", "--session", doorward.question()["id"])
    session = observation(process)["session"]
    seen = observation(doorward.start("run", "--session", session, "--json", "--", *RM))
    assert (seen["exit_code"], seen["turn"]) == (0, 2) and doorward.quiet()
    assert seen["verdict"]["reasons"][-3]["switch"] == "session approval"
    # another session, also one made of the same lines, has nothing of it
    process = doorward.start("run", "--json", "--", *RM)
    doorward.answer("deny", doorward.question()["id"])
    assert observation(process)["exit_code"] == 126


def test_once_is_once(doorward: Any) -> None:
    process = library(doorward, 'run("rm", "-f", "a")\nrun("rm", "-f", "a")')
    doorward.answer("allow", "--once", doorward.question()["id"])
    doorward.answer("deny", doorward.question()["id"])
    assert process.communicate(timeout=60)[0].split() == [b"0", b"126"]


def test_always_writes_the_rule_that_was_shown(doorward: Any, observation: Any) -> None:
    process = doorward.start("run", "--json", "-a", "untrusted", "--", "bash", "-lc", "rm -f a")
    asked = doorward.question()
    rule = 'prefix_rule(pattern=["rm", "-f", "a"], decision="allow")'
    assert asked["rule"] == rule
    done = doorward("approvals", "allow", "--always", asked["id"])
    assert done.status == 0 and rule in done.err
    assert observation(process)["exit_code"] == 0
    file = doorward.home / "rules" / "default.rules"
    assert file.read_text() == f"{rule}\n" and file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_a_rule_that_was_kept_holds_in_the_next_run_and_for_those_words_alone(doorward: Any, observation: Any) -> None:
    """P-AP-20: restart, another directory, other words."""
    process = doorward.start("run", "--json", "--", "rm", "-f", "a")
    doorward.answer("allow", "--always", doorward.question()["id"])
    assert observation(process)["exit_code"] == 0
    (doorward.workspace / "sub").mkdir()
    for command in (("rm", "-f", "a"), ("bash", "-lc", "rm -f a")):
        seen = observation(doorward.start("run", "--json", "-C", "sub", "--", *command))
        assert seen["exit_code"] == 0 and "default.rules:1" in json.dumps(seen["verdict"])
    assert doorward.quiet()
    process = doorward.start("run", "--json", "--", "rm", "-f", "b")
    doorward.answer("deny", doorward.question()["id"])
    assert observation(process)["exit_code"] == 126


def test_always_is_not_offered_for_a_network_tool(doorward: Any, observation: Any) -> None:
    """P-AP-20"""
    process = doorward.start("run", "--json", "-a", "untrusted", "--", "curl", "-s", "http://allowed.test/ip")
    asked = doorward.question()
    assert asked["rule"] is None and "network tool" in asked["rule_note"]
    done = doorward("approvals", "allow", "--always", asked["id"])
    assert done.status == 2 and "network tool" in done.err
    assert not (doorward.home / "rules" / "default.rules").exists()
    doorward.answer("deny", asked["id"])
    assert observation(process)["exit_code"] == 126


def test_an_approved_command_has_not_opened_the_network(doorward: Any, origin: Any, observation: Any) -> None:
    """P-PP-18"""
    (doorward.home / "rules").mkdir(mode=0o700)
    (doorward.home / "rules" / "house.rules").write_text('prefix_rule(pattern=["curl"], decision="prompt")\n')
    fetch = ("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", origin.url())
    process = doorward.start("run", "--json", "--allow", "allowed.test", *origin.pin(), "--", *fetch)
    asked = doorward.question()
    assert asked["kind"] == "shell" and "house.rules:1" in asked["why"][0]
    doorward.answer("allow", "--session", asked["id"])
    host = doorward.question()
    assert (host["kind"], host["host"]) == ("network", "b.test"), "the host is another question"
    doorward.answer("deny", host["id"])
    seen = observation(process)
    assert seen["output"] == "403" and [each["host"] for each in seen["refusals"]] == ["b.test"]


def test_the_sandboxed_side_cannot_answer(doorward: Any, observation: Any) -> None:
    """While one question waits, a command of another run does not find it, and without a boundary for files it cannot
    reach it."""
    # not below /tmp, of which the sandbox has its own
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        doorward.home = Path(folder)
        doorward.env["DOORWARD_HOME"] = folder
        doorward.configure()
        process = doorward.start("run", "--json", "--", *RM)
        asked = doorward.question()
        path = f"{folder}/approvals/{asked['id']}.sock"
        knock = ("curl", "-sS", "-m", "5", "--unix-socket", path, "http://localhost/")
        assert subprocess.run(knock, capture_output=True, timeout=60, check=False).returncode == 1, "it can be reached"
        assert doorward("run", "--", "test", "-S", path).status == 1
        say = shlex.join(["printf", '{"answer": "yes", "scope": "once"}\\n'])
        talk = f"{say} | curl -sS -m 5 --http0.9 --unix-socket {path} -T - http://localhost/"
        inside = doorward("run", "-s", "danger-full-access", "--", "sh", "-c", talk)
        assert '"taken": true' not in inside.text, inside.err
        assert [row["id"] for row in doorward.waiting()] == [asked["id"]]
        doorward.answer("deny", asked["id"])
        assert observation(process)["exit_code"] == 126


def test_a_program_that_aborts_takes_its_question_back(doorward: Any) -> None:
    program = (
        "import doorward, sys, threading\n"
        "with doorward.open_session() as session:\n"
        "    threading.Thread(target=lambda: (sys.stdin.readline(), session.abort()), daemon=True).start()\n"
        "    try:\n"
        "        session.exec(['rm', '-f', 'a'])\n"
        "    except doorward.EngineError:\n"
        "        print('aborted')\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", program],
        cwd=doorward.workspace,
        env=doorward.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    doorward.question()
    assert len(doorward.waiting()) == 1
    out, _ = process.communicate(b"\n", timeout=60)
    assert out == b"aborted\n"
    assert doorward.waiting() == []


def test_a_large_question_is_whole(doorward: Any, observation: Any) -> None:
    argv = ("rm", "-f", *(f"file-{number:06d}" for number in range(20_000)))
    process = doorward.start("run", "--json", "-c", "approvals.notify=['true']", "--", *argv)
    while not (rows := doorward.waiting()):
        assert process.poll() is None
    assert rows[0]["argv"] == list(argv)
    doorward.answer("deny", rows[0]["id"])
    assert json.loads(json.dumps(observation(process)))["exit_code"] == 126


def test_a_notifier_that_does_not_work_is_said_to(doorward: Any, observation: Any) -> None:
    process = doorward.start("run", "--json", "-c", 'approvals.notify=["no-such-notifier"]', "--", *RM)
    while not (rows := doorward.waiting()):
        assert process.poll() is None
    doorward.answer("allow", rows[0]["id"])
    (note,) = observation(process)["notes"]
    assert "no-such-notifier cannot be started" in note
