"""Addresses to listen on: what is taken, and what is said about the rest."""

from __future__ import annotations

import pytest

from doorward.errors import UsageError
from doorward.listen_address import ListenAddress, parse_listen, require_loopback


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:3128", "127.0.0.1", 3128),
        ("127.0.0.1:0", "127.0.0.1", 0),
        ("[::1]:65535", "::1", 65535),
        ("[0:0::1]:80", "::1", 80),
        ("0.0.0.0:80", "0.0.0.0", 80),
    ],
)
def test_literals_are_taken(text: str, host: str, port: int) -> None:
    address = parse_listen(text)
    assert address == ListenAddress(host, port)
    assert parse_listen(address.text) == address


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "ADDRESS:PORT"),
        ("127.0.0.1", "ADDRESS:PORT"),
        ("127.0.0.1:", "ADDRESS:PORT"),
        ("127.0.0.1:http", "ADDRESS:PORT"),
        ("127.0.0.1:-1", "ADDRESS:PORT"),
        ("127.0.0.1:65536", "ADDRESS:PORT"),
        ("127.0.0.1:٣", "ADDRESS:PORT"),
        (":80", "--listen 127.0.0.1:80"),
        ("localhost:80", "--listen 127.0.0.1:80"),
        ("proxy.test:80", "a name is not looked up"),
        ("127.1:80", "a name is not looked up"),
        ("::1:80", "--listen [::1]:80"),
        ("[127.0.0.1]:80", "no plain address"),
        ("[::ffff:127.0.0.1]:80", "no plain address"),
        ("[fe80::1%eth0]:80", "no plain address"),
    ],
)
def test_the_rest_is_told_what_to_write(text: str, told: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_listen(text)
    assert told in str(raised.value)
    assert repr(text) in str(raised.value)


@pytest.mark.parametrize(("host", "near"), [("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("0.0.0.0", False),
                                            ("::", False), ("10.0.0.1", False), ("fe80::1", False)])  # fmt: skip
def test_only_loopback_needs_no_word(host: str, near: bool) -> None:
    address = ListenAddress(host, 80)
    require_loopback([address], True)
    if near:
        require_loopback([address], False)
    else:
        with pytest.raises(UsageError, match="dangerously-listen-on-any-address"):
            require_loopback([ListenAddress("127.0.0.1", 80), address], False)
