"""What other rules would have said of what happened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from doorward.errors import UsageError
from doorward.policy_file import OtherPolicy, read_policy
from doorward.rejudge import Change, rejudged
from doorward.sessions import items
from doorward.sessions.home import Home
from doorward.sessions.line import Line

RULES = {"allow": [{"rule": "a.test", "source": "flag", "where": "--allow"}], "deny": [], "hosts": {}, "limited": False}


def recorded(
    *argv: str,
    mode: str = "workspace-write",
    network: str = "proxied",
    approval: str = "on-request",
    verdict: str = "allow",
    reasons: tuple[dict[str, str], ...] = (),
    connections: tuple[tuple[str, int, str, str | None], ...] = (),
) -> list[Line]:
    start = items.turn_start(
        "s", 1, argv=argv, cwd="/work", approval_policy=approval, sandbox_policy={},
        settings={"network": network, "sandbox": {"mode": mode, "workspace": "/work"}, "rules": RULES, "features": []},
    )  # fmt: skip
    said = items.verdict(1, {"verdict": verdict, "gate": "x", "reasons": list(reasons)}, argv=argv, cwd="/work")
    network_items = [
        items.network(1, {"host": host, "port": port, "decision": decision, "address": address})
        for host, port, decision, address in connections
    ]
    return [Line(*item) for item in (*start, said, *network_items)]


def changes(lines: list[Line], policy: dict[str, Any], tmp_path: Path) -> tuple[Change, ...]:
    return rejudged(lines, OtherPolicy(policy, None), Home(str(tmp_path))).changes


def test_the_same_rules_change_nothing(tmp_path: Path) -> None:
    lines = recorded("ls", connections=(("a.test", 443, "allow", "93.184.216.34"), ("b.test", 80, "deny", None)))
    result = rejudged(lines, OtherPolicy({}, None), Home(str(tmp_path)))
    assert (result.actions, result.connections, result.changes) == (1, 2, ())


def test_a_host_that_would_newly_be_refused_and_one_newly_allowed(tmp_path: Path) -> None:
    lines = recorded("ls", connections=(("a.test", 443, "allow", "93.184.216.34"), ("b.test", 80, "deny", None)))
    found = changes(lines, {"network.allow": ["b.test"]}, tmp_path)
    assert [(each.what, each.was, each.would_be, each.newly_refused) for each in found] == [
        ("a.test:443", "allow", "deny", True),
        ("b.test:80", "deny", "allow", False),
    ]


def test_the_address_that_was_dialled_is_judged_too(tmp_path: Path) -> None:
    lines = recorded("ls", connections=(("a.test", 443, "allow", "93.184.216.34"),))
    (found,) = changes(lines, {"network.deny": ["93.184.216.0/24"]}, tmp_path)
    assert found.newly_refused


def test_an_action_under_a_stricter_policy(tmp_path: Path) -> None:
    lines = recorded("make", "all")
    (found,) = changes(lines, {"approval_policy": "untrusted"}, tmp_path)
    assert (found.kind, found.what, found.was, found.would_be) == ("action", "make all", "allow", "ask")
    assert found.newly_refused
    (written,) = changes(recorded("tee", "out"), {"sandbox_mode": "read-only"}, tmp_path)
    assert written.would_be == "deny"


def test_an_action_that_was_refused_and_would_not_be(tmp_path: Path) -> None:
    lines = recorded("tee", "out", mode="read-only", network="off", verdict="deny")
    (found,) = changes(lines, {"sandbox_mode": "workspace-write"}, tmp_path)
    assert (found.was, found.would_be, found.newly_refused) == ("deny", "allow", False)


def test_what_a_person_answered_is_not_what_is_compared(tmp_path: Path) -> None:
    """The gates asked then and ask now: nothing changed, whatever the answer was."""
    asked = tuple({"gate": "approval", "effect": effect, "sentence": ""} for effect in ("ask", "allow"))
    lines = recorded("make", approval="untrusted", verdict="allow", reasons=asked)
    assert changes(lines, {}, tmp_path) == ()


def test_rules_about_hosts_say_nothing_of_a_turn_without_a_network(tmp_path: Path) -> None:
    lines = recorded("ls", mode="read-only", network="off")
    assert changes(lines, {"network.allow": ["b.test"]}, tmp_path) == ()


def test_turns_of_other_writers_are_passed_over(tmp_path: Path) -> None:
    lines = [Line("turn_context", {"cwd": "/"}), Line("verdict", {"action": {"argv": ["ls"]}})]
    assert rejudged(lines, OtherPolicy({}, None), Home(str(tmp_path))).actions == 0


def test_a_policy_that_makes_no_sense_is_an_error(tmp_path: Path) -> None:
    for policy in ({"nonsense": 1}, {"network.allow": ["*.com"]}, {"sandbox_mode": "loose"}):
        with pytest.raises(UsageError):
            changes(recorded("ls"), policy, tmp_path)


def test_a_policy_file_and_a_single_key(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(
        'approval_policy = "never"\n[network]\nallow = ["a.test"]\n[network.hosts]\n"db.test" = "127.0.0.1"\n'
    )
    home = Home(str(tmp_path / "home"))
    assert read_policy(str(path), home).keys == {
        "approval_policy": "never",
        "network.allow": ["a.test"],
        "network.hosts": {"db.test": "127.0.0.1"},
    }
    assert read_policy('network.deny=["b.test"]', home) == ({"network.deny": ["b.test"]}, None)
    profile = tmp_path / "home" / "profiles" / "strict.toml"
    profile.parent.mkdir(parents=True)
    profile.write_text('sandbox_mode = "read-only"\n')
    assert read_policy("strict", home).keys == {"sandbox_mode": "read-only"}
    path.write_text("not toml")
    for bad in (str(path), str(tmp_path / "missing.toml"), "key=nonsense", str(tmp_path)):
        with pytest.raises(UsageError):
            read_policy(bad, home)
