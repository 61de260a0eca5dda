"""After the look-up: which addresses of a name may be dialled."""

from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.allowlists.addresses import AddressClass, is_local
from doorward.allowlists.decision import Effect
from doorward.allowlists.host import parse_host
from doorward.allowlists.rule import Origin, parse_rule
from doorward.allowlists.ruleset import RuleSet

Make = Callable[..., Any]
G = "93.184.216.34"


def test_mixed_answers_lose_their_local_addresses(asked: Make) -> None:
    """P-DN-03: dropped before dialling; if none is left, a refusal that names the address."""
    rules = asked(["allowed.test"])
    assert rules.usable("allowed.test", G, "10.0.0.5") == [G]
    assert rules.usable("allowed.test", "::ffff:10.0.0.5", G) == [G]
    assert rules.resolved("allowed.test", G, "10.0.0.5").decision.effect is Effect.ALLOW
    verdict = rules.resolved("allowed.test", "10.0.0.5")
    assert verdict.usable == () and verdict.dropped == ((ip_address("10.0.0.5"), AddressClass.PRIVATE),)
    assert verdict.decision.effect is Effect.DENY and verdict.decision.reason == "not_allowed_local"
    assert "10.0.0.5" in verdict.decision.message and "private" in verdict.decision.message


def test_the_order_of_the_resolver_is_kept_and_doubles_are_one(asked: Make) -> None:
    """P-DN-02: what is usable is what was judged, and nothing else can be dialled."""
    assert asked(["a.test"]).usable("a.test", "2606:2800::1", G, f"::ffff:{G}", "2606:2800::1") == ["2606:2800::1", G]


@pytest.mark.parametrize("allow", ["a.example.test", "*.example.test", "**.example.test", "*"])
@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "::1",
        "0.0.0.0",
        "10.0.0.5",
        "100.64.0.1",
        "169.254.169.254",
        "168.63.129.16",
        "fd00::1",
        "fe80::1",
        "198.18.0.1",
        "::ffff:127.0.0.1",
        "64:ff9b::10.0.0.5",
        "2002:7f00:1::",
        "2001:0:5db8:d822::f5ff:fffa",
        "2606:2800:220:1:0:5efe:10.0.0.5",
    ],
)
def test_a_name_never_opens_local_addresses(asked: Make, allow: str, address: str) -> None:
    """P-DM-07, P-IP-06 (`localhost.localdomain`), P-IP-07: not by a wildcard, not by an exact name, not by the star."""
    assert asked([allow]).resolved("a.example.test", address).decision.reason == "not_allowed_local"


def test_localhost_localdomain_under_the_star(asked: Make) -> None:
    """P-IP-06."""
    assert asked(["*"]).resolved("localhost.localdomain", "127.0.0.1").decision.reason == "not_allowed_local"


def test_an_address_rule_does_not_open_for_a_name(asked: Make) -> None:
    """P-IP-04: the rule that allows the name must open the address."""
    assert asked(["10.0.0.0/8:*", "db.corp:5432"]).usable("db.corp:5432", "10.0.0.7") == []


def test_addresses_of_the_rule_open(asked: Make) -> None:
    rules = asked([{"host": "db.corp:5432", "addresses": ["10.0.0.0/8", "169.254.0.0/16"]}])
    assert rules.usable("db.corp:5432", "10.0.0.7", "11.0.0.7", "192.168.0.1") == ["10.0.0.7", "11.0.0.7"]
    assert rules.usable("db.corp:5432", "169.254.169.254", "169.254.1.1") == []
    exact = asked([{"host": "metadata.corp", "addresses": ["169.254.169.254"]}])
    assert exact.usable("metadata.corp", "169.254.169.254") == ["169.254.169.254"]


def test_what_rules_open_for_one_name_adds_up(asked: Make) -> None:
    rules = asked([{"host": "*.corp:*", "addresses": ["10.0.0.0/8"]}, "db.corp:5432"])
    assert rules("db.corp:5432").rule.text == "db.corp:5432"
    assert rules.usable("db.corp:5432", "10.0.0.7") == ["10.0.0.7"]
    assert rules.usable("db.corp:22", "10.0.0.7") == ["10.0.0.7"]
    other_port = asked([{"host": "*.corp:22", "addresses": ["10.0.0.0/8"]}, "db.corp:5432"])
    assert other_port.usable("db.corp:5432", "10.0.0.7") == []


