"""Refusals on the wire, held against DESIGN.md §5 word for word."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doorward.allowlists.decision import Decision, Effect, Reason, Source
from doorward.allowlists.host import Name
from doorward.allowlists.rule import Origin, parse_rule
from doorward.proxy.http1_message import Body, End
from doorward.proxy.http1_response import ResponseHead, ResponseReader
from doorward.proxy.refusal import Refusal, http_refusal, refusal_from

KEYS = ["status", "host", "port", "protocol", "method", "decision", "reason", "source", "rule", "message", "hint"]


def decision(
    reason: Reason = Reason.NOT_ALLOWED, message: str = "b.test is in no rule", hint: str = "--allow b.test"
) -> Decision:
    return Decision(Effect.DENY, reason, Source.BASELINE_POLICY, None, Name("b.test"), 443, message, hint)


def refusal(method: str = "CONNECT") -> Refusal:
    protocol = "https_connect" if method == "CONNECT" else "http"
    return refusal_from(decision(), protocol=protocol, method=method, host_text="b.test", port=443)


def read(data: bytes, method: str = "GET") -> tuple[ResponseHead, dict[str, object]]:
    head, body, end = ResponseReader(method).feed(data)
    assert isinstance(head, ResponseHead) and isinstance(body, Body) and isinstance(end, End)
    return head, json.loads(body.data)


@pytest.mark.parametrize("method", ["GET", "CONNECT"])
def test_the_whole_answer(method: str) -> None:
    """P-PP-13"""
    head, body = read(http_refusal(refusal(method)))
    assert head.status == 403
    assert [name.decode() for name, _ in head.headers] == [
        "Content-Type",
        "Content-Length",
        "Connection",
        "x-proxy-error",
    ]
    fields = dict(head.headers)
    assert fields[b"Content-Type"] == b"application/json"
    assert fields[b"Connection"] == b"close"
    assert fields[b"x-proxy-error"] == b"blocked-by-allowlist"
    assert head.framing == "length" and not head.keep_alive
    assert list(body.items()) == [
        ("status", "blocked"),
        ("host", "b.test"),
        ("port", 443),
        ("protocol", "https_connect" if method == "CONNECT" else "http"),
        ("method", method),
        ("decision", "deny"),
        ("reason", "not_allowed"),
        ("source", "baseline_policy"),
        ("rule", None),
        ("message", "b.test is in no rule"),
        ("hint", "--allow b.test"),
    ]


def test_the_keys_are_the_body() -> None:
    assert list(Refusal._fields) == KEYS
    assert list(refusal().to_json()) == KEYS


@pytest.mark.parametrize("method", ["GET", "POST", "CONNECT"])
def test_the_phrase_carries_reason_and_remedy(method: str) -> None:
    """P-PP-13"""
    made = refusal(method)
    assert read(http_refusal(made))[0].phrase == (
        b"Blocked (not_allowed): b.test is in no rule - to allow it: --allow b.test"
    )
    assert read(http_refusal(made._replace(hint="")))[0].phrase == b"Blocked (not_allowed): b.test is in no rule"


def test_head_gets_no_body_but_the_phrase() -> None:
    data = http_refusal(refusal("HEAD"))
    assert data.startswith(b"HTTP/1.1 403 Blocked (not_allowed): b.test is in no rule - to allow it: --allow b.test\r")
    assert data.endswith(b"\r\n\r\n")
    events = ResponseReader("HEAD").feed(data)
    assert [type(event) for event in events] == [ResponseHead, End]


@pytest.mark.parametrize(
    ("reason", "error_class"),
    [
        (Reason.NOT_ALLOWED, "blocked-by-allowlist"),
        (Reason.NOT_ALLOWED_LOCAL, "blocked-by-allowlist"),
        (Reason.PORT_NOT_ALLOWED, "blocked-by-allowlist"),
        (Reason.DENIED, "blocked-by-denylist"),
        (Reason.METHOD_NOT_ALLOWED, "blocked-by-method-policy"),
        (Reason.PATH_NOT_ALLOWED, "blocked-by-method-policy"),
        (Reason.MITM_REQUIRED, "blocked-by-mitm-required"),
        (Reason.NAME_MISMATCH, "blocked-by-policy"),
        (Reason.SCHEME_NOT_ALLOWED, "blocked-by-policy"),
        (Reason.PROXY_LOOP, "blocked-by-policy"),
        (Reason.NOT_ANSWERED, "blocked-by-policy"),
    ],
)
def test_classes(reason: Reason, error_class: str) -> None:
    made = refusal_from(decision(reason), protocol="http", method="GET", host_text="b.test", port=80)
    assert made.error_class == error_class
    assert made.reason == reason.value
    assert f"x-proxy-error: {error_class}\r\n".encode() in http_refusal(made)


def test_every_reason_has_a_class_of_the_design() -> None:
    classes = {refusal()._replace(reason=reason.value).error_class for reason in Reason}
    assert classes == {
        "blocked-by-allowlist",
        "blocked-by-denylist",
        "blocked-by-method-policy",
        "blocked-by-mitm-required",
        "blocked-by-policy",
    }


def test_the_rule_is_told_as_it_was_written() -> None:
    rule = parse_rule("*.B.test", "deny", Origin("flag", "--deny"))
    denied = decision(Reason.DENIED)._replace(rule=rule, effect=Effect.ASK, source=Source.DECIDER)
    made = refusal_from(denied, protocol="socks5_tcp", method="CONNECT", host_text="x.b.test", port=22)
    assert (made.rule, made.decision, made.source, made.host, made.port) == (
        "*.B.test",
        "ask",
        "decider",
        "x.b.test",
        22,
    )


@settings(deadline=None)
@given(st.text(max_size=600), st.text(max_size=100), st.text(max_size=20), st.sampled_from(["GET", "CONNECT"]))
def test_no_text_breaks_the_head(message: str, hint: str, host: str, method: str) -> None:
    made = refusal(method)._replace(message=message, hint=hint, host=host)
    head, body = read(http_refusal(made))
    assert len(head.phrase) <= 400
    assert all(0x20 <= byte <= 0x7E for byte in head.phrase)
    assert (body["message"], body["hint"], body["host"]) == (message, hint, host)


def test_a_byte_that_was_no_text_survives_in_the_body() -> None:
    assert b"\\udcff" in http_refusal(refusal()._replace(message="\udcff"))
