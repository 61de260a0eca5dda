"""The smallest rules for what was seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.allowlists.host import parse_host
from doorward.allowlists.learning import Seen, learn
from doorward.allowlists.rule import Origin, parse_rule
from doorward.allowlists.ruleset import RuleSet


def entries(*seen: tuple[str, int], wildcards: int = 0) -> list[object]:
    return [each.entry for each in learn([Seen(host, port) for host, port in seen], wildcards=wildcards)]


def test_one_rule_a_host_and_port() -> None:
    assert entries(("a.test", 443), ("a.test", 443), ("b.test", 22)) == ["a.test:443", "b.test:22"]


def test_the_two_web_ports_together_need_no_port() -> None:
    assert entries(("a.test", 80), ("a.test", 443)) == ["a.test"]
    three = entries(("a.test", 80), ("a.test", 443), ("a.test", 8080))
    assert set(map(str, three)) == {"a.test:80", "a.test:443", "a.test:8080"}


def test_addresses_stay_addresses() -> None:
    assert entries(("10.0.0.7", 5432), ("fd00::7", 443)) == ["10.0.0.7:5432", "[fd00::7]:443"]


NAMES = ("x.cdn.test", "y.cdn.test", "z.cdn.test")


def test_siblings_are_generalised_only_when_asked_for() -> None:
    places = [(name, 443) for name in NAMES]
    assert entries(*places) == [f"{name}:443" for name in NAMES]
    assert entries(*places, wildcards=3) == ["*.cdn.test:443"]
    assert entries(*places, wildcards=4) == [f"{name}:443" for name in NAMES]


@pytest.mark.parametrize("zone", ["github.io", "co.uk", "s3.amazonaws.com", "test"])
def test_never_a_zone_that_strangers_share(zone: str) -> None:
    places = [(f"{name}.{zone}", 443) for name in "abc"]
    assert entries(*places, wildcards=2) == [f"{host}:443" for host, _ in places]


def test_methods_only_where_every_request_was_seen() -> None:
    seen = [Seen("a.test", 80, ("GET",), ("/x",)), Seen("a.test", 80, ("POST", "GET"), ("/y",)), Seen("b.test", 443)]
    assert [each.entry for each in learn(seen, methods=True)] == [
        {"host": "a.test:80", "methods": ["GET", "POST"], "paths": ["/x", "/y"]}, "b.test:443"]  # fmt: skip
    many = [Seen("a.test", 80, ("GET",), tuple(f"/{n}" for n in range(20)))]
    assert [each.entry for each in learn(many, methods=True)] == [{"host": "a.test:80", "methods": ["GET"]}]


@given(
    st.lists(
        st.tuples(st.sampled_from(["a.test", "b.a.test", "c.a.test", "10.0.0.1", "fd00::1"]), st.integers(1, 65535)),
        max_size=12,
    ),
    st.sampled_from([0, 2, 3]),
)
def test_everything_seen_is_allowed_by_what_was_learned_and_stands_for_it(
    places: list[tuple[str, int]], wildcards: int
) -> None:
    learned = learn([Seen(host, port) for host, port in places], wildcards=wildcards)
    rules = [parse_rule(each.entry, "allow", Origin("file", "learned")) for each in learned]
    rule_set = RuleSet.build(rules, ())
    for host, port in places:
        assert rule_set.decide(parse_host(f"[{host}]" if ":" in host else host), port).effect == "allow"
    assert {place for each in learned for place in each.places} == set(places)


def test_what_a_rule_said_besides_host_and_port_is_kept() -> None:
    """Without it the place stays shut: a private address, a name server's record, what is no TLS on 443."""
    rules = [
        '{host = "db.test:5432", addresses = ["10.0.0.0/8"]}', '{host = "*.test:5432", addresses = ["192.168.1.2"]}',
        '{host = "x.test:443", tls = "any", dns = ["TXT"], methods = ["GET"]}',
        '{host = "plain.test"}', "@npm", "{broken",
    ]  # fmt: skip
    places = ["db.test:5432", "db.test:5432", "x.test:443", "plain.test:80", "p.test:443", "q.test:443"]
    seen = [
        Seen(host, int(port), rule=rule)
        for (host, _, port), rule in zip((place.partition(":") for place in places), rules, strict=True)
    ]
    assert [each.entry for each in learn(seen)] == [
        {"host": "db.test:5432", "addresses": ["10.0.0.0/8", "192.168.1.2"]},
        "p.test:443", "plain.test:80", "q.test:443",
        {"host": "x.test:443", "dns": ["TXT"], "tls": "any"},
    ]  # fmt: skip
    for each in learn(seen):
        parse_rule(each.entry, "allow", Origin("file", "learned"))


def test_what_needs_more_than_a_name_is_put_under_no_wildcard() -> None:
    seen = [Seen(f"{name}.a.test", 443) for name in ("x", "y")]
    seen.append(Seen("z.a.test", 443, rule='{host = "z.a.test", addresses = ["10.0.0.7"]}'))
    assert [each.entry for each in learn(seen, wildcards=2)] == [
        "*.a.test:443", {"host": "z.a.test:443", "addresses": ["10.0.0.7"]}
    ]  # fmt: skip
