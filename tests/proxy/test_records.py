"""Records: their keys, and that each subject has a name of its own."""

from __future__ import annotations

import json
from ipaddress import ip_address

from doorward.allowlists.decision import Reason, Source
from doorward.allowlists.host import Address, Name
from doorward.allowlists.rule import Origin, parse_rule
from doorward.allowlists.ruleset import RuleSet
from doorward.proxy import records
from doorward.proxy.records import Account
from doorward.proxy.refusal import refusal_from

RULES = RuleSet.build([parse_rule("a.test", "allow", Origin("flag", "--allow"))], [])
ALLOWED = RULES.decide(Name("a.test"), 443)


def test_an_account_is_opened_and_closed_under_one_name() -> None:
    account = Account(ALLOWED, "https_connect", "CONNECT", 100.0)
    account.address = ip_address("93.184.216.34")
    account.up, account.down, account.requests = 10, 20, 1
    opened, closed = account.opened(), account.closed(101.5)
    subject = {
        "version": 1,
        "connection": account.connection,
        "decision": "allow",
        "reason": "allowed",
        "source": "baseline_policy",
        "rule": "a.test",
        "host": "a.test",
        "port": 443,
        "protocol": "https_connect",
        "method": "CONNECT",
    }
    assert opened == {"type": "event", "payload": {"type": "connection_opened", **subject}}
    assert closed == {
        "type": "network",
        "payload": {
            **subject,
            "address": "93.184.216.34",
            "bytes_up": 10,
            "bytes_down": 20,
            "duration_s": 1.5,
            "requests": 1,
            "closed_by": "client",
        },
    }
    assert json.loads(json.dumps(closed)) == closed


def test_what_is_not_always_there() -> None:
    account = Account(ALLOWED, "http", "GET", 0.0)
    account.upstream, account.error = "http://proxy.test:3128", "upstream-failed: gone"
    payload = account.closed(0.0)["payload"]
    assert payload["address"] is None
    assert payload["upstream_proxy"] == "http://proxy.test:3128"
    assert payload["error"] == "upstream-failed: gone"


def test_an_address_asked_for_is_written_as_asked() -> None:
    rules = RuleSet.build([parse_rule("[2001:db8::1]:443", "allow", Origin("flag", "--allow"))], [])
    account = Account(rules.decide(Address(ip_address("2001:db8::1")), 443), "socks5_tcp", "CONNECT", 0.0)
    account.address = ip_address("2001:db8::1")
    payload = account.closed(0.0)["payload"]
    assert payload["host"] == payload["address"] == "2001:db8::1"


def test_a_refusal_is_two_items_under_one_name() -> None:
    decision = RULES.decide(Name("b.test"), 443)
    refusal = refusal_from(decision, protocol="http", method="GET", host_text="b.test", port=443)
    network, refused = records.refused(decision, refusal, 5.0)
    assert network["payload"]["decision"] == "deny"
    assert network["payload"]["requests"] == 1
    assert network["payload"]["closed_by"] == "proxy"
    assert list(refused["payload"]) == [*refusal._fields, "connection"]
    assert refused["payload"]["connection"] == network["payload"]["connection"]


def test_a_tunnel_that_is_refused_later_keeps_its_name() -> None:
    account = Account(ALLOWED, "https_connect", "CONNECT", 0.0)
    decision = ALLOWED.refused(Reason.NAME_MISMATCH, Source.MODE_GUARD, "names differ")
    refusal = refusal_from(decision, protocol="https_connect", method="CONNECT", host_text="a.test", port=443)
    network, refused = account.refused(decision, refusal, 1.0)
    assert network["payload"]["reason"] == refused["payload"]["reason"] == "name_mismatch"
    assert network["payload"]["connection"] == refused["payload"]["connection"] == account.connection


def test_names_are_never_used_twice() -> None:
    assert len({records.new_connection_id() for _ in range(1000)}) == 1000


def test_a_fault_says_where_and_nothing_a_client_sent() -> None:
    try:
        raise ValueError("GET /secret")
    except ValueError as error:
        item = records.fault(error)
    assert item["payload"]["message"].startswith("ValueError at test_records.py:")
    assert "secret" not in json.dumps(item)
