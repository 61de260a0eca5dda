"""What every preset keeps to."""

from collections.abc import Sequence
from ipaddress import ip_address

import pytest

from doorward.allowlists.host import parse_host
from doorward.allowlists.presets import (
    Page,
    PresetHost,
    PresetUnavailable,
    expand,
    may_be_preset,
    pins_for,
    preset_name,
)


class Nothing:
    """A machine without any tool."""

    def run(self, argv: Sequence[str]) -> str | None:
        return None

    def read(self, path: str) -> str | None:
        return None

    def fetch(self, url: str, *, ca_file: str | None = None, verify: bool = True) -> Page:
        raise OSError("no network")


def test_names() -> None:
    assert preset_name("@pip") == "pip" and preset_name("pip.test") is None


def test_an_unknown_preset_names_the_known_ones() -> None:
    with pytest.raises(PresetUnavailable) as error:
        expand("nope", Nothing())
    assert "@nope" in error.value.reason and "@pip" in error.value.remedy


@pytest.mark.parametrize("name", ["pip", "pip-install", "npm", "npm-install", "apt", "dnf", "git", "git-fetch"])
def test_without_the_tool_every_preset_is_unavailable_with_a_remedy(name: str) -> None:
    with pytest.raises(PresetUnavailable) as error:
        expand(name, Nothing())
    assert error.value.reason and ("--allow" in error.value.remedy or "@git-fetch:" in error.value.remedy)


def test_pins_take_private_addresses_and_nothing_of_this_machine() -> None:
    mirror = PresetHost(parse_host("mirror.corp"), 443, "test", True)
    addresses = [
        ip_address(text) for text in ("10.0.0.7", "::ffff:10.0.0.7", "127.0.0.1", "169.254.169.254", "fe80::1")
    ]
    assert pins_for(mirror, addresses) == (ip_address("10.0.0.7"),)
    literal = PresetHost(parse_host("127.0.0.1"), 3141, "test", True)
    assert literal.entry == "127.0.0.1:3141" and pins_for(literal, addresses) == ()


@pytest.mark.parametrize(
    ("host", "configured", "linked"),
    [
        ("mirror.corp", True, True),
        ("10.0.0.7", True, True),
        ("127.0.0.1", True, False),
        ("[::1]", True, False),
        ("localhost", True, False),
        ("169.254.169.254", False, False),
        ("169.254.1.1", False, False),
        ("metadata.google.internal", False, False),
        ("0.0.0.0", False, False),
    ],
)
def test_loopback_only_where_the_configuration_says_so(host: str, configured: bool, linked: bool) -> None:
    assert may_be_preset(parse_host(host), configured=True) is configured
    assert may_be_preset(parse_host(host), configured=False) is linked
