"""`explain` and `replay` on real runs: the incidents somebody asks about afterwards."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

TOKEN = "tok-5f3a9c1e77b2"


def told(doorward: Any, *words: str) -> dict[str, Any]:
    """The one turn of `explain --json`, doors and parts by name."""
    (turn,) = doorward("explain", "--json", *words).document["turns"]
    return {
        "doors": {door["door"]: door for door in turn["refusable"]},
        "parts": {part["part"]: part for part in turn["replayable"]},
        "contradictions": [found["sentence"] for found in turn["findings"] if not found["agree"]],
    }


def test_a_reset_under_a_forbidden_rule(doorward: Any) -> None:
    """Nothing of it ran, and the rule that said no is named with its file and line."""
    rules = doorward.home / "rules" / "default.rules"
    rules.parent.mkdir(parents=True, mode=0o700)
    rules.write_text(
        'prefix_rule(pattern=["git", "reset", "--hard"], decision="forbidden", justification="it throws work away")\n'
    )
    (doorward.workspace / "work").write_text("mine")
    ran = doorward("run", "--json", "--name", "reset", "--", "git", "reset", "--hard", "HEAD~3")
    assert ran.document["exit_code"] == 126
    found = told(doorward, "reset#1")
    policy = found["doors"]["gate policy"]
    assert (policy["could"], policy["did"]) == (True, "refused")
    assert "default.rules:1" in policy["why"][0]
    assert "it throws work away" in policy["why"][0]
    assert found["doors"]["sandbox"]["did"] == "not reached"
    assert found["parts"]["environment"]["rebuilt"] == "no"
    assert found["contradictions"] == []
    # wrapped in a shell it is the same door, and another policy can be tried on both
    doorward("run", "--session", "reset", "--", "sh", "-c", "git reset --hard HEAD~3")
    assert told(doorward, "reset#2")["doors"]["gate policy"]["did"] == "refused"
    other = doorward.workspace / "other.rules"
    other.write_text('prefix_rule(pattern=["git", "push"], decision="forbidden")\n')
    judged = doorward("replay", "--json", "--against", str(other), "reset")
    assert judged.status == 0
    assert [change["was"] for change in judged.document["changes"]] == ["deny", "deny"]
    doorward("run", "--name", "push", "-a", "never", "--", "git", "push", "--dry-run")
    assert doorward("replay", "--against", str(rules), "push").status == 0
    assert doorward("replay", "--against", str(other), "push").status == 1


def test_an_outbound_call_with_a_token(doorward: Any) -> None:
    """Who said no, was the token there, and can it be shown without the token being stored?"""
    call = 'curl -sS -H "X-Key: $BUILD_TAG" http://b.test/'
    env = {"SERVICE_TOKEN": "other-" + TOKEN, "BUILD_TAG": TOKEN}
    session = doorward("run", "--json", "--name", "call", "--", "sh", "-c", call, env=env).document["session"]
    found = told(doorward, "call#1")
    assert (found["doors"]["proxy"]["could"], found["doors"]["proxy"]["did"]) == (True, "refused")
    assert "b.test:80" in found["doors"]["proxy"]["why"][0]
    assert found["doors"]["gate approval"]["did"] == "allowed"
    assert "SERVICE_TOKEN" in found["parts"]["environment"]["why"]
    assert found["contradictions"] == []
    seen = doorward("explain", session, "--saw", TOKEN, "--json").document
    assert seen["seen"] is True
    (place,) = seen["places"]
    assert (place["turn"], place["where"], place["how"]) == (1, "environment", "fingerprint")
    assert doorward("explain", session, "--saw", "-", input=TOKEN.encode() + b"\n").out.count(b"BUILD_TAG") == 1
    # what was withheld was not seen, and the value is nowhere on the disk
    assert doorward("explain", "call", "--saw", "other-" + TOKEN, "--json").document["seen"] is False
    assert all(TOKEN.encode() not in path.read_bytes() for path in doorward.home.rglob("*") if path.is_file())
    text = doorward("explain", "call").out.decode()
    assert "> proxy" in text
    assert "in no allow rule" in text


def test_a_write_that_the_sandbox_blocks(doorward: Any) -> None:
    target = doorward.workspace / "kept" / "file"
    target.parent.mkdir()
    ran = doorward("run", "--name", "write", "--read-only", "kept", "--", "sh", "-c", "echo x > kept/file")
    assert ran.status != 0
    found = told(doorward, "write#1")
    assert found["doors"]["gate sandbox"]["did"] == "left to the kernel"
    assert found["doors"]["sandbox filesystem"]["did"] == "refused"
    assert any("Read-only file system" in why for why in found["doors"]["sandbox filesystem"]["why"])
    assert found["contradictions"] == []
    declared = doorward("run", "--json", "-s", "read-only", "--name", "declared", "--", "tee", "kept/file")
    assert declared.document["exit_code"] == 126
    found = told(doorward, "declared")
    assert found["doors"]["gate sandbox"]["did"] == "refused"
    assert found["doors"]["sandbox"]["did"] == "not reached"
    assert not target.exists()


def test_a_command_before_it_runs(doorward: Any) -> None:
    found = told(doorward, "-s", "read-only", "--", "tee", "out")
    assert found["doors"]["gate sandbox"]["did"] == "refused"
    assert doorward("check", "-s", "read-only", "--", "tee", "out").status == 20
    allowed = told(doorward, "--allow", "a.test", "--", "ls")
    assert allowed["doors"]["gate approval"]["did"] == "allowed"
    assert "1 allow rules" in allowed["doors"]["proxy"]["why"][0]
    assert doorward.rollouts() == []


def test_what_makes_no_sense(doorward: Any) -> None:
    session = doorward("run", "--json", "--name", "a#1", "--", "true").document["session"]
    assert doorward("explain", "a#1").status == 0  # the name, not a turn of it
    assert doorward("explain", "a#1#1").status == 0
    for bad in (
        ("explain",),
        ("explain", f"{session}#2"),
        ("explain", f"{session}#x"),
        ("explain", session, "--", "ls"),
        ("explain", session, "--saw", ""),
        ("explain", session, "--unseal", "nothing"),
        ("explain", "--"),
        ("replay",),
        ("replay", session, "--turn", "2"),
        ("replay", session, "--pace", "0"),
        ("replay", session, "--against", "missing.toml"),
        ("replay", session, "--json"),
    ):
        assert doorward(*bad).status == 2, bad


def test_replay_shows_it_again(doorward: Any) -> None:
    doorward("run", "--name", "s", "--", "sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x; printf '\\033[31m'")
    doorward("run", "--session", "s", "--", "curl", "-sS", "http://b.test/")
    shown = doorward("replay", "s")
    assert shown.status == 0
    text = shown.out.decode()
    assert text.count("x" * 100_000) == 1
    assert "\x1b" not in text
    assert text.index("[1] $ sh") < text.index("[2] $ curl") < text.index("REFUSED b.test:80")
    assert "[1]" not in doorward("replay", "--turn", "2", "s").out.decode()
    started = time.monotonic()
    assert doorward("replay", "--pace", "1", "--turn", "2", "s").status == 0
    assert time.monotonic() - started < 30


def test_replay_against_another_policy(doorward: Any, origin: Any, tmp_path: Path) -> None:
    reached = doorward("run", "--name", "s", *origin.reach(), "--", "curl", "-sS", origin.url())
    assert reached.out == b"hello\n"
    assert doorward("replay", "--against", 'approval_policy="on-request"', "s").status == 0
    policy = tmp_path / "strict.toml"
    policy.write_text('[network]\nallow = ["other.test"]\n')
    judged = doorward("replay", "--json", "--against", str(policy), "s")
    assert judged.status == 1
    (change,) = judged.document["changes"]
    assert (change["what"], change["was"], change["would_be"]) == (f"a.test:{origin.port}", "allow", "deny")
    looser = doorward("replay", "--against", 'network.deny=["b.test"]', "s")
    assert (looser.status, looser.out) == (0, b"")
    assert len(origin.requests) == 1


def test_credentials_are_not_shown_and_with_write_not_written(doorward: Any) -> None:
    token = "ghp_" + "a1B2" * 9
    printing = ("sh", "-c", "printf 'the token is ghp_%s\\n' $(printf 'a1B2%.0s' 1 2 3 4 5 6 7 8 9)")
    session = doorward("run", "--json", "--", *printing).document["session"]
    for command in ("show", "replay"):
        text = doorward(command, session).out.decode()
        assert token not in text
        assert "[redacted: GitHub token]" in text
    assert token in doorward("show", "--json", session).out.decode()
    ran = doorward("run", "--json", "-c", "replay.redact=write", "--", *printing).document
    assert token not in doorward("show", "--json", ran["session"]).out.decode()
    assert "credentials taken out" in told(doorward, ran["session"])["parts"]["output"]["why"]
    passed = doorward("run", "-c", "replay.redact=write", "--", *printing)
    assert token.encode() in passed.out


def test_a_sealed_environment_opens_with_the_key_alone(doorward: Any, tmp_path: Path) -> None:
    inside = doorward("sessions", "seal-key", str(doorward.home / "key"))
    assert inside.status == 2
    key = tmp_path / "key"
    made = doorward("sessions", "seal-key", str(key))
    assert made.status == 0
    doorward.home.mkdir(exist_ok=True)
    assert doorward("run", "-c", "replay.env=sealed", "--", "true").status == 2
    (doorward.home / "config.toml").write_bytes(made.out)
    session = doorward("run", "--json", "--", "true", env={"BUILD_TAG": TOKEN}).document["session"]
    assert TOKEN.encode() not in doorward.rollouts()[0].read_bytes()
    assert told(doorward, session)["parts"]["environment"]["rebuilt"] == "yes"
    opened = doorward("explain", f"{session}#1", "--unseal", str(key))
    assert json.loads(opened.out)["BUILD_TAG"] == TOKEN
    other = tmp_path / "other"
    doorward("sessions", "seal-key", str(other))
    assert doorward("explain", f"{session}#1", "--unseal", str(other)).status == 2
