"""The decision by name: order, grammar in use, refusals and their hints."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.allowlists.decision import Effect
from doorward.allowlists.host import MalformedHost, parse_host, parse_rule_host
from doorward.allowlists.rule import MalformedRule, MalformedRules, Origin, parse_rule
from doorward.allowlists.ruleset import RuleSet

Make = Callable[..., Any]
FLAG = Origin("flag", "--allow")


def test_a_trailing_dot_is_the_same_host(asked: Make) -> None:
    """P-DM-01, and a rule written with a dot behaves as one without."""
    assert asked(["api.allowed.test"])("api.allowed.test.").effect is Effect.ALLOW
    assert asked(["api.allowed.test."])("api.allowed.test").effect is Effect.ALLOW
    assert asked(["*"], ["blocked.test"]).reason("blocked.test.") == "denied"
    with pytest.raises(MalformedHost):
        parse_host("blocked.test..")


@pytest.mark.parametrize(
    ("rule", "host"), [("API.Allowed.Test", "api.allowed.test"), ("api.allowed.test", "API.ALLOWED.TEST")]
)
def test_case_never_matters(asked: Make, rule: str, host: str) -> None:
    """P-DM-02."""
    assert asked([rule])(host).effect is Effect.ALLOW
    assert asked(["*"], [rule]).reason(host) == "denied"


@pytest.mark.parametrize(
    ("rule", "host", "open_"),
    [
        ("a.test", "a.test", True),
        ("a.test", "www.a.test", False),
        ("*.a.test", "a.test", False),
        ("*.a.test", "x.a.test", True),
        ("*.a.test", "x.y.a.test", True),
        ("**.a.test", "a.test", True),
        ("**.a.test", "x.a.test", True),
        ("**.a.test", "x.y.a.test", True),
    ],
)
def test_the_documented_table(asked: Make, rule: str, host: str, open_: bool) -> None:
    """P-DM-03."""
    assert (asked([rule])(host).effect is Effect.ALLOW) is open_
    assert (asked(["*"], [rule]).reason(host) == "denied") is open_


def test_www_is_hinted_at_the_zone(asked: Make) -> None:
    """P-DM-03: the denial for `www.` hints at `*.a.test`, as long as that is a valid rule."""
    refused = asked(["a.test"])("www.a.test")
    assert refused.reason == "not_allowed"
    assert refused.hint == "--allow '*.a.test'" and refused.entry == "*.a.test"
    assert asked(["other.test"])("www.a.test").entry == "www.a.test"
    assert asked(["co.uk"])("www.co.uk").entry == "www.co.uk"


@pytest.mark.parametrize("rule", ["trusted.test", "*.trusted.test", "**.trusted.test"])
@pytest.mark.parametrize("host", ["nottrusted.test", "trusted.test.evil.test", "xtrusted.test"])
def test_a_label_edge_is_an_edge(asked: Make, rule: str, host: str) -> None:
    """P-DM-04; `.trusted.test` is malformed (test_host.py)."""
    assert asked([rule]).reason(host) == "not_allowed"


def test_rules_carry_ports(asked: Make) -> None:
    """P-DM-05."""
    rules = asked(["allowed.test:8443", "[::1]:8443"])
    assert rules("allowed.test:8443").effect is Effect.ALLOW
    assert rules("[::1]:8443").effect is Effect.ALLOW
    for closed in ("allowed.test:443", "allowed.test:9999", "[::1]:443"):
        assert rules.reason(closed) == "port_not_allowed"
    assert asked(["allowed.test:*"])("allowed.test:9999").effect is Effect.ALLOW
    assert asked(["allowed.test:9000-9999"])("allowed.test:9500").effect is Effect.ALLOW


@pytest.mark.parametrize("port", [22, 25, 3306, 5432, 6379])
def test_without_a_port_an_allow_is_the_web(asked: Make, port: int) -> None:
    """P-PP-15: refused unless a rule names the port, and the refusal says so."""
    rules = asked(["allowed.test"])
    assert rules("allowed.test:80").effect is Effect.ALLOW and rules("allowed.test:443").effect is Effect.ALLOW
    refused = rules(f"allowed.test:{port}")
    assert refused.reason == "port_not_allowed" and refused.rule.text == "allowed.test"
    assert "ports 80 and 443" in refused.message and str(port) in refused.message
    assert refused.hint == f"--allow allowed.test:{port}"


def test_a_deny_holds_under_a_wide_allow(asked: Make) -> None:
    """P-DM-06. The star alone opens no loopback, so the test allows that too."""
    rules = asked(["*", "*:8443", "127.0.0.1:*"], ["127.0.0.1:8975", "*.evil.test"])
    assert rules.reason("127.0.0.1:8975") == "denied"
    assert rules("127.0.0.1:8976").effect is Effect.ALLOW
    assert rules.reason("api.evil.test:8443") == "denied"
    assert rules.reason("[::ffff:127.0.0.1]:8975") == "denied"
    assert rules("evil.test:8443").effect is Effect.ALLOW


def test_the_star(asked: Make) -> None:
    """P-DM-07: accepted with a loud notice; a deny still wins; an empty list blocks all."""
    star = asked(["*"])
    assert star("anything.test").effect is Effect.ALLOW and star("93.184.216.34").effect is Effect.ALLOW
    assert any("EVERY" in notice for notice in star.rules.notices)
    assert asked(["*"], ["blocked.test"]).reason("blocked.test") == "denied"
    assert asked([]).reason("anything.test") == "not_allowed"
    closed = asked([], ["*"])
    for host in ("anything.test", "gateway", "localhost", "127.0.0.1", "[::1]", "93.184.216.34:9"):
        assert closed.reason(host) == "denied"


def test_a_star_deny_beside_allows_is_an_error_but_one_port_of_it_is_not(asked: Make) -> None:
    with pytest.raises(MalformedRule, match="dead") as error:
        asked(["a.test"], ["*"])
    assert error.value.entry == "*" and error.value.origin.where == "--deny"
    with pytest.raises(MalformedRule):
        asked(["a.test"], ["*:*"])
    mail = asked(["a.test:*", "127.0.0.1:*"], ["*:25"])
    assert mail.reason("a.test:25") == "denied" and mail.reason("127.0.0.1:25") == "denied"
    assert mail("a.test:26").effect is Effect.ALLOW


@pytest.mark.parametrize(
    "host", ["10.0.0.1", "127.0.0.1", "[::1]", "[fd00::1]", "169.254.1.1", "100.64.0.1", "198.18.0.1"]
)
def test_the_star_opens_no_local_literal(asked: Make, host: str) -> None:
    """P-DM-07, P-IP-02, P-IP-06."""
    refused = asked(["*"])(host)
    assert refused.reason == "not_allowed_local" and refused.effect is Effect.DENY


def test_a_unicode_rule_meets_every_form_of_the_name(asked: Make) -> None:
    """P-DM-11: a look-alike is another name."""
    rules = asked(["*"], ["bücher.test"]).rules
    for form in ("xn--bcher-kva.test", "BÜCHER.test", "bücher.test.", "bu\u0308cher.test"):
        assert rules.decide(parse_rule_host(form), 443).reason == "denied"
    assert "xn--bcher-kva.test" in rules.decide(parse_rule_host("bücher.test"), 443).message
    with pytest.raises(MalformedHost):
        parse_host("bücher.test")
    cyrillic = parse_rule_host("рауре.test")  # Cyrillic letters that look Latin
    assert asked(["paype.test"]).rules.decide(cyrillic, 443).reason == "not_allowed"


def test_single_label_names_when_named(asked: Make) -> None:
    """P-DM-12: accepted when explicit, and the advice can be followed."""
    rules = asked(["gateway:8080", "localhost"])
    assert rules("gateway:8080").effect is Effect.ALLOW
    assert rules("localhost:80").effect is Effect.ALLOW
    for refused in (asked([])("gateway:8080"), asked(["*"])("gateway:8080"), asked(["localhost"])("localhost:8080")):
        assert refused.effect is Effect.DENY
        assert asked([refused.entry])(f"{refused.host.text}:8080").effect is Effect.ALLOW


@pytest.mark.parametrize("host", ["gateway", "localhost", "metadata"])
def test_the_star_leaves_out_names_without_a_dot(asked: Make, host: str) -> None:
    """P-DM-07, P-DM-12: no public name is a single label."""
    refused = asked(["*:*"])(host)
    assert refused.reason == "not_allowed" and refused.entry == host


def test_nothing_but_a_canonical_host_is_matched(asked: Make) -> None:
    """P-DM-13: the matcher takes no text at all."""
    rules = asked(["*"]).rules
    for text in ("blocked.test:443", "[::1]:80", "\tblocked.test"):
        with pytest.raises(TypeError):
            rules.decide(text, 443)
        with pytest.raises(MalformedHost):
            parse_host(text)
    assert asked(["*"], ["blocked.test"]).reason("BLOCKED.test.") == "denied"


def test_a_name_rule_opens_no_literal(asked: Make) -> None:
    """P-IP-03: whatever the allowed name resolves to."""
    rules = asked(["allowed.test:*"])
    assert rules.reason("127.0.0.1:8080") == "not_allowed_local"
    assert rules.reason("[::1]:8080") == "not_allowed_local"
    assert rules.reason("93.184.216.34:8080") == "not_allowed"


@pytest.mark.parametrize("host", ["127.0.0.1", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]"])
def test_a_named_loopback_literal_opens_in_every_spelling(asked: Make, host: str) -> None:
    """P-IP-02, both ways round."""
    assert asked(["127.0.0.1:8080"])(f"{host}:8080").effect is Effect.ALLOW
    assert asked(["[::ffff:127.0.0.1]:8080"])(f"{host}:8080").effect is Effect.ALLOW


def test_a_narrow_loopback_grant(asked: Make) -> None:
    """P-IP-04. Names are judged as names: `localhost` is in no rule here, so it is not even resolved."""
    rules = asked(["127.0.0.1:4318"])
    assert rules("127.0.0.1:4318").effect is Effect.ALLOW
    assert rules.reason("127.0.0.1:4319") == "port_not_allowed"
    assert rules.reason("127.0.0.2:4318") == "not_allowed_local"
    assert rules.reason("localhost:4318") == "not_allowed"
    assert rules("localhost:4318").hint == "--allow localhost:4318"
    named = asked(["localhost:4318"])
    assert named.usable("localhost:4318", "127.0.0.1", "::1") == ["127.0.0.1", "::1"]
    assert named.usable("localhost:4318", "127.0.0.2", "10.0.0.1") == []
    assert named.reason("127.0.0.1:4318") == "not_allowed_local"


def test_deny_beats_allow_whichever_is_narrower(asked: Make) -> None:
    """P-IP-05. DESIGN.md: deny wins, always; an allow that a deny covers is reported as dead."""
    narrow_deny = asked(["127.0.0.0/8"], ["127.0.0.5"])
    assert narrow_deny.reason("127.0.0.5") == "denied" and narrow_deny("127.0.0.6").effect is Effect.ALLOW
    wide_deny = asked(["127.0.0.5"], ["127.0.0.0/8"])
    assert wide_deny.reason("127.0.0.5") == "denied" and wide_deny.reason("127.0.0.6") == "denied"
    (notice,) = wide_deny.rules.notices
    assert "127.0.0.5" in notice and "never applies" in notice and "127.0.0.0/8" in notice
    assert narrow_deny.rules.notices == ()


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "127.127.127.127", "127.0.0.0", "[0:0::1]"])
def test_unusual_local_literals(asked: Make, host: str) -> None:
    """P-IP-06; `0` is malformed (test_host.py), `localhost.localdomain` is in test_ruleset_addresses.py."""
    assert asked(["*"]).reason(host) == "not_allowed_local"


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "169.254.170.2", "[fd00:ec2::254]", "100.100.100.100", "[fe80::a9fe:a9fe]"]
)
@pytest.mark.parametrize("allow", [["*"], [], ["0.0.0.0/0", "::/0"], ["169.254.0.0/16", "fd00::/8", "100.64.0.0/10"]])
def test_metadata_opens_only_for_the_exact_literal(asked: Make, host: str, allow: list[str]) -> None:
    """P-IP-07: refused without a look-up or a dial, and the reason mentions metadata."""
    for can_ask in (False, True):
        refused = asked(allow, can_ask=can_ask)(host)
        assert refused.effect is Effect.DENY and refused.reason == "not_allowed_local"
        assert "metadata" in refused.message
    assert asked([host])(host).effect is Effect.ALLOW


@pytest.mark.parametrize("host", ["metadata.google.internal", "metadata.goog", "instance-data.ec2.internal"])
def test_no_wildcard_covers_a_metadata_name(asked: Make, host: str) -> None:
    parent = host.partition(".")[2]
    rules = asked(["*", f"*.{parent}"] if "." in parent else ["*"])
    refused = rules(host)
    assert refused.reason == "not_allowed_local" and "metadata" in refused.message
    assert rules(f"other.{parent}").effect is Effect.ALLOW or "." not in parent
    assert asked([host])(host).effect is Effect.ALLOW
    assert asked([host]).reason(f"{host}:8080") == "port_not_allowed"
    assert asked([]).reason(host) == "not_allowed"


def test_ask_stands_between_allow_and_deny(asked: Make) -> None:
    rules = asked(["a.test"], ["*.evil.test"], can_ask=True)
    assert rules("a.test").effect is Effect.ALLOW
    assert rules("b.test").effect is Effect.ASK and rules.reason("b.test") == "not_allowed"
    assert rules("a.test:22").effect is Effect.ASK and rules.reason("a.test:22") == "port_not_allowed"
    assert rules("x.evil.test").effect is Effect.DENY


def test_a_yes_grants_exactly_what_was_asked(asked: Make) -> None:
    rules = asked(["a.test"], can_ask=True)
    granted = rules.rules.granted(rules("www.a.test:8443"), "terminal")
    assert granted.effect is Effect.ALLOW and granted.source == "decider"
    assert granted.rule.text == "www.a.test:8443" and granted.rule.ports == ((8443, 8443),)
    literal = rules.rules.granted(rules("10.0.0.5:5432"), "terminal")
    assert [str(ip) for ip in rules.rules.judge(literal, [literal.host.ip]).usable] == ["10.0.0.5"]
    name = rules.rules.granted(rules("db.corp:5432"), "terminal")
    assert rules.rules.judge(name, [literal.host.ip]).usable == ()


def test_the_most_specific_rule_answers(asked: Make) -> None:
    rules = asked(["*", "*.test", "*.a.test", "x.a.test"])
    assert rules("x.a.test").rule.text == "x.a.test"
    assert rules("y.a.test").rule.text == "*.a.test"
    assert rules("b.test").rule.text == "*.test"
    assert rules("b.other").rule.text == "*"


def test_a_wider_rule_may_lift_the_tls_check(asked: Make) -> None:
    rules = asked([{"host": "*.a.test", "tls": "any"}, "x.a.test"])
    assert rules("x.a.test").rule.tls == "any"
    assert asked([{"host": "*", "tls": "any"}, "x.a.test"])("x.a.test").rule.tls == "any"
    assert asked([{"host": "*.a.test:80", "tls": "any"}, "x.a.test"])("x.a.test").rule.tls == "name"


def test_every_allow_rule_that_a_deny_covers_is_named(asked: Make) -> None:
    rules = asked(["x.a.test", "*.b.a.test:443", "a.test", "10.0.0.1"], ["*.a.test", "*:22"])
    assert len([notice for notice in rules.rules.notices if "never applies" in notice]) == 2


def test_refusals_tell_where_the_rule_stands(asked: Make) -> None:
    refused = asked(["*"], ["*.evil.test"])("x.evil.test")
    assert refused.message == "x.evil.test:443 is denied by the rule *.evil.test (--deny)"
    assert refused.hint == "leave out --deny '*.evil.test'" and refused.entry == ""


_NAME = st.lists(st.sampled_from(["a", "b", "www", "test"]), min_size=1, max_size=3).map(".".join)
_LITERAL = st.sampled_from(
    ["10.0.0.1", "10.0.0.2", "93.184.216.34", "[::1]", "[2606:2800::1]", "169.254.169.254", "127.0.0.1"]
)
_ENTRY = st.builds(
    lambda stars, name, port: stars + name + port,
    st.sampled_from(["", "*.", "**."]),
    _NAME,
    st.sampled_from(["", ":443", ":22", ":*"]),
) | st.builds(
    lambda block, port: block + port,
    _LITERAL | st.sampled_from(["10.0.0.0/8", "0.0.0.0/0", "[::/0]", "169.254.0.0/16"]),
    st.sampled_from(["", ":22", ":*"]),
)
_ALLOW = _ENTRY | st.just("*")
_DENY = _ENTRY | st.just("*:22")
_HOST = _NAME | _LITERAL | st.sampled_from(["metadata.google.internal", "localhost"])
_PORT = st.sampled_from([22, 80, 443, 8443])


def _build(allow: list[str], deny: list[str], **rest: Any) -> RuleSet:
    return RuleSet.build(
        [parse_rule(entry, "allow", FLAG) for entry in allow],
        [parse_rule(entry, "deny", Origin("flag", "--deny")) for entry in deny],
        **rest,
    )


@given(st.lists(_ALLOW, max_size=4), st.lists(_DENY, max_size=3), _DENY, _HOST, _PORT)
def test_adding_a_deny_never_opens_anything(allow: list[str], deny: list[str], more: str, host: str, port: int) -> None:
    target = parse_host(host)
    before = _build(allow, deny).decide(target, port)
    after = _build(allow, [*deny, more]).decide(target, port)
    if after.effect is Effect.ALLOW:
        assert before.effect is Effect.ALLOW


@given(st.lists(_ALLOW, max_size=4), st.lists(_DENY, max_size=3), _ALLOW, _HOST, _PORT)
def test_adding_an_allow_never_shuts_anything(
    allow: list[str], deny: list[str], more: str, host: str, port: int
) -> None:
    target = parse_host(host)
    if _build(allow, deny).decide(target, port).effect is Effect.ALLOW:
        assert _build([*allow, more], deny).decide(target, port).effect is Effect.ALLOW


@given(st.lists(_ALLOW, max_size=4), st.lists(_DENY, max_size=3), _HOST, _PORT)
def test_the_order_of_rules_never_matters(allow: list[str], deny: list[str], host: str, port: int) -> None:
    target = parse_host(host)
    forward, backward = _build(allow, deny).decide(target, port), _build(allow[::-1], deny[::-1]).decide(target, port)
    assert (forward.effect, forward.reason) == (backward.effect, backward.reason)


@given(st.lists(_ALLOW, max_size=4), st.lists(_DENY, max_size=3), _HOST, _PORT, st.booleans())
def test_the_advice_parses_and_then_allows(
    allow: list[str], deny: list[str], host: str, port: int, can_ask: bool
) -> None:
    """P-DM-12: the advice in a denial round-trips through the validator and does what it says."""
    target = parse_host(host)
    refused = _build(allow, deny, can_ask=can_ask).decide(target, port)
    assert bool(refused.entry) is (refused.effect is not Effect.ALLOW and refused.reason != "denied")
    if refused.entry:
        assert refused.hint.startswith("--allow ")
        assert _build([*allow, refused.entry], deny).decide(target, port).effect is Effect.ALLOW


def test_errors_of_pins_are_listed_together() -> None:
    with pytest.raises(MalformedRules) as error:
        RuleSet.build(
            [], [], hosts={"db.test": "10.0.0", "10.0.0.1": "10.0.0.2", "a b": "::1"}, pins={"x.test": ["nope"]}
        )
    assert len(error.value.problems) == 4
    assert 'network.hosts."db.test"' in str(error.value)
