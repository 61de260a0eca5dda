"""AWS Signature Version 4: the documentation's example, and that only what was signed is signed anew."""

from __future__ import annotations

import hashlib

import pytest

from doorward.proxy.inspection.sigv4 import CannotSign, Signed, authorization, needs_body, signed_with

# The example of the IAM User Guide, and of AWS's general reference before it.
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
TARGET = "/?Action=ListUsers&Version=2010-05-08"
HEADERS = [
    ("content-type", "application/x-www-form-urlencoded; charset=utf-8"),
    ("host", "iam.amazonaws.com"),
    ("x-amz-date", "20150830T123600Z"),
]
EXAMPLE = (
    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
    "SignedHeaders=content-type;host;x-amz-date, "
    "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
)


def test_the_example_of_the_documentation() -> None:
    headers = [*HEADERS, ("authorization", EXAMPLE)]
    signed = signed_with(SECRET, "GET", TARGET, headers, b"")
    assert signed is not None and signed.key_id == "AKIDEXAMPLE"
    assert authorization(SECRET, signed, "GET", TARGET, headers) == EXAMPLE


@pytest.mark.parametrize(
    ("method", "target", "body"),
    [("POST", TARGET, b""), ("GET", "/?Action=DeleteUser&Version=2010-05-08", b""), ("GET", TARGET, b"x")],
)
def test_what_was_not_signed_is_not_signed_anew(method: str, target: str, body: bytes) -> None:
    assert signed_with(SECRET, method, target, [*HEADERS, ("authorization", EXAMPLE)], body) is None


def test_another_secret_signed_it() -> None:
    assert signed_with("another", "GET", TARGET, [*HEADERS, ("authorization", EXAMPLE)], b"") is None
    assert signed_with(SECRET, "GET", TARGET, [*HEADERS, ("authorization", "Bearer x")], b"") is None


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("target", ["/a%20b/c?x=%2F&a", "/", "/a~b-c_d.e?q=1&q=0&p="])
def test_a_placeholders_signature_becomes_the_keys(twice: bool, target: str) -> None:
    payload = hashlib.sha256(b"body").hexdigest()
    headers = [("host", "b.test"), ("x-amz-date", "20260101T000000Z"), ("x-amz-content-sha256", payload)]
    names = ("host", "x-amz-content-sha256", "x-amz-date")
    by_placeholder = Signed("AKIA", "20260101/eu/s3/aws4_request", names, payload, twice)
    sent = [*headers, ("authorization", authorization("placeholder", by_placeholder, "PUT", target, headers))]
    signed = signed_with("placeholder", "PUT", target, sent, None)
    assert signed is not None
    fresh = [*headers, ("authorization", authorization("real", signed, "PUT", target, headers))]
    assert signed_with("real", "PUT", target, fresh, None) is not None
    assert signed_with("placeholder", "PUT", target, fresh, None) is None


def test_a_body_whose_pieces_are_signed() -> None:
    payload = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
    headers = [("host", "b.test"), ("x-amz-date", "20260101T000000Z"), ("x-amz-content-sha256", payload)]
    by = Signed("AKIA", "20260101/eu/s3/aws4_request", ("host", "x-amz-date"), payload, False)
    sent = [*headers, ("authorization", authorization("placeholder", by, "PUT", "/", headers))]
    with pytest.raises(CannotSign):
        signed_with("placeholder", "PUT", "/", sent, None)


def test_whose_body_must_be_read() -> None:
    assert needs_body([("authorization", EXAMPLE)])
    assert not needs_body([("authorization", EXAMPLE), ("x-amz-content-sha256", "UNSIGNED-PAYLOAD")])
    assert not needs_body([("authorization", "Bearer x")])
