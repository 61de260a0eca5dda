"""The index finds what a plain scan over all rules finds."""

import sys
from collections.abc import Callable
from functools import lru_cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.allowlists.decision import Unsaid
from doorward.allowlists.host import Address, Host, Name, parse_host
from doorward.allowlists.index import PortTable, RuleIndex, rules_of
from doorward.allowlists.pattern import Kind, has_port
from doorward.allowlists.rule import MalformedRules, Origin, Rule, parse_rule
from doorward.allowlists.ruleset import RuleSet

FLAG = Origin("flag", "--allow")

_LABEL = st.sampled_from(["a", "b", "c"])
_NAME = st.lists(_LABEL, min_size=1, max_size=4).map(".".join)
_IPV4 = st.sampled_from(["10.0.0.1", "10.0.0.2", "10.1.0.1", "11.0.0.1"])
_BLOCK = st.sampled_from(["10.0.0.0/8", "10.0.0.0/30", "0.0.0.0/0", "10.0.0.1", "[fd00::/8]", "[::/0]", "[fd00::1]"])
_PORT = st.sampled_from(["", ":80", ":443", ":1-100", ":50-500", ":*"])
_ENTRY = st.builds(
    lambda stars, name, port: stars + name + port, st.sampled_from(["", "*.", "**."]), _NAME, _PORT
) | st.builds(lambda block, port: block + port, _BLOCK, _PORT)
_HOST = (_NAME | _IPV4 | st.sampled_from(["[fd00::1]", "[fd00::2]", "[2606::1]"])).map(parse_host)
_ASKED_PORT = st.sampled_from([1, 50, 80, 100, 101, 443, 500, 65535])


def _specificity(rule: Rule, host: Host, port: int) -> tuple[int, ...] | None:
    """Greater is more specific; None when the rule does not match."""
    pattern = rule.pattern
    if not has_port(rule.ports, port):
        return None
    if isinstance(host, Address):
        network = pattern.network
        if network is None or network.version != host.ip.version or host.ip not in network:
            return None
        return (network.prefixlen,)
    if pattern.network is not None:
        return None
    if pattern.kind is not Kind.BELOW and pattern.name == host.text:
        return (1, 0)
    if pattern.kind is not Kind.EXACT and host.text.endswith("." + pattern.name):
        return (0, len(pattern.name))
    return None


@given(st.lists(_ENTRY, max_size=12), _HOST, _ASKED_PORT)
def test_agrees_with_a_scan(entries: list[str], host: Host, port: int) -> None:
    rules = [parse_rule(entry, "deny", FLAG) for entry in entries]
    matching = [
        (key, -place) for place, rule in enumerate(rules) if (key := _specificity(rule, host, port)) is not None
    ]
    expected = rules[-max(matching)[1]] if matching else None
    index = RuleIndex(rules)
    assert index.find(host, port) == expected
    touched = [rule for node in index.nodes(host) for rule in rules_of(node)]
    assert {id(r) for r in touched} <= {id(r) for r in rules}
    assert (expected is not None) is any(has_port(rule.ports, port) for rule in touched)


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(0, 30), st.booleans()), min_size=1, max_size=10),
    st.integers(1, 100),
)
def test_port_tables_agree_with_a_scan(ranges: list[tuple[int, int, bool]], port: int) -> None:
    rules = [
        parse_rule({"host": f"a.test:{low}-{low + more}", "tls": "any" if lax else "name"}, "allow", FLAG)
        for low, more, lax in ranges
    ]
    matching = [rule for rule in rules if has_port(rule.ports, port)]
    lax_first = sorted(matching, key=lambda rule: rule.tls != "any")
    assert PortTable(rules).at(port) == (lax_first[0] if lax_first else None)


def test_many_ports_of_one_host_stay_a_bisection(rule: Callable[..., Rule]) -> None:
    table = PortTable([rule(f"a.test:{port}") for port in range(1, 20001, 2)])
    assert table.at(10001) is not None and table.at(10002) is None and table.at(65535) is None


def test_the_star_is_apart(rule: Callable[..., Rule]) -> None:
    index = RuleIndex([rule("*:8443")])
    assert index.find(Name("a.test"), 8443) is None
    assert index.star_at(8443) is not None and index.star_at(443) is None


