"""Rules files in a run: what they forbid does not start, what they allow is not asked about, hosts reach the proxy."""

from __future__ import annotations

import os
from typing import Any

import pytest

FORBID_TOUCH = 'prefix_rule(pattern=["touch"], decision="forbidden", justification="make no files here")\n'


@pytest.mark.parametrize(
    "argv",
    [
        ("touch", "a"),
        ("sh", "-c", "touch a"),
        ("env", "A=1", "nice", "touch", "a"),
        ("bash", "-lc", "true && for i in 1; do x=$(touch a); done"),
        ("sh", "-c", "t=touch; $t a"),
    ],
)
@pytest.mark.parametrize("bypass", [(), ("--dangerously-bypass-approvals-and-sandbox",)])
def test_what_is_forbidden_does_not_start(doorward: Any, argv: tuple[str, ...], bypass: tuple[str, ...]) -> None:
    """P-AP-09, P-AP-10, P-AP-16"""
    file = doorward.rules(FORBID_TOUCH)
    seen = doorward("run", "--json", "-a", "never", *bypass, "--", *argv)
    assert seen.status == 126
    (refusal,) = seen.document["refusals"]
    assert (refusal["reason"], refusal["gate"]) == ("forbidden", "policy")
    assert f"the policy rule at {file}:1 forbids" in refusal["message"]
    assert "make no files here" in refusal["message"]
    assert list(doorward.workspace.iterdir()) == []


def test_what_is_allowed_is_not_asked_about(doorward: Any) -> None:
    doorward.rules('prefix_rule(pattern=["rm", "-rf", "build"])\n')
    (doorward.workspace / "build").mkdir()
    assert doorward("run", "--", "rm", "-rf", "src").status == 126, "without a rule it is asked, and nobody answers"
    assert doorward("run", "--", "sh", "-c", "rm -rf build && true").status == 0
    assert not (doorward.workspace / "build").exists()


def test_a_prompt_asks_under_every_policy(doorward: Any) -> None:
    doorward.rules('prefix_rule(pattern=["touch"], decision="prompt")\n')
    seen = doorward("run", "--json", "-a", "never", "--", "sh", "-c", "touch a")
    assert seen.status == 126
    assert seen.document["refusals"][0]["reason"] == "not_answered"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('\nprefix_rule(pattern=["a"', ":2: Parse error"),
        ("def f():\n  for i in range(1 << 40):\n    pass\nf()", ":"),
        ("x = [0] * 2000000000", "took more than 512 MiB"),
        ('prefix_rule(pattern=["a"], match=["b"])', ":1: the match example 'b' does not match"),
    ],
)
def test_one_bad_file_and_nothing_runs(doorward: Any, text: str, told: str) -> None:
    doorward.rules(FORBID_TOUCH, "a.rules")
    bad = doorward.rules(text, "b.rules")
    seen = doorward("run", "--", "true")
    assert (seen.status, seen.text) == (2, "")
    assert f"{bad}" in seen.err and told in seen.err and seen.err.count("\n") == 1
    assert doorward.rollouts() == []
    for command in (("check", "--", "true"), ("policy", "check", "--", "true"), ("allowlist", "show")):
        assert doorward(*command).status == 2


def test_a_projects_rules_count_where_it_is_trusted(doorward: Any) -> None:
    doorward.rules(FORBID_TOUCH, folder=doorward.workspace / ".doorward" / "rules")
    assert doorward("run", "--", "touch", "a").status == 0
    assert doorward("trust").status == 0
    assert doorward("run", "--", "touch", "b").status == 126
    assert doorward("run", "-a", "never", "--", "sh", "-c", "echo > .doorward/rules/a.rules").status != 0
    assert doorward("run", "--", "touch", "b").status == 126


def test_codexs_rules_count_when_asked_for(doorward: Any) -> None:
    file = doorward.rules(FORBID_TOUCH, folder=doorward.home.parent / "user" / ".codex" / "rules")
    before = file.stat()
    assert doorward("run", "--", "touch", "a").status == 0
    assert doorward("run", "-c", "policy.import_codex=true", "--", "touch", "b").status == 126
    assert file.stat().st_mtime_ns == before.st_mtime_ns
    assert sorted(path.name for path in file.parent.iterdir()) == ["a.rules"]


