"""Hooks in real runs: inside the sandbox, through the gates, and only ever stricter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


def script(doorward: Any, name: str, body: str) -> None:
    """A hook's script in the workspace."""
    path = doorward.workspace / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def configure(doorward: Any, *hooks: tuple[str, str], more: str = "") -> None:
    text = more + "".join(f'[[hooks.{event}]]\ncommand = ["./{name}"]\ntimeout = 5\n' for event, name in hooks)
    doorward.configure(text)


def run(doorward: Any, *args: str, options: tuple[str, ...] = ("-c", "approvals.queue=false")) -> dict[str, Any]:
    done = doorward("run", "--json", *options, *args)
    return dict(done.document)


def events(doorward: Any, seen: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    payloads = [line["payload"] for line in doorward.lines(seen["session"])]
    return [payload for payload in payloads if payload.get("type") == kind]


def test_each_runs_at_its_moment_with_its_document(doorward: Any) -> None:
    for event in ("session_start", "before_exec", "after_exec", "on_refusal"):
        script(doorward, event, "cat >&2; echo aside")
    configure(doorward, *((event, event) for event in ("session_start", "before_exec", "after_exec", "on_refusal")))
    assert doorward("trust", "--hooks").status == 0
    seen = run(doorward, "--", "sh", "-c", "curl -s http://b.test/; exit 3")
    assert seen["exit_code"] == 3 and seen["notes"] == []
    ended = events(doorward, seen, "hook_ended")
    assert [each["event"] for each in ended] == ["session_start", "before_exec", "after_exec", "on_refusal"]
    documents = [json.loads(each["output"].replace("aside\n", "")) for each in ended]
    assert all(each["session"] == seen["session"] and each["turn"] == 1 for each in documents)
    assert documents[1]["argv"][0] == "sh" and documents[1]["verdict"]["verdict"] == "allow"
    assert (documents[2]["exit_code"], documents[2]["refusals"]) == (3, 1)
    assert documents[3]["refusals"][0]["host"] == "b.test"
    # the second turn of the session is no start
    again = run(doorward, "--session", seen["session"], "--", "true")
    turn = [each["event"] for each in events(doorward, again, "hook_ended") if each["turn"] == 2]
    assert turn == ["before_exec", "after_exec"]
    assert doorward("verify", seen["session"]).status == 0


def test_a_hook_runs_inside_the_sandbox(doorward: Any, origin: Any) -> None:
    fetch = f"curl -s -o /dev/null -w '%{{http_code}}' {origin.url()}"
    script(doorward, "hook", f"echo x >/etc/planted; echo y >here; {fetch}")
    configure(doorward, ("session_start", "hook"))
    doorward("trust", "--hooks")
    seen = run(doorward, *origin.pin(), "--", "true")
    assert not Path("/etc/planted").exists() and (doorward.workspace / "here").read_text() == "y\n"
    (ended,) = events(doorward, seen, "hook_ended")
    assert ended["output"].endswith("403") and ended["exit_code"] == 0
    assert seen["refusals"] == [], "they are the hook's, not the command's"
    refused = [line["payload"] for line in doorward.lines(seen["session"]) if line["type"] == "refusal"]
    assert [(each["host"], each["hook"]) for each in refused] == [("b.test", "session_start")]


@pytest.mark.parametrize(
    ("body", "code", "reason"),
    [
        ("exit 0", 0, None),
        ("echo no objection", 0, None),
        ("""echo '{"decision": "allow"}'""", 0, None),
        ("""echo '{"decision": "deny", "reason": "not on Fridays"}'""", 126, "hook_denied"),
        ("""echo '{"decision": "ask"}'""", 126, "not_answered"),
        ("echo '{broken'", 126, "hook_denied"),
        ("echo broken >&2; exit 1", 126, "hook_failed"),
        ("sleep 60", 126, "hook_failed"),
    ],
)
def test_before_exec_can_only_tighten(doorward: Any, body: str, code: int, reason: str | None) -> None:
    script(doorward, "hook", body)
    doorward.configure('[[hooks.before_exec]]\ncommand = ["./hook"]\ntimeout = 0.5\n' if "sleep" in body else "")
    if "sleep" not in body:
        configure(doorward, ("before_exec", "hook"))
    doorward("trust", "--hooks")
    seen = run(doorward, "--", "true")
    assert (seen["success"], seen["exit_code"]) == (True, code)
    assert [each["reason"] for each in seen["refusals"]] == ([reason] if reason else [])
    if reason is None:
        # nor does its allow lift what the gates deny or ask
        assert run(doorward, "--", "tee", "/etc/hosts")["refusals"][0]["gate"] == "sandbox"
        assert run(doorward, "--", "rm", "-f", "a")["refusals"][0]["reason"] == "not_answered"
    elif reason == "hook_denied" and "Fridays" in body:
        assert "not on Fridays" in seen["refusals"][0]["message"] and seen["refusals"][0]["gate"] == "hook"


def test_a_hook_nobody_trusts_does_not_run(doorward: Any) -> None:
    script(doorward, "hook", "touch ran")
    configure(doorward, ("before_exec", "hook"))
    seen = run(doorward, "--", "true")
    assert seen["exit_code"] == 126 and seen["refusals"][0]["reason"] == "hook_not_trusted"
    assert not (doorward.workspace / "ran").exists()
    bypassed = run(doorward, "--dangerously-bypass-hook-trust", "--", "true")
    assert bypassed["exit_code"] == 0 and (doorward.workspace / "ran").exists()
    assert run(doorward, "--", "true")["exit_code"] == 126, "for that call only"
    # one that only watches is left out, and said to be
    configure(doorward, ("after_exec", "hook"))
    watched = run(doorward, "--", "true")
    assert watched["exit_code"] == 0 and "may not run" in watched["notes"][0]
    assert doorward("trust").status == 0
    assert run(doorward, "--", "true")["notes"] == [], "in a trusted project hooks are trusted"


def test_a_changed_hook_is_asked_about_again(doorward: Any, observation: Any) -> None:
    script(doorward, "hook", "exit 0")
    configure(doorward, ("before_exec", "hook"))
    process = doorward.start("run", "--json", "--", "true")
    asked = doorward.question()
    assert (asked["kind"], asked["argv"], asked["gate"]) == ("hook", ["./hook"], "hook-trust")
    doorward.answer("allow", "--always", asked["id"])
    assert observation(process)["exit_code"] == 0
    assert run(doorward, "--", "true", options=())["exit_code"] == 0 and doorward.quiet()
    script(doorward, "hook", "exit 0 # changed")
    process = doorward.start("run", "--json", "--", "true")
    again = doorward.question()
    assert again["rule"] != asked["rule"]
    doorward.answer("deny", again["id"])
    assert observation(process)["refusals"][0]["reason"] == "hook_not_trusted"


def test_a_hook_that_asks_is_answered_like_any_other(doorward: Any, observation: Any) -> None:
    script(doorward, "hook", """echo '{"decision": "ask", "reason": "look first"}'""")
    configure(doorward, ("before_exec", "hook"))
    doorward("trust", "--hooks")
    process = doorward.start("run", "--json", "--", "true")
    asked = doorward.question()
    assert asked["gate"] == "hook" and "look first" in asked["why"][0]
    doorward.answer("allow", "--session", asked["id"])
    seen = observation(process)
    assert seen["exit_code"] == 0
    # and exactly this, approved for the session, is not asked about again
    assert run(doorward, "--session", seen["session"], "--", "true", options=())["exit_code"] == 0 and doorward.quiet()
