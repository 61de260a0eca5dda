"""`doorward hook`: the gates' verdict in the agent's format, in the rollout first, and never an accidental yes."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from doorward.agents.rollouts import folder_of
from doorward.gates.action import Action
from doorward.gates.dial import Dial
from doorward.sessions.home import Home

Ask = Callable[..., dict[str, Any]]


class Agent:
    """An agent's session in a project of its own."""

    def __init__(self, base: Path) -> None:
        self.project = base / "project"
        self.project.mkdir()
        self.home = Home(str(base / "home"))
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(base),
            "DOORWARD_HOME": self.home.path,
            "PYTHONPATH": os.pathsep.join(sys.path),
        }

    def says(self, data: bytes, agent: str = "claude-code", *options: str) -> str:
        """The hook's output for these bytes."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", "doorward", "hook", agent, *options],
            input=data, capture_output=True, env=self.env, cwd=self.project, check=False, timeout=60,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode()

    def event(self, tool: str = "Bash", arguments: object = None, **changes: object) -> bytes:
        document = {
            "session_id": "s1",
            "cwd": str(self.project),
            "hook_event_name": "PreToolUse",
            "tool_name": tool,
            "tool_input": {"command": "ls -la"} if arguments is None else arguments,
            "tool_use_id": "t1",
        }
        return json.dumps(document | changes).encode()

    def answer(self, *args: Any, agent: str = "claude-code", options: tuple[str, ...] = (), **changes: Any) -> Any:
        said = self.says(self.event(*args, **changes), agent, *options)
        return json.loads(said)["hookSpecificOutput"] if said else None

    def rollouts(self) -> list[Path]:
        return sorted(Path(self.home.sessions).rglob("rollout-*.jsonl"))

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for path in self.rollouts() for line in path.read_text().splitlines()]


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path)


def test_an_allowed_command_goes_through_doorward_run(agent: Agent) -> None:
    answer = agent.answer("Bash", {"command": "echo 'a b' | cat", "timeout": 5})
    assert answer["permissionDecision"] == "allow"
    assert answer["updatedInput"]["timeout"] == 5
    words = shlex.split(answer["updatedInput"]["command"])
    assert words[0] == sys.executable
    start = words.index("run")
    assert words[start : start + 2] == ["run", "--agent"]
    assert words[start + 3 :] == ["--session", "claude-code:s1", "--", "bash", "-c", "echo 'a b' | cat"]
    said = [each["payload"] for each in agent.records() if each["payload"].get("type") == "agent_hook"]
    assert [(each["decision"], each["verdict"]["verdict"]) for each in said] == [("allow", "allow")]


def test_the_hooks_options_are_those_of_the_run(agent: Agent) -> None:
    options = ("--allow", "b.test", "-s", "read-only", "--network", "proxied")
    words = shlex.split(agent.answer(options=options)["updatedInput"]["command"])
    assert words[-8:-3] == ["claude-code:s1", "--allow=b.test", "--sandbox=read-only", "--network=proxied", "--"]


def test_while_the_agent_plans_only_what_reads_is_answered_with_a_yes(agent: Agent) -> None:
    assert agent.answer(permission_mode="plan")["permissionDecision"] == "allow"
    answer = agent.answer("Bash", {"command": "make"}, permission_mode="plan", options=("-a", "never"))
    assert answer["permissionDecision"] == "ask"
    words = shlex.split(answer["updatedInput"]["command"])
    assert [word for word in words if "approval" in word] == ["--ask-for-approval=untrusted"]
    assert agent.answer("Write", {"file_path": "x"}, permission_mode="plan")["permissionDecision"] == "ask"
    assert agent.answer("Bash", {"command": "make"})["permissionDecision"] == "allow"


def test_a_shell_command_is_left_to_the_runs_reviewer_and_another_tool_is_not(agent: Agent) -> None:
    options = ("--enable", "guardian_approval", "-c", 'guardian.command=["false"]')
    answer = agent.answer("Bash", {"command": "rm -rf x"}, options=(*options, "-a", "never"))
    assert answer["permissionDecision"] == "allow"
    assert agent.answer("Write", {"file_path": "x"}, options=options) is None
    beyond = (*options, "-a", "never", "--add-dir", str(agent.project.parent))
    # risky: outside the workspace, and a reviewer that fails has not said yes
    answer = agent.answer("Write", {"file_path": "../y"}, agent="codex", options=beyond, session_id="s2")
    assert answer["permissionDecision"] == "deny"
    assert any(each["payload"].get("type") == "review" for each in agent.records())


def test_a_forbidden_command_is_denied_with_the_reason_and_a_turn(agent: Agent) -> None:
    rules = Path(agent.home.rules)
    rules.mkdir(parents=True)
    (rules / "x.rules").write_text('prefix_rule(pattern=["git", "push"], decision="forbidden")\n')
    answer = agent.answer("Bash", {"command": "cd x && git push origin"}, agent="codex")
    assert answer["permissionDecision"] == "deny"
    assert "git push" in answer["permissionDecisionReason"]
    assert [each["type"] for each in agent.records()] == [
        "session_meta", "event_msg", "turn_context", "event_msg", "verdict", "refusal", "observation", "event_msg"
    ]  # fmt: skip


def test_all_of_one_agent_session_is_one_rollout(agent: Agent) -> None:
    for _ in range(3):
        agent.answer()
    agent.answer(hook_event_name="PostToolUse", tool_response={"stdout": "x"}, tool_use_id="t9")
    agent.says(agent.event(hook_event_name="UserPromptSubmit", prompt="do it"))
    assert len(agent.rollouts()) == 1
    agent.answer(session_id="s2")
    assert len(agent.rollouts()) == 2


def test_two_hooks_at_once_in_one_session_wait_for_each_other(agent: Agent) -> None:
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(agent.answer())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [each["permissionDecision"] for each in answers] == ["allow"] * 4
    assert len(agent.rollouts()) == 1


def test_beside_a_command_that_still_runs_a_further_rollout_is_made(agent: Agent) -> None:
    """One writer a rollout; a command in the background holds it as long as it runs."""
    agent.answer()
    [first] = agent.rollouts()
    with first.open("rb") as running:
        fcntl.flock(running, fcntl.LOCK_EX)
        agent.answer()
        agent.answer()
    assert len(agent.rollouts()) == 2
    names = [json.loads(path.read_text().splitlines()[0])["payload"]["name"] for path in agent.rollouts()]
    assert sorted(names) == ["claude-code:s1", "claude-code:s1+2"]


def test_the_workspace_stays_where_the_session_began(agent: Agent) -> None:
    agent.answer()
    below = agent.project / "below"
    below.mkdir()
    beside = {"file_path": str(agent.project / "x")}
    assert agent.answer("Write", beside, cwd=str(below)) is None
    assert agent.answer("Write", {"file_path": "/etc/x"}, cwd=str(below))["permissionDecision"] == "deny"


@pytest.mark.parametrize(
    ("tool", "arguments", "decision"),
    [
        ("Write", {"file_path": "new.txt"}, None),
        ("Edit", {"file_path": "../../etc/passwd"}, "deny"),
        ("Write", {"file_path": ".git/hooks/pre-commit"}, "deny"),
        ("apply_patch", {"command": "*** Begin Patch\n*** Add File: a\n*** Add File: /opt/b\n*** End Patch"}, "deny"),
        ("WebFetch", {"url": "https://a.test/"}, None),
        ("WebFetch", {"url": "https://b.test/"}, "deny"),
        ("WebFetch", {"url": "http://169.254.169.254/"}, "deny"),
        ("Grep", {"pattern": "x"}, None),
    ],
)
def test_the_agents_own_tools(agent: Agent, tool: str, arguments: dict[str, str], decision: str | None) -> None:
    answer = agent.answer(tool, arguments, options=("--allow", "a.test"))
    assert (None if answer is None else answer["permissionDecision"]) == decision


def test_an_agent_that_asks_its_person_gets_a_secret_for_exactly_that(agent: Agent) -> None:
    answer = agent.answer("Bash", {"command": "rm -rf build"})
    assert answer["permissionDecision"] == "ask"
    assert "rm deletes" in answer["permissionDecisionReason"]
    words = shlex.split(answer["updatedInput"]["command"])
    secret = words[words.index("--approved") + 1]
    kept = [path.read_text() for path in Path(agent.home.approvals, "yes").iterdir()]
    assert len(kept) == 1
    assert secret not in "".join([*kept, *(path.read_text() for path in agent.rollouts())])
    asked = [each["payload"] for each in agent.records() if each["payload"].get("type") == "approval_asked"]
    assert [each["channel"] for each in asked] == ["claude-code"]
    schema = json.loads((Path(__file__).parents[3] / "docs" / "schema" / "rollout.schema.json").read_text())
    for record in agent.records():
        jsonschema.validate(record, schema)


def test_the_secret_is_good_once_for_one_action_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from doorward.agents import one_time_yes

    home, dial = Home(str(tmp_path / "home")), Dial(str(tmp_path))
    action = Action("shell", ("rm", "-rf", "build"), str(tmp_path), {"PATH": "/bin"})
    secret = one_time_yes.issue(home, dial, action, "q1")
    assert one_time_yes.redeem(home, "0" * 48, dial, action) is None
    assert one_time_yes.redeem(home, secret, dial, action._replace(argv=("rm", "-rf", "."))) is None
    assert one_time_yes.redeem(home, secret, dial, action._replace(cwd="/")) is None
    assert one_time_yes.redeem(home, secret, dial._replace(sandbox_mode="danger-full-access"), action) is None
    # the agent's shell may have another PATH than its hooks
    assert one_time_yes.redeem(home, secret, dial, action._replace(env={"PATH": "/usr/bin"})) == "q1"
    assert one_time_yes.redeem(home, secret, dial, action) is None
    monkeypatch.setattr(one_time_yes, "LASTS_S", -1)
    late = one_time_yes.issue(home, dial, action, "q2")
    assert one_time_yes.redeem(home, late, dial, action) is None


def test_where_the_agent_cannot_ask_the_queue_is_told_of(agent: Agent) -> None:
    answer = agent.answer("Bash", {"command": "rm -rf build"}, agent="codex")
    assert answer["permissionDecision"] == "deny"
    assert "approvals.queue" in answer["permissionDecisionReason"]


def test_where_the_agent_cannot_ask_and_the_queue_is_on_the_run_asks(agent: Agent) -> None:
    options = ("-c", "approvals.queue=true")
    answer = agent.answer("Bash", {"command": "rm -rf build"}, agent="codex", options=options)
    assert answer["permissionDecision"] == "allow"
    assert "--config=approvals.queue=true" in shlex.split(answer["updatedInput"]["command"])


@pytest.mark.parametrize("name", ["claude-code", "codex"])
@pytest.mark.parametrize(
    "data", [b"", b"{", b"null", b"[" * 100_000, b"\xff", b'{"session_id": "s"}', b'{"a":' + b'"x' * 10_000_000]
)
def test_what_is_no_event_is_denied(agent: Agent, name: str, data: bytes) -> None:
    answer = json.loads(agent.says(data, name))["hookSpecificOutput"]
    assert answer["permissionDecision"] == "deny"
    assert answer["permissionDecisionReason"].startswith("doorward: the event ")


def test_a_command_of_ten_megabytes_is_denied(agent: Agent) -> None:
    assert agent.answer("Bash", {"command": "echo " + "x" * 10_000_000})["permissionDecision"] == "deny"
    answer = agent.answer("Bash", {"command": "echo " + "x" * 200_000})
    assert answer["permissionDecision"] == "deny"
    assert "put it into a script" in answer["permissionDecisionReason"]


def test_a_machine_that_cannot_record_denies(agent: Agent) -> None:
    Path(agent.home.path).write_text("not a folder")
    answer = agent.answer()
    assert answer["permissionDecision"] == "deny"
    assert "not a directory" in answer["permissionDecisionReason"]


def test_configuration_that_is_wrong_denies(agent: Agent) -> None:
    Path(agent.home.path).mkdir()
    Path(agent.home.config).write_text("sandbox_mod = 1\n")
    answer = agent.answer()
    assert answer["permissionDecision"] == "deny"
    assert "sandbox_mode" in answer["permissionDecisionReason"]


def test_what_a_tool_said_is_a_message(agent: Agent) -> None:
    agent.answer("Grep", {"pattern": "x"})
    agent.says(agent.event("Grep", {"pattern": "x"}, hook_event_name="PostToolUse", tool_response="y" * 40_000))
    [output] = [each["payload"] for each in agent.records() if each["payload"].get("type") == "function_call_output"]
    assert output["call_id"] == "t1"
    assert 16_000 < len(output["output"]) < 17_000


def test_the_lists_are_private(agent: Agent) -> None:
    agent.answer()
    folder = Path(folder_of(agent.home))
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.rglob("*")} == {0o600, 0o700}


def _afterwards(agent: Agent, call: str, **changes: Any) -> str:
    event = agent.event(hook_event_name="PostToolUse", tool_response="out", tool_use_id=call, **changes)
    return agent.says(event)


def test_an_agent_that_drops_the_changed_command_is_found_out(agent: Agent) -> None:
    """anthropics/claude-code#15897, #81340: the command ran as it was, and nothing said so."""
    agent.answer(tool_use_id="t1")
    said = json.loads(_afterwards(agent, "t1"))
    assert said["decision"] == "block"
    assert "did NOT go through doorward" in said["reason"]
    assert any(each["payload"].get("type") == "agent_went_round" for each in agent.records())
    after = agent.answer(tool_use_id="t2")
    assert after["permissionDecision"] == "deny"
    assert "no shell command is let through" in after["permissionDecisionReason"]
    # it is told once, and other tools and sessions are none of it
    assert _afterwards(agent, "t1") == ""
    assert agent.answer("Write", {"file_path": "x"}) is None
    assert agent.answer(session_id="s2")["permissionDecision"] == "allow"


def test_a_command_that_arrived_is_no_alarm(agent: Agent) -> None:
    answer = agent.answer(tool_use_id="t1")
    words = shlex.split(answer["updatedInput"]["command"])
    # as far as the run gets before it needs a sandbox: a folder that cannot be the workspace
    subprocess.run(
        [*words[: words.index("--session")], "-C", "/", "--", "true"],
        env=agent.env, cwd=agent.project, check=False, timeout=60, capture_output=True,
    )  # fmt: skip
    assert _afterwards(agent, "t1") == ""
    assert agent.answer(tool_use_id="t2")["permissionDecision"] == "allow"


@pytest.mark.parametrize(
    "changes",
    [
        {"tool_input": {"command": "ls -la", "run_in_background": True}},
        {"hook_event_name": "PostToolUseFailure"},
        {"tool_use_id": "other"},
        {"tool_use_id": None},
    ],
)
def test_what_says_nothing_about_it_is_no_alarm(agent: Agent, changes: dict[str, Any]) -> None:
    """In the background it may not have got there yet; a tool that failed may never have run it."""
    agent.answer(tool_use_id="t1")
    event = {"hook_event_name": "PostToolUse", "tool_use_id": "t1"} | changes
    assert agent.says(agent.event(**event)) == ""
