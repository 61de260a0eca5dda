"""A command line in a record names no credential, and stays readable."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from doorward.proxy.plain_arguments import MOST_TEXT, nothing_to_withhold
from doorward.proxy.withheld_arguments import WITHHELD, without_credentials

SECRET = "hunter2hunter2"


@pytest.mark.parametrize("words", [
    ["--password", SECRET], [f"--password={SECRET}"], ["--api-key", SECRET], [f"--github-token={SECRET}"],
    ["-u", f"me:{SECRET}"], ["-H", f"Authorization: Bearer {SECRET}"], ["--header", f"X-Api-Key: {SECRET}"],
    [f"PGPASSWORD={SECRET}"], [f"-Dmy.secret={SECRET}"], [f"https://me:{SECRET}@a.test/x"],
    [f"https://a.test/x?a=1&access_token={SECRET}&b=2"], ["-a", SECRET], [f"postgres://me:{SECRET}@db.test/x"],
    ["--", f"token={SECRET}"], ["--cookie", f"sid={SECRET}"], ["--oauth2-bearer", SECRET],
    [f"AWS_SECRET_ACCESS_KEY={SECRET}"],
    ["ghp_" + "a1B2" * 9], ["AKIA" + "ABCD1234" * 2], [f"x Bearer {SECRET}"], ["sk-" + "abcd1234" * 4],
    ["--token", f"--{SECRET}"],
])  # fmt: skip
def test_what_looks_like_a_credential_is_withheld(words):
    assert not nothing_to_withhold(["tool", *words])
    shown = " ".join(without_credentials(["tool", *words]))
    assert WITHHELD in shown
    assert not any(each in shown for each in (SECRET, "a1B2a1B2", "ABCD1234ABCD", "abcd1234abcd"))


@pytest.mark.parametrize("words", [
    ["curl", "-sS", "-m", "5", "https://a.test/x?page=2#top"], ["ssh", "-p", "2222", "git@a.test",
    "git-upload-pack 'r.git'"],
    ["curl", "-H", "Accept: text/html"], ["node", "server.js", "--port", "3000"], ["pip", "install", "keyring",
    "tokenizers"],
    ["python", "-c", "print(1)"], ["psql", "-h", "db.test", "-U", "me", "-p", "5432"], ["redis-cli", "-p", "6379",
    "GET", "k"],
])  # fmt: skip
def test_what_does_not_stays(words):
    assert without_credentials(words) == words


def test_a_long_line_is_cut():
    shown = without_credentials(["tool", "x" * 10_000, "y"])
    assert shown[1].endswith("…") and len(shown[1]) <= MOST_TEXT + 1
    assert without_credentials(["tool"] * 200)[-1] == "…"
    assert without_credentials([]) == []


PARTS = st.sampled_from([
    "--", "-", "-D", "=", ":", "://", "@", "?", "&", ";", "/", ".", " ", "token", "SECRET", "passwd", "passphrase",
    "apikey", "api-key", "access_key", "authorization", "oauth2-bearer", "pwd", "pat", "dsn", "sig", "cookies",
    "ghp_" + "a" * 20, "glpat-" + "a" * 16, "sk-" + "a" * 16, "xoxb-" + "a" * 10, "npm_" + "a" * 30,
    "pypi-" + "a" * 30, "AKIA" + "A" * 16,
    "ASIA" + "A" * 16, "AIza" + "a" * 30, "eyJ" + "a" * 10, "Basic x", "Digest x", "Negotiate x", "\u017fecret", "x",
])  # fmt: skip


@given(st.lists(st.one_of(st.text(max_size=8), st.lists(PARTS, max_size=5).map("".join)), max_size=6))
@example(["x", "--to\u212aen", "y"])
def test_what_is_passed_at_a_glance_is_what_the_patterns_leave(words):
    if nothing_to_withhold(words):
        assert without_credentials(words) == words
