"""Signs a request anew that a command signed with what stands for a secret key (AWS Signature Version 4).

Source: "Create a signed AWS API request", IAM User Guide. Pure. The command's own signature is checked first, with the
placeholder: only a request that was signed with that is signed with the key, and what was signed is known to be read as
the command meant it. Paths are encoded once more by every service but S3; which of the two it was, its signature says.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote, unquote

from doorward.named_tuple import NamedTuple

ALGORITHM = "AWS4-HMAC-SHA256"
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256\s+Credential=(?P<id>[^/,\s]+)/(?P<scope>\d{8}/[^/,\s]+/[^/,\s]+/aws4_request),\s*"
    r"SignedHeaders=(?P<headers>[a-z0-9;_-]+),\s*Signature=(?P<signature>[0-9a-f]{64})"
)
_UNRESERVED = "-_.~"
_CHUNKED = "STREAMING-AWS4"

Headers = Sequence[tuple[str, str]]
"""Names in lower case; the Host is among them."""


class CannotSign(Exception):
    """A request that cannot be signed anew; the text is one clause."""


class Signed(NamedTuple):
    """How a request was signed."""

    key_id: str
    scope: str
    headers: tuple[str, ...]
    payload: str
    twice: bool


def needs_body(headers: Headers) -> bool:
    """Whether what was signed can be told only with the body."""
    return _value(headers, "authorization").startswith(ALGORITHM) and not _value(headers, "x-amz-content-sha256")


def signed_with(secret: str, method: str, target: str, headers: Headers, body: bytes | None) -> Signed | None:
    """How the request was signed, if it was with this secret. `body` None where it is not known. Raises CannotSign."""
    found = _AUTHORIZATION.fullmatch(_value(headers, "authorization").strip())
    if found is None:
        return None
    payload = _value(headers, "x-amz-content-sha256")
    if not payload:
        payload = hashlib.sha256(body or b"").hexdigest()
    names = tuple(found["headers"].split(";"))
    for twice in (False, True):
        signed = Signed(found["id"], found["scope"], names, payload, twice)
        if hmac.compare_digest(_signature(secret, signed, method, target, headers), found["signature"]):
            if payload.startswith(_CHUNKED):
                raise CannotSign("each piece of its body is signed by itself")
            return signed
    return None


def authorization(secret: str, signed: Signed, method: str, target: str, headers: Headers) -> str:
    """The Authorization header with another secret."""
    return (
        f"{ALGORITHM} Credential={signed.key_id}/{signed.scope}, SignedHeaders={';'.join(signed.headers)}, "
        f"Signature={_signature(secret, signed, method, target, headers)}"
    )


def _signature(secret: str, signed: Signed, method: str, target: str, headers: Headers) -> str:
    path, _, query = target.partition("?")
    if signed.twice:
        path = quote(path, safe="/" + _UNRESERVED)
    lines = [f"{name}:{_canonical(value for each, value in headers if each == name)}\n" for name in signed.headers]
    request = "\n".join((method, path or "/", _query(query), "".join(lines), ";".join(signed.headers), signed.payload))
    date, region, service, _ = signed.scope.split("/")
    moment = _value(headers, "x-amz-date")
    text = "\n".join((ALGORITHM, moment, signed.scope, hashlib.sha256(request.encode()).hexdigest()))
    key = f"AWS4{secret}".encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


def _canonical(values: Iterable[str]) -> str:
    return ",".join(" ".join(value.split()) for value in values)


def _query(query: str) -> str:
    pairs = []
    for part in query.split("&") if query else ():
        name, _, value = part.partition("=")
        pairs.append((quote(unquote(name), safe=_UNRESERVED), quote(unquote(value), safe=_UNRESERVED)))
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def _value(headers: Headers, name: str) -> str:
    return next((value for each, value in headers if each == name), "")