def test_an_address_deny_beats_rules_and_pins(asked: Make) -> None:
    """P-IP-05."""
    rules = asked(
        [{"host": "db.corp:5432", "addresses": ["10.0.0.0/8"]}],
        ["10.0.0.5", "10.0.9.0/24:5432"],
        hosts={"db.corp": "10.0.0.5"},
    )
    verdict = rules.resolved("db.corp:5432", "10.0.0.5", "10.0.9.1")
    assert verdict.usable == () and verdict.decision.reason == "denied"
    assert "10.0.0.5" in verdict.decision.message and verdict.decision.rule.text == "10.0.0.5"
    assert [rule.text for _, rule in verdict.denied_by] == ["10.0.0.5", "10.0.9.0/24:5432"]
    assert rules.usable("db.corp:5432", "10.0.0.5", "10.0.0.6") == ["10.0.0.6"]


def test_an_address_deny_holds_for_what_an_address_carries(asked: Make) -> None:
    rules = asked(["a.test"], [G])
    for address in (G, f"::ffff:{G}", f"64:ff9b::{G}"):
        assert rules.resolved("a.test", address).decision.reason == "denied"
    assert rules.usable("a.test", "64:ff9b::93.184.216.35") == ["64:ff9b::5db8:d823"]


def test_a_deny_that_is_only_part_of_it_leaves_the_local_reason(asked: Make) -> None:
    verdict = asked(["a.test"], [G]).resolved("a.test", G, "10.0.0.5")
    assert verdict.decision.reason == "not_allowed_local" and "10.0.0.5" in verdict.decision.message


def test_a_pin_is_the_resolution_and_lifts_the_guard_for_that_name_alone(asked: Make) -> None:
    rules = asked(["db.test", "*.test"], hosts={"DB.test": "127.0.0.1"})
    assert rules.rules.pin(parse_host("db.test")) == (ip_address("127.0.0.1"),)
    assert rules.usable("db.test", "127.0.0.1") == ["127.0.0.1"]
    assert rules.usable("db.test", "127.0.0.2") == []
    assert rules.rules.pin(parse_host("other.test")) == ()
    assert rules.usable("other.test", "127.0.0.1") == []


def test_a_pin_never_allows_the_name(asked: Make) -> None:
    rules = asked(["other.test"], hosts={"db.test": "127.0.0.1"})
    assert rules.reason("db.test") == "not_allowed"
    assert rules.reason("127.0.0.1") == "not_allowed_local"
    assert any("db.test" in notice and "no rule" in notice for notice in rules.rules.notices)
    assert asked(["*"], ["db.test"], hosts={"db.test": "127.0.0.1"}).reason("db.test") == "denied"


def test_a_pin_of_configuration_may_name_even_metadata(asked: Make) -> None:
    rules = asked(["metadata.test"], hosts={"metadata.test": "169.254.169.254"})
    assert rules.usable("metadata.test", "169.254.169.254") == ["169.254.169.254"]


def test_a_preset_pins_private_addresses_and_never_this_machines_ends(asked: Make) -> None:
    rules = asked(
        ["mirror.corp", "bad.corp"], pins={"mirror.corp": ["10.0.0.7", G], "bad.corp": ["127.0.0.1", "169.254.169.254"]}
    )
    assert rules.usable("mirror.corp", "10.0.0.7", G) == ["10.0.0.7", G]
    assert rules.rules.pin(parse_host("bad.corp")) == ()
    assert rules.usable("bad.corp", "127.0.0.1", "169.254.169.254") == []
    assert sum("bad.corp" in notice for notice in rules.rules.notices) == 2


def test_network_hosts_goes_before_a_preset(asked: Make) -> None:
    rules = asked(["m.corp"], hosts={"m.corp": "10.0.0.1"}, pins={"m.corp": ["10.0.0.2"]})
    assert rules.rules.pin(parse_host("m.corp")) == (ip_address("10.0.0.1"),)


def test_localhost_needs_no_look_up(asked: Make) -> None:
    rules = asked(["localhost:8080"]).rules
    assert [str(ip) for ip in rules.pin(parse_host("localhost"))] == ["127.0.0.1", "::1"]
    assert rules.pin(parse_host("[::1]")) == (ip_address("::1"),)


