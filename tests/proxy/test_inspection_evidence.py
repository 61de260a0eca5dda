"""What is kept of an exchange: bounded, and without what by its name is secret."""

from __future__ import annotations

from typing import Any

import pytest

from doorward.proxy.inspection.evidence import BODY, HEAD, HIDDEN, HIDDEN_MOST, Evidence, redacted, redacted_target
from doorward.sessions.environment import fingerprint


class Headers:
    def __init__(self, *pairs: tuple[str, str]) -> None:
        self.pairs = pairs

    def items(self, multi: bool = False) -> tuple[tuple[str, str], ...]:
        return self.pairs


class Message:
    method, http_version, status_code, reason = "POST", "HTTP/2.0", 200, "OK"

    def __init__(self, path: str, *pairs: tuple[str, str]) -> None:
        self.path = path
        self.headers = Headers(*pairs)


def kept(bodies: bool, *pieces: bytes, path: str = "/", pairs: tuple[tuple[str, str], ...] = ()) -> dict[str, Any]:
    evidence = Evidence("a.test", 443, bodies=bodies)
    evidence.request(Message(path, *pairs))
    watched = evidence.watching("request", None)
    assert b"".join(map(watched, pieces)) == b"".join(pieces)
    evidence.response(Message("/"))
    return evidence.event()


@pytest.mark.parametrize(
    "name",
    ["Authorization", "proxy-authorization", "Cookie", "Set-Cookie", "X-Api-Key", "api_key", "key", "X-Auth",
     "X-Amz-Signature", "access_token", "client-secret", "Password"],
)  # fmt: skip
def test_names_that_are_secret(name: str) -> None:
    assert redacted(name, "hunter2") == HIDDEN
    assert "hunter2" not in redacted_target(f"/x?a=b&{name}=hunter2")


@pytest.mark.parametrize("name", ["Accept", "Keyboard", "Content-Type", "monkey", "Author"])
def test_names_that_are_not(name: str) -> None:
    assert redacted(name, "text") == "text"


def test_heads_alone() -> None:
    event = kept(False, b"abc", b"def", path="/x?token=hunter2&a=b", pairs=(("Cookie", "hunter2"), ("Accept", "*/*")))
    assert event["request"]["headers"] == [["Cookie", HIDDEN], ["Accept", "*/*"]]
    assert event["request"]["body_bytes"] == 6 and "body" not in event["request"]
    assert "hunter2" not in str(event) and event["type"] == "http_exchange"


def test_what_is_hidden_can_be_asked_for_with_the_key_of_the_home() -> None:
    key = b"k" * 32
    evidence = Evidence("a.test", 443, bodies=False, key=key)
    evidence.request(Message("/x?token=hunter%202&a=b", ("Authorization", "Bearer hunter3"), ("Accept", "hunter4")))
    hidden = evidence.event()["request"]["hidden"]
    for value in ("hunter 2", "hunter3", "Bearer hunter3"):
        assert fingerprint(value.encode(), key) in [each["fingerprint"] for each in hidden]
        assert value not in str(hidden)
    assert [each["name"] for each in hidden] == ["Authorization", "Authorization", "token"]
    many = Evidence("a.test", 443, bodies=False, key=key)
    many.request(Message("/", *[("Cookie", str(number)) for number in range(1000)]))
    assert len(many.event()["request"]["hidden"]) == HIDDEN_MOST


def test_bodies_have_a_bound() -> None:
    event = kept(True, b"a" * BODY, b"b" * BODY)
    assert event["request"]["body"] == "a" * BODY and event["request"]["body_bytes"] == 2 * BODY
    assert event["request"]["body_whole"] is False
    assert kept(True, b"\xff\xfe")["request"]["body_base64"] == "//4="


def test_heads_have_a_bound() -> None:
    event = kept(False, path="/" + "x" * 2 * HEAD, pairs=tuple((f"x-{n}", "y" * 1000) for n in range(100)))
    assert len(str(event)) < 3 * HEAD
