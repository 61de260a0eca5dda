"""What the hooks hand back, run as the agent would: confined, in one session, asked about once."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import time
from typing import Any

from integration.agents.conftest import DEADLINE, Place, doorward


def _hook(place: Place, command: str, *options: str, agent: str = "claude-code", **changes: Any) -> dict[str, Any]:
    event = {
        "session_id": "s1", "cwd": str(place.project), "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": command}, "tool_use_id": "t1",
    }  # fmt: skip
    done = place.doorward("hook", agent, *options, input=json.dumps(event | changes))
    answer: dict[str, Any] = json.loads(done.stdout)["hookSpecificOutput"]
    return answer


def _as_the_agent(place: Place, answer: dict[str, Any], **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", answer["updatedInput"]["command"]],
        **({"cwd": place.project, "env": place.env, "stdin": subprocess.DEVNULL} | more),
        capture_output=True, text=True, check=False, timeout=DEADLINE,
    )  # fmt: skip


def test_confined_in_one_session_wherever_the_agents_shell_is(place: Place) -> None:
    below = place.project / "below it"
    below.mkdir()
    first = _as_the_agent(place, _hook(place, "echo $((6 * 7)) > \"it's.txt\"; cat it*"))
    assert (first.returncode, first.stdout) == (0, "42\n")
    after = {"session_id": "s1", "cwd": str(place.project), "hook_event_name": "PostToolUse", "tool_name": "Bash",
             "tool_input": {"command": "x"}, "tool_use_id": "t1", "tool_response": "42"}  # fmt: skip
    assert place.doorward("hook", "claude-code", input=json.dumps(after)).stdout == ""
    # the workspace is still the whole project
    second = _as_the_agent(place, _hook(place, "pwd; touch ../above; touch /opt/x", cwd=str(below)), cwd=below)
    assert second.stdout == f"{below}\n"
    assert second.returncode == 1
    assert (place.project / "above").exists()
    assert not os.path.exists("/opt/x")
    assert [(each["name"], each["turns"]) for each in place.sessions()] == [("claude-code:s1", 2)]


def test_the_persons_yes_is_good_once(place: Place) -> None:
    (place.project / "build").mkdir()
    answer = _hook(place, "rm -rf build && echo gone")
    assert answer["permissionDecision"] == "ask"
    assert _as_the_agent(place, answer).stdout == "gone\n"
    again = _as_the_agent(place, answer)
    assert again.returncode == 126
    assert "nobody could answer" in again.stderr
    shown = place.doorward("show", "claude-code:s1").stdout
    assert "a person was asked and said yes" in shown


def test_a_yes_is_not_good_for_anything_else(place: Place) -> None:
    answer = _hook(place, "rm -rf build")
    changed = answer["updatedInput"]["command"].replace("rm -rf build", "rm -rf .")
    assert _as_the_agent(place, {"updatedInput": {"command": changed}}).returncode == 126
    assert _as_the_agent(place, answer).returncode == 0


def test_a_yes_to_a_command_opens_no_network(place: Place) -> None:
    """P-PP-18: approving the command also opened the network."""
    answer = _hook(place, "rm -rf build; curl -sS http://b.test/")
    assert answer["permissionDecision"] == "ask"
    assert '"reason":"not_allowed"' in _as_the_agent(place, answer).stdout.replace(" ", "")


def test_beside_a_command_that_still_runs(place: Place) -> None:
    long = _hook(place, "read -r word; echo $word")["updatedInput"]["command"]
    with subprocess.Popen(
        ["bash", "-c", long], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=place.project, env=place.env, text=True
    ) as running:
        assert running.stdin is not None
        until = time.monotonic() + DEADLINE
        while not any(each["turns"] for each in place.sessions()):
            assert time.monotonic() < until
        done = _as_the_agent(place, _hook(place, "echo beside"))
        assert (done.returncode, done.stdout) == (0, "beside\n")
        assert running.communicate("now\n", timeout=DEADLINE)[0] == "now\n"
    assert {each["name"] for each in place.sessions()} == {"claude-code:s1", "claude-code:s1+2"}
    for each in place.sessions():
        assert place.doorward("verify", each["id"]).returncode == 0


def test_an_agent_with_a_terminal_is_not_asked_for_its_own_approval(place: Place) -> None:
    """The agent could type the yes itself."""
    command = _hook(place, "true")["updatedInput"]["command"].replace("true", "'rm -rf build'")
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            ["bash", "-c", command], stdin=theirs, stdout=theirs, stderr=theirs, cwd=place.project, env=place.env,
            start_new_session=True,
        ) as running:  # fmt: skip
            os.close(theirs)
            os.write(ours, b"y\n")
            assert running.wait(DEADLINE) == 126
    finally:
        os.close(ours)


def test_the_queue_answers_for_an_agent_that_cannot_ask(place: Place) -> None:
    (place.home / "config.toml").write_text("approvals.queue = true\n")
    answer = _hook(place, "rm -rf build; echo gone", agent="codex")
    assert answer["permissionDecision"] == "allow"
    with subprocess.Popen(
        ["bash", "-c", answer["updatedInput"]["command"]], stdout=subprocess.PIPE, cwd=place.project, env=place.env
    ) as running:
        until = time.monotonic() + DEADLINE
        while not (waiting := json.loads(place.doorward("approvals", "list", "--json").stdout)):
            assert time.monotonic() < until
        assert place.doorward("approvals", "allow", waiting[0]["id"]).returncode == 0
        assert running.stdout is not None
        assert select.select([running.stdout], [], [], DEADLINE)[0]
        assert running.communicate(timeout=DEADLINE)[0] == b"gone\n"


def test_a_person_who_goes_on_with_it_is_in_its_workspace(place: Place) -> None:
    _as_the_agent(place, _hook(place, "true"))
    done = place.run(*doorward("resume", "claude-code:s1", "--", "pwd"))
    elsewhere = subprocess.run(
        doorward("run", "--session", "claude-code:s1", "--", "pwd"), cwd=place.user, env=place.env,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=DEADLINE,
    )  # fmt: skip
    assert done.stdout == elsewhere.stdout == f"{place.project}\n"


def test_a_doorward_inside_a_doorward_stays_confined(place: Place) -> None:
    """What an agent could write to get rid of the sandbox is itself inside it."""
    inner = " ".join(doorward("run", "--dangerously-bypass-approvals-and-sandbox", "--", "touch", "/opt/x"))
    done = _as_the_agent(place, _hook(place, inner))
    assert done.returncode != 0
    assert not os.path.exists("/opt/x")
