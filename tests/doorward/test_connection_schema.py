"""docs/schema/connection.schema.json says what the proxy's records are, in a log and in a rollout."""

from __future__ import annotations

import json
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from doorward.allowlists.decision import Decision, Effect, Reason, Source
from doorward.allowlists.host import Name, parse_host
from doorward.allowlists.rule import Origin, parse_rule
from doorward.allowlists.ruleset import RuleSet
from doorward.proxy.records import VERSION, Account, refused
from doorward.proxy.refusal import refusal_from
from doorward.sessions import items

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "docs/schema/connection.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
RULES = RuleSet.build([parse_rule("a.test", "allow", Origin("flag", "--allow"))], [])


def plain(item: Any) -> Any:
    return json.loads(json.dumps(item))


def test_an_allowed_connection() -> None:
    account = Account(RULES.decide(Name("a.test"), 443), "https_connect", "CONNECT", 10.0)
    account.address = ip_address("192.0.2.1")
    account.upstream = "http://proxy.test:3128"
    account.error = "idle for 3600 s"
    record = plain(account.closed(12.5))["payload"]
    VALIDATOR.validate(record)
    VALIDATOR.validate(plain(items.network(3, record))[1])
    VALIDATOR.validate({"timestamp": "2026-01-01T00:00:00.000Z", **record})
    assert set(SCHEMA["required"]) <= set(record) <= set(SCHEMA["properties"])
    assert not VALIDATOR.is_valid({"timestamp": "yesterday", **record})


@pytest.mark.parametrize("host", ["b.test", "192.0.2.7", "[2001:db8::1]"])
def test_a_refused_one(host: str) -> None:
    decision = RULES.decide(parse_host(host), 80)
    refusal = refusal_from(decision, protocol="http", method="GET", host_text=host, port=80)
    VALIDATOR.validate(plain(refused(decision, refusal, 1.0))[0]["payload"])


@pytest.mark.parametrize("reason", list(Reason))
@pytest.mark.parametrize("source", list(Source))
def test_every_reason_and_source_is_known(reason: Reason, source: Source) -> None:
    effect = Effect.ALLOW if reason is Reason.ALLOWED else Effect.DENY
    decision = Decision(effect, reason, source, None, Name("a.test"), 443, "", "")
    VALIDATOR.validate(plain(Account(decision, "socks5_tcp", "CONNECT", 0.0).closed(1.0))["payload"])


def test_the_version_is_the_records() -> None:
    assert SCHEMA["properties"]["version"]["const"] == VERSION
    assert {str(effect) for effect in Effect} == set(SCHEMA["properties"]["decision"]["enum"])
