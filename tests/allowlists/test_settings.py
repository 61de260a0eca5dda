"""The JSON form of a rule set."""

import json
from typing import Any

import pytest

from doorward.allowlists.host import parse_host
from doorward.allowlists.rule import MalformedRules
from doorward.allowlists.settings import MalformedSettings, rule_set_from_settings


def _row(rule: Any, where: str = "--allow") -> dict[str, Any]:
    return {"rule": rule, "source": "flag", "where": where}


def test_everything_arrives() -> None:
    settings = {
        "allow": [_row("a.test"), _row({"host": "db.corp:5432", "addresses": ["10.0.0.0/8"]}, "config.toml:4")],
        "deny": [_row("*.evil.test", "--deny")],
        "hosts": {"db.corp": "10.0.0.7"},
        "pins": {"mirror.corp": ["10.0.0.8"]},
        "can_ask": True,
        "limits": {"not": "ours"},
    }
    rules = rule_set_from_settings(json.loads(json.dumps(settings)))
    assert [rule.origin.where for rule in rules.allow] == ["--allow", "config.toml:4"]
    assert rules.decide(parse_host("x.evil.test"), 443).reason == "denied"
    assert rules.decide(parse_host("b.test"), 443).effect == "ask"
    assert [str(ip) for ip in rules.pin(parse_host("db.corp"))] == ["10.0.0.7"]
    assert [str(ip) for ip in rules.pin(parse_host("mirror.corp"))] == ["10.0.0.8"]


def test_nothing_is_a_closed_network() -> None:
    assert rule_set_from_settings({}).decide(parse_host("a.test"), 443).reason == "not_allowed"


def test_every_fault_of_every_list_is_reported_at_once() -> None:
    """P-DM-08."""
    with pytest.raises(MalformedRules) as error:
        rule_set_from_settings(
            {
                "allow": [_row("a.test"), _row("https://b.test", "config.toml:5")],
                "deny": [_row("*", "--deny"), _row("api.*", "--deny")],
                "hosts": {"x.test": "nowhere"},
            }
        )
    text = str(error.value)
    assert len(error.value.problems) == 4
    for part in ("config.toml:5, entry 2", "'b.test'", "--deny, entry 2", "dead", "nowhere"):
        assert part in text


@pytest.mark.parametrize(
    "settings",
    [
        {"allow": "a.test"},
        {"allow": ["a.test"]},
        {"allow": [{"rule": "a.test", "source": "flag"}]},
        {"allow": [{"rule": 5, "source": "flag", "where": "x"}]},
        {"deny": [{"rule": "a.test", "source": None, "where": "x"}]},
        {"hosts": ["a"]},
        {"hosts": {"a.test": 5}},
        {"pins": {"a.test": "10.0.0.1"}},
        {"pins": {"a.test": [1]}},
        {"can_ask": "yes"},
    ],
)
def test_a_wrong_form_is_told_apart_from_a_wrong_rule(settings: dict[str, Any]) -> None:
    with pytest.raises(MalformedSettings):
        rule_set_from_settings(settings)


def test_a_host_that_is_to_be_asked_about_is_asked_about_though_it_is_allowed() -> None:
    settings: dict[str, Any] = {
        "allow": [_row("*.a.test"), _row("192.0.2.0/24")],
        "prompt": [_row("db.a.test", "team.rules:3"), _row("192.0.2.7", "team.rules:4")],
    }
    for can_ask, effect in ((True, "ask"), (False, "deny")):
        rules = rule_set_from_settings(settings | {"can_ask": can_ask})
        for host in ("db.a.test", "192.0.2.7"):
            for port in (80, 443, 5432):
                decision = rules.decide(parse_host(host), port)
                assert (decision.effect, decision.reason) == (effect, "not_allowed")
        assert "team.rules:3" in rules.decide(parse_host("db.a.test"), 443).message
        assert rules.decide(parse_host("www.a.test"), 443).effect == "allow"
        assert rules.decide(parse_host("192.0.2.8"), 443).effect == "allow"
    closed = rule_set_from_settings(settings | {"can_ask": True, "deny": [_row("db.a.test")]})
    assert closed.decide(parse_host("db.a.test"), 443).effect == "deny"