@lru_cache
def _many(size: int) -> RuleSet:
    shapes = ("h{}.example.test", "*.z{}.example.test:8443", "**.y{}.test", "10.{}.0/24", "x{}.deep.example.test:1-9")
    keys = [f"{number >> 8}.{number & 255}" if number % 5 == 3 else number for number in range(size)]
    entries = [shapes[number % 5].format(key) for number, key in enumerate(keys)]
    return RuleSet.build(
        [parse_rule(entry, "allow", FLAG) for entry in entries], [parse_rule("*.bad.test", "deny", FLAG)]
    )


def _calls_of_a_decision(size: int, host: Host, port: int) -> int:
    """How many functions, C ones included, one decision among this many rules calls."""
    rules = _many(size)
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    rules.decide(host, port)  # the first IPv6 address of a process has its classes made
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        rules.decide(host, port)
    finally:
        sys.setprofile(before)
    return calls


_ASKED = [
    ("h5.example.test", 443),
    ("a.b.z6.example.test", 8443),
    ("nowhere.example.test", 443),
    ("x.bad.test", 443),
    ("10.0.3.1", 80),
    ("11.0.0.1", 80),
    ("h5.example.test", 22),
    ("www.h5.example.test", 443),
    ("a." * 126 + "b", 443),
    ("93.184.216.34", 443),
    ("169.254.169.254", 80),
    ("[fd00::1]", 443),
    ("[2606:2800:220:1::1]", 443),
    ("[64:ff9b:1::10.0.0.1]", 443),
    ("metadata.google.internal", 443),
]


@pytest.mark.parametrize(("host", "port"), _ASKED)
def test_a_decision_costs_the_same_among_10_rules_and_20000(host: str, port: int) -> None:
    """Counted in calls: a busy machine changes microseconds, not these."""
    target = parse_host(host)
    assert _calls_of_a_decision(10, target, port) == _calls_of_a_decision(20_000, target, port)


@pytest.mark.parametrize(("host", "port"), _ASKED)
def test_no_host_makes_a_decision_dear(host: str, port: int) -> None:
    """Under 5 µs each at some 0.1 µs a call; a sentence or a suffix list in between would be hundreds of calls."""
    assert _calls_of_a_decision(20, parse_host(host), port) < 60


def test_a_name_with_more_labels_than_any_rule_costs_no_more() -> None:
    """A client chooses the name."""
    short, long = parse_host("a.b.c.d.e.f"), parse_host("a." * 126 + "b")
    assert _calls_of_a_decision(20, long, 443) <= _calls_of_a_decision(20, short, 443)


_ENTRIES = st.lists(_ENTRY, max_size=6)


@given(_ENTRIES, _ENTRIES, _NAME, st.booleans())
def test_names_that_are_not_decided_alone_are_decided_as_their_siblings(
    allow: list[str], deny: list[str], parent: str, can_ask: bool
) -> None:
    try:
        rules = RuleSet.build(
            [parse_rule(entry, "allow", FLAG) for entry in allow],
            [parse_rule(entry, "deny", FLAG) for entry in deny],
            can_ask=can_ask,
        )
    except MalformedRules:
        return
    siblings = [Name(f"{label}.{parent}") for label in ("a", "b", "c", "www", "metadata")]
    alike = [name for name in siblings if not rules.decided_alone(name.text)]
    first = rules.decide_name(alike[0])
    for name in alike[1:]:
        other = rules.decide_name(name)
        assert other[:4] == first[:4]
        assert other.port == first.port
        if isinstance(first.said, Unsaid):
            assert first.said.about(first.host, name) == other.said


def test_a_name_that_is_spelled_out_or_special_is_decided_alone() -> None:
    rules = RuleSet.build(
        [parse_rule(entry, "allow", FLAG) for entry in ("**.a.test", "*.b.test", "udp:c.test:9")],
        [parse_rule("d.test", "deny", FLAG)],
        prompt=[parse_rule("e.test", "deny", FLAG)],
    )
    alone = ["a.test", "c.test", "d.test", "e.test", "metadata.google.internal"]
    assert [name for name in (*alone, "b.test", "n.a.test", "n.d.test") if rules.decided_alone(name)] == alone
