"""Shapes of credentials are not shown; ordinary text is."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doorward.sessions.credentials import kinds, opens_key, redacted

# put together here, so that no scanner takes this file for a leak
SECRETS = {
    "AWS key id": "AKIA" + "ABCDEFGHIJKLMNOP",
    "GitHub token": "ghp_" + "a1B2" * 9,
    "GitLab token": "glpat-" + "x" * 20,
    "Slack token": "xoxb-" + "123456789012-abc",
    "Stripe key": "sk_live_" + "a" * 24,
    "Google key": "AIza" + "b" * 35,
    "npm token": "npm_" + "c" * 36,
    "package index token": "pypi-" + "d" * 60,
    "API key": "sk-" + "proj-" + "e" * 40,
    "JSON web token": "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxIn0abc" + ".sig_-",
}


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("around", ["{}", "the key is {}.", "x={}\n", '{{"k": "{}"}}', "({})"])
def test_known_shapes(kind: str, around: str) -> None:
    secret = SECRETS[kind]
    text = redacted(around.format(secret))
    assert secret not in text
    assert "[redacted: " in text


@pytest.mark.parametrize("kind", SECRETS)
def test_what_it_is_is_told(kind: str) -> None:
    assert kinds(f"a {SECRETS[kind]} b") == [kind]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:hunter2x@a.test/x", "https://me:[redacted: password]@a.test/x"),
        ("Authorization: Bearer abcdef123", "Authorization: Bearer [redacted: credentials]"),
        ("proxy-authorization: Basic bWU6eA==", "proxy-authorization: Basic [redacted: credentials]"),
        ("DB_PASSWORD=correcthorse", "DB_PASSWORD=[redacted: secret]"),
        ('"api_key": "0123456789"', '"api_key": "[redacted: secret]"'),
        ("token: 0123456789abcdef", "token: [redacted: secret]"),
        ("MY_SECRET='a b'", "MY_SECRET='a b'"),
    ],
)
def test_values_that_something_beside_them_gives_away(text: str, shown: str) -> None:
    assert redacted(text) == shown
    assert redacted(shown) == shown


def test_a_private_key_is_one_value_also_where_it_is_cut_off() -> None:
    begin, end = "-----BEGIN RSA " + "PRIVATE KEY-----", "-----END RSA " + "PRIVATE KEY-----"
    assert redacted(f"a\n{begin}\nMII\nabc\n{end}\nb") == "a\n[redacted: private key]\nb"
    assert redacted(f"a\n{begin}\nMII") == "a\n[redacted: private key]"
    assert opens_key(f"{begin}\nMII")
    assert not opens_key(f"{begin}\nMII\n{end}\n")


@pytest.mark.parametrize(
    "text",
    [
        "no token was given",
        "token: $TOKEN",
        "password: <hidden>",
        "Tokenizer = word_tokenizer",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "sha256:" + "a" * 64,
        "https://a.test:8443/path@v2",
        "sk-learn is a name",
        "max_tokens: 4096",
    ],
)
def test_ordinary_text_is_left(text: str) -> None:
    assert redacted(text) == text
    assert kinds(text) == []


@given(st.text(max_size=200))
def test_twice_is_as_once(text: str) -> None:
    assert redacted(redacted(text)) == redacted(text)


@pytest.mark.parametrize("piece", ["a", "token", "token ", "://", "http://a:", "-----BEGIN ", "authorization: ", "_"])
def test_hostile_text_takes_no_time(piece: str) -> None:
    """Output comes from the command: no shape may be matched in more than linear time."""
    text = piece * (200_000 // len(piece))
    started = time.process_time()
    redacted(text)
    assert time.process_time() - started < 5