def test_a_network_rule_reaches_the_proxy(doorward: Any) -> None:
    pin = ("-c", 'network.hosts={"a.test" = "127.0.0.1"}')
    fetch = ("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "http://a.test:80/")
    file = doorward.rules('network_rule(host="a.test", protocol="http", decision="deny", justification="x")\n')
    seen = doorward("run", "--json", "--allow", "*.test", *pin, "--", *fetch)
    (refusal,) = seen.document["refusals"]
    assert (refusal["reason"], refusal["host"]) == ("denied", "a.test")
    assert str(file) in refusal["message"]
    doorward.rules('network_rule(host="a.test", protocol="http", decision="allow")\n')
    seen = doorward("run", "--json", *pin, "--", *fetch)
    assert seen.document["refusals"] == []
    assert seen.document["output"] == "502", "allowed and dialled, where nobody listens on port 80"


def test_a_host_that_a_rule_wants_asked_about_is_not_simply_allowed(doorward: Any, origin: Any) -> None:
    """Nobody can be asked, so it is closed, though a wildcard allows it."""
    pin = ("-c", 'network.hosts={"a.test" = "127.0.0.1", "b.test" = "127.0.0.1"}')
    file = doorward.rules('network_rule(host="a.test", protocol="http", decision="prompt")\n')
    script = f"for n in a b; do curl -sS -o /dev/null -w '%{{http_code}} ' http://$n.test:{origin.port}/; done"
    seen = doorward("run", "--json", "--allow", f"*.test:{origin.port}", *pin, "--", "sh", "-c", script)
    assert seen.document["output"] == "403 200 "
    (refusal,) = seen.document["refusals"]
    assert refusal["host"] == "a.test" and f"{file}:1" in refusal["message"]


def test_a_deny_for_a_host_that_would_not_hold_is_an_error(doorward: Any) -> None:
    file = doorward.rules('\nnetwork_rule(host="a.test", protocol="http", decision="deny")\n')
    seen = doorward("run", "-s", "danger-full-access", "--", "true")
    assert seen.status == 2
    assert f"{file}:2" in seen.err and "--network proxied" in seen.err


def test_rules_are_not_written_from_inside(doorward: Any) -> None:
    doorward.rules(FORBID_TOUCH)
    assert doorward("run", "--", "true").status == 0
    (kept,) = (doorward.home / "cache").glob("policy-*.json")
    assert kept.stat().st_mode & 0o777 == 0o600
    for target in (doorward.home / "rules" / "a.rules", kept):
        for mode in ("workspace-write", "read-only"):
            before = target.read_bytes()
            doorward("run", "-a", "never", "-s", mode, "--", "sh", "-c", f"echo > '{target}'")
            assert target.read_bytes() == before


def test_huge_commands_are_judged_soon(doorward: Any) -> None:
    """A script of 64 KiB and more, nesting, bytes that are no UTF-8: an answer, never an allow by a rule."""
    doorward.rules(FORBID_TOUCH + 'prefix_rule(pattern=["true"])\n')
    for script in ("true;" * 20000, "(" * 1000 + "true" + ")" * 1000, "tr\udcffue; $(" * 500):
        seen = doorward("check", "-a", "never", "--", "sh", "-c", script)
        assert seen.status == 10, seen.text[:300] + seen.err
        assert "cannot be told" in seen.text
    seen = doorward("check", "-a", "never", "--", "true", *["x" * 1000] * 1500)
    assert seen.status == 0, seen.err


def test_the_verdict_of_a_run(doorward: Any, tmp_path: Any) -> None:
    file = tmp_path / "other.rules"
    file.write_text(FORBID_TOUCH)
    asked = ("policy", "check", "--rules", str(file), "--verdict")
    denied = doorward(*asked, "--json", "--", "sh", "-c", "nohup touch a")
    assert (denied.status, denied.document["verdict"], denied.document["gate"]) == (20, "deny", "policy")
    assert doorward(*asked, "--", "true").status == 0
    assert doorward(*asked, "--", "rm", "x").status == 10
    assert os.listdir(doorward.workspace) == []
