"""The responses the worker makes itself: refusals, failures, what is malformed. The same bodies as the door's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from mitmproxy import http

from doorward.proxy.refusal import Refusal, phrase


def refusal(error_class: str, body: Mapping[str, Any]) -> http.Response:
    """The 403 of a refusal (DESIGN §5). On HTTP/1 the connection is to be closed behind it."""
    return _response(403, error_class, body, phrase(Refusal(*body.values())))


def failure(status: int, error_class: str, sentence: str, **more: object) -> http.Response:
    """A 4xx or 5xx that is no refusal."""
    return _response(status, error_class, {"status": "failed", **more, "message": sentence}, HTTPStatus(status).phrase)


def failure_bytes(status: int, sentence: str) -> bytes:
    """The same on HTTP/1, where there is no request to answer."""
    from mitmproxy.net.http import http1

    answer = failure(status, {504: "upstream-timeout"}.get(status, _CLASSES.get(status, "bad-request")), sentence)
    assembled: bytes = http1.assemble_response(answer)
    return assembled


_CLASSES = {500: "upstream-failed", 502: "upstream-failed", 503: "upstream-failed"}


def failure_body(status: int, sentence: str) -> bytes:
    """The body of a failure, for HTTP/2 streams that mitmproxy ends by itself."""
    content: bytes = failure(status, "", sentence).content or b""
    return content


def _response(status: int, error_class: str, body: Mapping[str, Any], said: str) -> http.Response:
    content = json.dumps(body, ensure_ascii=True).encode("ascii") + b"\n"
    headers = http.Headers(
        [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(content)),
            (b"x-proxy-error", error_class.encode("ascii")),
            (b"connection", b"close"),
        ]
    )
    return http.Response(b"HTTP/1.1", status, said.encode("ascii"), headers, content, None, 0, 0)
