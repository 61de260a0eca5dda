"""What a refusal advises."""

from collections.abc import Callable
from ipaddress import ip_address

import pytest

from doorward.allowlists.hint import allow_option, entry_for, entry_for_www, undo_option
from doorward.allowlists.host import parse_host
from doorward.allowlists.rule import Origin, Rule


@pytest.mark.parametrize(
    ("host", "port", "entry"),
    [
        ("a.test", 443, "a.test"),
        ("a.test", 80, "a.test"),
        ("a.test", 8443, "a.test:8443"),
        ("gateway", 8080, "gateway:8080"),
        ("[::1]", 8443, "[::1]:8443"),
        ("[::1]", 443, "[::1]"),
        ("127.0.0.1", 4318, "127.0.0.1:4318"),
    ],
)
def test_the_narrowest_entry(host: str, port: int, entry: str) -> None:
    """P-DM-12."""
    assert entry_for(parse_host(host), port) == entry


def test_an_entry_that_opens_addresses_too() -> None:
    entry = entry_for(parse_host("db.corp"), 5432, [ip_address("10.0.0.7"), ip_address("fd00::7")])
    assert entry == '{host = "db.corp:5432", addresses = ["10.0.0.7", "fd00::7"]}'


def test_an_entry_for_some_methods() -> None:
    """P-PP-03."""
    entry = entry_for(parse_host("a.test"), 8080, methods=["GET", "POST"])
    assert entry == '{host = "a.test:8080", methods = ["GET", "POST"]}'


def test_www_is_hinted_as_the_zone() -> None:
    """P-DM-03."""
    assert entry_for_www("www.a.test", 443) == "*.a.test"
    assert entry_for_www("www.a.test", 8443) == "*.a.test:8443"
    assert entry_for_www("www.co.uk", 443) is None
    assert entry_for_www("www.github.io", 443) is None
    assert entry_for_www("www.com", 443) is None


@pytest.mark.parametrize(
    ("entry", "option"),
    [
        ("a.test:8443", "--allow a.test:8443"),
        ("10.0.0.0/8", "--allow 10.0.0.0/8"),
        ("*.a.test", "--allow '*.a.test'"),
        ("[::1]:80", "--allow '[::1]:80'"),
        ('{host = "a.test"}', "--allow '{host = \"a.test\"}'"),
    ],
)
def test_options_survive_a_shell(entry: str, option: str) -> None:
    import shlex

    assert allow_option(entry) == option
    assert shlex.split(option) == ["--allow", entry]


@pytest.mark.parametrize(
    ("origin", "advice"),
    [
        (Origin("flag", "--deny"), "leave out --deny '*.a.test'"),
        (Origin("flag", "-c network.deny"), "leave out -c network.deny"),
        (Origin("file", "config.toml:3"), "doorward allowlist remove --deny '*.a.test'"),
        (Origin("file", ".doorward/config.toml:3"), "doorward allowlist remove --project --deny '*.a.test'"),
        (Origin("file", "profiles/ci.toml"), "doorward allowlist remove --profile ci --deny '*.a.test'"),
        (Origin("file", "/etc/doorward/config.toml:3"), "take '*.a.test' out of /etc/doorward/config.toml:3"),
        (Origin("policy", "rules/x.rules:1"), ""),
        (Origin("api", "network.deny"), ""),
    ],
)
def test_how_to_take_a_deny_away(rule: Callable[..., Rule], origin: Origin, advice: str) -> None:
    assert undo_option(rule("*.a.test", "deny", origin)) == advice


def test_a_rule_that_looks_like_an_option(rule: Callable[..., Rule]) -> None:
    advice = undo_option(rule("-a.test", "deny", Origin("file", "config.toml:3")))
    assert advice == "doorward allowlist remove --deny -- -a.test"
