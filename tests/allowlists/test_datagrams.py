"""Rules for datagrams, `udp:HOST:PORT`, and for types of DNS records."""

import pytest

from doorward.allowlists.datagrams import rules_for_datagrams, said_of_datagrams
from doorward.allowlists.decision import Effect, Reason
from doorward.allowlists.host import Name, parse_host
from doorward.allowlists.layers import covers, outside
from doorward.allowlists.rule import MalformedRule, Origin, parse_rule, rule_entry
from doorward.allowlists.ruleset import RuleSet

ORIGIN = Origin("flag", "--allow")


def allow(*entries):
    return [parse_rule(each, "allow", ORIGIN) for each in entries]


def deny(*entries):
    return [parse_rule(each, "deny", ORIGIN) for each in entries]


def test_a_rule_for_datagrams_opens_no_connection_and_the_other_way_round():
    rules = RuleSet.build(allow("udp:ntp.test:123", "a.test:443"), [])
    assert rules.decide(Name("ntp.test"), 123).effect is Effect.DENY
    assert rules.udp.decide(Name("ntp.test"), 123).effect is Effect.ALLOW
    assert rules.udp.decide(Name("ntp.test"), 124).reason is Reason.PORT_NOT_ALLOWED
    assert rules.udp.decide(Name("a.test"), 443).effect is Effect.DENY
    assert rules.decide_name(Name("ntp.test")).effect is Effect.ALLOW
    assert RuleSet.build(allow("a.test"), []).udp is None


def test_a_deny_is_about_datagrams_too_and_one_for_them_about_nothing_else():
    rules = RuleSet.build(allow("udp:a.test:1-9", "a.test:1-9"), deny("a.test:1", "udp:a.test:2"))
    assert [rules.udp.decide(Name("a.test"), port).effect for port in (1, 2, 3)] == ["deny", "deny", "allow"]
    assert [rules.decide(Name("a.test"), port).effect for port in (1, 2, 3)] == ["deny", "allow", "allow"]


def test_everything_may_be_denied_for_datagrams_beside_other_allows():
    assert RuleSet.build(allow("a.test"), deny("udp:*")).decide(Name("a.test"), 443).effect is Effect.ALLOW


def test_addresses_and_pins_hold_for_datagrams():
    rules = RuleSet.build(allow("udp:192.0.2.0/24:123", "udp:p.test:5"), [], hosts={"p.test": "127.0.0.1"})
    assert rules.udp.decide(parse_host("192.0.2.7"), 123).effect is Effect.ALLOW
    assert rules.udp.pin(Name("p.test")) and rules.notices == ()
    decision = rules.udp.decide(Name("p.test"), 5)
    assert rules.udp.judge(decision, rules.udp.pin(Name("p.test"))).usable


@pytest.mark.parametrize("entry", ["udp:ntp.test", "udp:*", "udp:a.test:0", "udp:http://a.test:1"])
def test_what_is_none_says_so(entry):
    if entry == "udp:*":
        with pytest.raises(MalformedRule):
            parse_rule("udp:*:0", "allow", ORIGIN)
        return
    with pytest.raises(MalformedRule) as error:
        parse_rule(entry, "allow", ORIGIN)
    assert error.value.entry == entry
    if error.value.suggestion is not None:
        assert parse_rule(error.value.suggestion, "allow", ORIGIN)


def test_a_host_called_udp_is_a_host():
    rule = parse_rule("udp:443", "allow", ORIGIN)
    assert (rule.pattern.name, rule.udp) == ("udp", False)


@pytest.mark.parametrize("entry", [
    "udp:ntp.test:123", "udp:[2001:db8::1]:53", "udp:*.q.test:443",
    '{host = "udp:ntp.test:123", addresses = ["10.0.0.0/8"]}',
    '{host = "udp:a.test:443", tls = "any"}', '{host = "a.test", dns = ["MX", "TXT"]}',
])  # fmt: skip
def test_it_reads_back_what_it_writes(entry):
    rule = parse_rule(entry, "allow", ORIGIN)
    assert rule_entry(rule) == entry
    assert parse_rule(rule_entry(rule), "allow", ORIGIN)._replace(text="") == rule._replace(text="")


@pytest.mark.parametrize("more", ['methods = ["GET"]', 'dns = ["TXT"]'])
def test_nothing_of_connections_goes_with_datagrams(more):
    with pytest.raises(MalformedRule, match="datagrams"):
        parse_rule(f'{{host = "udp:a.test:1", {more}}}', "allow", ORIGIN)


def test_types_of_records_add_up():
    rules = RuleSet.build(
        allow('{host = "**.a.test", dns = ["txt"]}', '{host = "b.a.test:25", dns = ["MX", "SRV"]}', "c.test"), []
    )
    assert rules.record_types(Name("b.a.test")) == {"TXT", "MX", "SRV"}
    assert rules.record_types(Name("x.a.test")) == {"TXT"}
    assert rules.record_types(Name("c.test")) == frozenset()


@pytest.mark.parametrize("listed", ["[]", '"TXT"', "[1]", '["T XT"]', '["16"]'])
def test_what_is_no_type_says_so(listed):
    with pytest.raises(MalformedRule, match=r"dns|type"):
        parse_rule(f'{{host = "a.test", dns = {listed}}}', "allow", ORIGIN)


def test_a_managed_layer_covers_datagrams_and_types_by_its_own_alone():
    """A layer may be narrowed, never widened."""
    (tcp,), (udp,) = allow("a.test:1-9"), allow("udp:a.test:5")
    assert not covers(tcp, udp) and not covers(udp, tcp)
    assert covers(*deny("a.test"), udp) and not covers(*deny("udp:a.test"), tcp)
    assert outside([tcp], [udp]) and not outside(allow("udp:*.test:1-9", "udp:a.test:1-9"), [udp])
    (typed,) = allow('{host = "a.test:5", dns = ["TXT"]}')
    assert not covers(tcp, typed) and covers(typed, allow("a.test:5")[0])


def test_a_hint_about_datagrams_says_so_and_then_allows():
    rules = RuleSet.build(allow("a.test", "udp:b.test:5"), deny("c.test"))
    for host, port in ((Name("a.test"), 123), (parse_host("[2001:db8::1]"), 53), (Name("b.test"), 6)):
        decision = said_of_datagrams(rules_for_datagrams(rules).decide(host, port))
        assert decision.hint == f"--allow {decision.entry}" or decision.hint == f"--allow '{decision.entry}'"
        opened = RuleSet.build(allow(decision.entry), [])
        assert rules_for_datagrams(opened).decide(host, port).effect is Effect.ALLOW
    assert rules_for_datagrams(RuleSet.build(allow("a.test"), [])).decide(Name("a.test"), 443).effect is Effect.DENY
    denied = said_of_datagrams(rules_for_datagrams(rules).decide(Name("c.test"), 1))
    assert denied.reason is Reason.DENIED and "udp" not in denied.hint