def test_the_machines_own_addresses_are_local(asked: Make) -> None:
    rules = asked(["a.test", "*"], own=[G, "2606:2800::1"])
    for address in (G, "2606:2800::1", f"64:ff9b::{G}"):
        verdict = rules.resolved("a.test", address)
        assert verdict.decision.reason == "not_allowed_local" and "this machine" in verdict.decision.message
    assert rules.reason(G) == "not_allowed_local"
    assert asked([G], own=[G])(G).effect is Effect.ALLOW
    assert asked([{"host": "a.test", "addresses": [G]}], own=[G]).usable("a.test", G) == [G]


def test_a_literal_is_judged_like_its_decision(asked: Make) -> None:
    for allow, host, open_ in (
        (["127.0.0.1"], "127.0.0.1", True),
        (["127.0.0.0/8"], "127.0.0.9", True),
        (["*"], G, True),
        (["*"], "10.0.0.1", False),
        (["169.254.0.0/16"], "169.254.1.1", False),
    ):
        rules = asked(allow)
        target = parse_host(host)
        assert (rules(host).effect is Effect.ALLOW) is open_
        assert bool(rules.rules.judge(rules(host), rules.rules.pin(target)).usable) is open_


def test_nothing_is_usable_without_an_allow(asked: Make) -> None:
    for rules in (asked([]), asked([], can_ask=True), asked([], ["*"])):
        verdict = rules.resolved("a.test", G)
        assert verdict.usable == () and verdict.decision == rules("a.test")


def test_a_name_without_addresses_is_no_matter_of_policy(asked: Make) -> None:
    with pytest.raises(ValueError, match="no address"):
        asked(["a.test"]).resolved("a.test")


def test_the_advice_for_a_local_name_opens_exactly_its_addresses(asked: Make) -> None:
    """P-DM-12."""
    refused = asked(["db.corp:5432"]).resolved("db.corp:5432", "10.0.0.7", "fd00::7").decision
    assert refused.entry == '{host = "db.corp:5432", addresses = ["10.0.0.7", "fd00::7"]}'
    followed = asked(["db.corp:5432", refused.entry])
    assert followed.usable("db.corp:5432", "10.0.0.7", "fd00::7", "10.0.0.8") == ["10.0.0.7", "fd00::7"]


def test_no_advice_helps_a_name_to_metadata(asked: Make) -> None:
    """P-IP-07."""
    refused = asked(["a.test"]).resolved("a.test", "169.254.169.254").decision
    assert refused.hint == "" and "metadata" in refused.message


_ADDRESS = st.ip_addresses() | st.sampled_from(
    [ip_address(text) for text in (G, "10.0.0.1", "127.0.0.1", "::1", "169.254.169.254", "::ffff:10.0.0.1", "fd00::1")]
)
_ALLOW = st.sampled_from(["a.test", "*.test", "**.a.test", "*", "a.test:*", "10.0.0.0/8", "127.0.0.1", "0.0.0.0/0"])
_DENY = st.sampled_from(["10.0.0.0/8", "93.184.0.0/16", "127.0.0.1", "[::/0]", "a.test:22", "*:80"])


@given(st.lists(_ALLOW, max_size=3), st.lists(_DENY, max_size=3), st.lists(_ADDRESS, min_size=1, max_size=5))
def test_only_public_addresses_come_through_for_a_name(allow: list[str], deny: list[str], addresses: list[Any]) -> None:
    rules = RuleSet.build(
        [parse_rule(entry, "allow", Origin("flag", "--allow")) for entry in allow],
        [parse_rule(entry, "deny", Origin("flag", "--deny")) for entry in deny],
    )
    verdict = rules.judge(rules.decide(parse_host("a.test"), 443), addresses)
    assert not any(is_local(ip) for ip in verdict.usable)
    assert bool(verdict.usable) is (verdict.decision.effect is Effect.ALLOW)
    assert {ip for ip, _ in verdict.denied_by} <= {ip for ip, _ in verdict.dropped}


@given(st.lists(_DENY, max_size=3), _DENY, st.lists(_ADDRESS, min_size=1, max_size=5))
def test_adding_a_deny_never_opens_an_address(deny: list[str], more: str, addresses: list[Any]) -> None:
    def usable(denies: list[str]) -> set[Any]:
        rules = RuleSet.build(
            [parse_rule({"host": "a.test:*", "addresses": ["0.0.0.0/0"]}, "allow", Origin("flag", "--allow"))],
            [parse_rule(entry, "deny", Origin("flag", "--deny")) for entry in denies],
        )
        return set(rules.judge(rules.decide(parse_host("a.test"), 443), addresses).usable)

    assert usable([*deny, more]) <= usable(deny)
