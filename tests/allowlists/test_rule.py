"""Rules: text and tables, defaults, errors that list everything, notices."""

from collections.abc import Callable
from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.allowlists.pattern import EVERY_PORT, WEB_PORTS, Kind
from doorward.allowlists.rule import (
    MalformedRule,
    MalformedRules,
    Origin,
    Rule,
    parse_rule,
    parse_rules,
    rule_entry,
    table_text,
)

FLAG = Origin("flag", "--allow")
FILE = Origin("file", "config.toml:12")


def test_without_a_port_an_allow_is_the_web_and_a_deny_everything(rule: Callable[..., Rule]) -> None:
    """P-PP-15, P-DM-06."""
    assert rule("a.test").ports == WEB_PORTS and not rule("a.test").ports_named
    assert rule("a.test", "deny").ports == EVERY_PORT
    assert rule("a.test:*").ports == EVERY_PORT and rule("a.test:*").ports_named


def test_a_table_says_more(rule: Callable[..., Rule]) -> None:
    parsed = rule({"host": "db.corp:5432", "addresses": ["10.0.0.0/8", "fd00::7"], "tls": "any"})
    assert parsed.pattern.name == "db.corp" and parsed.ports == ((5432, 5432),)
    assert parsed.addresses == (ip_network("10.0.0.0/8"), ip_network("fd00::7"))
    assert parsed.tls == "any"


def test_a_table_may_list_methods(rule: Callable[..., Rule]) -> None:
    """P-PP-03."""
    parsed = rule('{host = "allowed.test", methods = ["HEAD", "GET", "GET"]}')
    assert parsed.methods == ("GET", "HEAD") and parsed.notices == ()
    assert rule("allowed.test").methods == ()
    (notice,) = rule({"host": "allowed.test", "methods": ["GETT"]}).notices
    assert "GETT" in notice and "GET?" in notice and "--allow" in notice


def test_a_flag_takes_the_same_table_as_inline_toml(rule: Callable[..., Rule]) -> None:
    text = '{host = "db.corp:5432", addresses = ["10.0.0.0/8"]}'
    assert rule(text).addresses == (ip_network("10.0.0.0/8"),)
    assert rule(text).text == text


def test_localhost_brings_loopback(rule: Callable[..., Rule]) -> None:
    """P-DM-12, P-IP-04: the one name that counts as naming addresses."""
    assert rule("localhost:8080").addresses == (ip_network("127.0.0.1"), ip_network("::1"))
    assert rule("*.localhost").addresses == ()
    assert rule("localhost", "deny").addresses == ()


@pytest.mark.parametrize(
    ("entry", "suggestion"),
    [
        ("https://*.allowed.test", "*.allowed.test"),
        ("allowed.test/path", "allowed.test"),
        ("user@allowed.test", "allowed.test"),
        (" allowed.test ", "allowed.test"),
        ("*.com", "*.NAME.com"),
        ("**.co.uk:443", "*.NAME.co.uk"),
        ("", None),
        ("@pip", None),
        ("ex*ample.test", None),
        ({"host": "https://db.corp"}, '{host = "db.corp"}'),
        ({"host": "db.corp", "adresses": []}, '{host = "db.corp", addresses = []}'),
        ({"host": "db.corp", "tls": "none"}, '{host = "db.corp", tls = "name"}'),
        ({"host": "db.corp", "colour": "red"}, None),
        ({"addresses": ["10.0.0.1"]}, None),
        ({"host": 5}, None),
        ({"host": '{host = "a.test"}'}, None),
        ({"host": "db.corp", "addresses": "10.0.0.1"}, None),
        ({"host": "db.corp", "addresses": [10]}, None),
        ({"host": "db.corp", "addresses": ["10.0.0.1/8"]}, None),
        ({"host": "*", "addresses": ["10.0.0.0/8"]}, None),
        ({"host": "10.0.0.1", "addresses": ["10.0.0.0/8"]}, None),
        ({"host": "a.test", "methods": "get"}, '{host = "a.test", methods = ["GET"]}'),
        ({"host": "a.test", "methods": ["GET", "head"]}, '{host = "a.test", methods = ["GET", "HEAD"]}'),
        ({"host": "a.test", "method": ["get"]}, '{host = "a.test", methods = ["GET"]}'),
        ({"host": "a.test", "methods": []}, None),
        ({"host": "a.test", "methods": ["CONNECT"]}, None),
        ({"host": "a.test", "methods": ["*"]}, None),
        ({"host": "a.test", "methods": ["GET"], "tls": "any"}, '{host = "a.test", methods = ["GET"]}'),
        ({"host": "a.test", "methods": [7], "colour": "red"}, None),
        ({"host": "a.test", "credentials": "forge"}, '{host = "a.test", credential = "forge"}'),
        ({"host": "a.test", "credential": ["forge"]}, None),
        ({"host": "a.test", "credential": ""}, None),
        ({"host": "a.test", "credential": "forge", "tls": "any"}, None),
        ({"host": "udp:a.test:53", "credential": "forge"}, None),
        ("{host = ", None),
        ('{host = "a.test"}\nb = 1', None),
    ],
)
def test_bad_entries_say_what_to_write(entry: str | dict[str, object], suggestion: str | None) -> None:
    """P-DM-08, P-DM-09."""
    with pytest.raises(MalformedRule) as error:
        parse_rule(entry, "allow", FILE)
    assert error.value.suggestion == suggestion
    assert error.value.origin == FILE and "config.toml:12" in str(error.value)
    if suggestion is not None:
        assert suggestion in str(error.value)
        parse_rule(suggestion, "allow", FILE)


