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
