"""The upstream proxy's URL: strict, and its credentials stand nowhere. (Talking to one: integration/network.)"""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from doorward.allowlists.host import Address, Name
from doorward.proxy.parent import MalformedParent, Parent, parse_parent


@pytest.mark.parametrize(
    ("url", "parent"),
    [
        ("http://proxy.test:3128", Parent("http", Name("proxy.test"), 3128, b"")),
        ("HTTP://Proxy.test:3128/", Parent("http", Name("proxy.test"), 3128, b"")),
        ("https://proxy.test", Parent("https", Name("proxy.test"), 443, b"")),
        ("http://[2001:db8::1]:8080", Parent("http", Address(ip_address("2001:db8::1")), 8080, b"")),
        ("http://u:p@proxy.test:1", Parent("http", Name("proxy.test"), 1, b"Basic dTpw")),
        ("http://u@proxy.test:1", Parent("http", Name("proxy.test"), 1, b"Basic dTo=")),
        ("http://u%40corp:p%3A%2f@proxy.test:1", Parent("http", Name("proxy.test"), 1, b"Basic dUBjb3JwOnA6Lw==")),
        ("http://a@b:p@proxy.test:1", Parent("http", Name("proxy.test"), 1, b"Basic YUBiOnA=")),
    ],
)
def test_what_is_a_proxy(url: str, parent: Parent) -> None:
    assert parse_parent(url) == parent


@pytest.mark.parametrize(
    "url",
    [
        "proxy.test:3128",
        "socks5://proxy.test:1080",
        "http://",
        "http://s3cret:x@",
        "http://s3cret:x@proxy.test:99999",
        "http://s3cret:x@proxy.test:80/path",
        "http://s3cret:%zz@proxy.test:80",
        "http://s3cret:x@127.1:80",
        "",
    ],
)
def test_what_is_none_and_says_nothing_of_its_credentials(url: str) -> None:
    with pytest.raises(MalformedParent) as caught:
        parse_parent(url)
    assert "s3cret" not in str(caught.value)


def test_credentials_are_in_no_text() -> None:
    parent = parse_parent("http://user:s3cret@proxy.test:3128")
    for text in (str(parent), repr(parent), parent.text):
        assert "s3cret" not in text
        assert "dXNlcjpz" not in text
    assert parent.text == "http://proxy.test:3128"