def test_a_deny_has_nothing_but_its_host(rule: Callable[..., Rule]) -> None:
    with pytest.raises(MalformedRule) as error:
        rule({"host": "a.test", "addresses": ["10.0.0.1"]}, "deny")
    assert error.value.suggestion == "a.test"
    assert rule({"host": "a.test"}, "deny").pattern.name == "a.test"
    with pytest.raises(MalformedRule) as error:
        rule({"host": "a.test", "methods": ["POST"]}, "deny")
    assert error.value.suggestion == "a.test" and "every method" in str(error.value)


def test_a_deny_may_shut_a_registry_suffix(rule: Callable[..., Rule]) -> None:
    assert rule("*.com", "deny").pattern.kind is Kind.BELOW


def test_every_bad_entry_is_listed_with_its_position() -> None:
    """P-DM-08: nothing starts half-configured, and nobody fixes one error to meet the next."""
    entries = [
        "https://*.allowed.test",
        "fine.test",
        "allowed.test/path",
        "user@allowed.test",
        " allowed.test ",
        "*.com",
        "",
    ]
    with pytest.raises(MalformedRules) as error:
        parse_rules(entries, "allow", Origin("file", "network.allow"))
    assert [problem.position for problem in error.value.problems] == [1, 3, 4, 5, 6, 7]
    text = str(error.value)
    for entry in entries:
        assert (repr(entry) in text) is (entry != "fine.test")
    for suggestion in ("'*.allowed.test'", "'allowed.test'", "'*.NAME.com'"):
        assert suggestion in text
    assert "network.allow, entry 3" in text
    assert error.value.entry == entries[0]


def test_one_bad_entry_is_one_line() -> None:
    with pytest.raises(MalformedRules) as error:
        parse_rules(["a.test", "api.*"], "allow", FLAG)
    assert "\n" not in str(error.value)


def test_good_lists_keep_their_order() -> None:
    assert [rule.text for rule in parse_rules(["b.test", "a.test"], "allow", FLAG)] == ["b.test", "a.test"]


@pytest.mark.parametrize(
    ("entry", "word"),
    [
        ("*", "EVERY"),
        ("*:8443", "EVERY"),
        ("*.github.io", "shared zone"),
        ("0.0.0.0/0", "local addresses"),
        ("::/0", "local addresses"),
    ],
)
def test_wide_allows_are_said_aloud(rule: Callable[..., Rule], entry: str, word: str) -> None:
    """P-DM-07."""
    (notice,) = rule(entry).notices
    assert word in notice and "--allow" in notice
    assert rule(entry, "deny").notices == ()


@pytest.mark.parametrize(
    "entry", ["a.test", "*.a.test", "*.example.com", "10.0.0.0/8", "93.184.216.34", "*.corp", "*.internal"]
)
def test_ordinary_allows_are_not(rule: Callable[..., Rule], entry: str) -> None:
    assert rule(entry).notices == ()


@pytest.mark.parametrize(
    "entry",
    [
        "a.test",
        "*.a.test:8443",
        "**.a.test:1-5",
        "*",
        "[::1]:80",
        "10.0.0.0/8:*",
        "localhost:8080",
        '{host = "db.corp:5432", addresses = ["10.0.0.0/8"], tls = "any"}',
        '{host = "localhost", addresses = ["127.0.0.2/32"]}',
        '{host = "a.test:80", methods = ["GET", "HEAD"], addresses = ["10.0.0.0/8"]}',
        '{host = "a.test", paths = ["/v1/**"], credential = "forge"}',
    ],
)
def test_the_canonical_entry_reads_back(rule: Callable[..., Rule], entry: str) -> None:
    parsed = rule(entry)
    assert rule_entry(parsed) == entry
    assert rule(rule_entry(parsed))._replace(text=parsed.text) == parsed


def test_table_text_is_toml() -> None:
    import tomllib

    table = {"host": 'a"b\\c \u00fc \U0001f600', "addresses": ["10.0.0.0/8"]}
    assert tomllib.loads(f"rule = {table_text(table)}")["rule"] == table


@given(st.text(alphabet="ab.*:/@[]{}=\"', -_0159%\tü\n", max_size=40))
def test_any_text_is_a_rule_or_a_malformed_rule(entry: str) -> None:
    try:
        parsed = parse_rule(entry, "allow", FLAG)
    except MalformedRule as error:
        assert error.suggestion is None or parse_rule(error.suggestion, "allow", FLAG)
    else:
        again = parse_rule(rule_entry(parsed), "allow", FLAG)
        assert (again.pattern, again.ports, again.addresses) == (parsed.pattern, parsed.ports, parsed.addresses)
        assert again.methods == parsed.methods


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=6,
    )
)
def test_any_table_is_a_rule_or_a_malformed_rule(value: object) -> None:
    for key in ("host", "addresses", "tls", "methods", "other"):
        table: dict[str, object] = {"host": "a.test", key: value}
        try:
            parse_rule(table, "allow", FLAG)
        except MalformedRule as error:
            assert str(error)
