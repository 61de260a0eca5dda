"""What `inspect.record` keeps of a request and its response: heads, and with "bodies" the beginning of each body.

Bounded, so that no exchange fills the rollout, and without what by its name is secret. What a head or body holds
besides is kept as it passed: in the request with placeholders where credentials go, in the response with what was
turned back.
"""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote_plus

BODY = 32 * 1024
"""Bytes kept of each body."""

HEAD = 16 * 1024
"""Characters kept of each head."""

HIDDEN = "(not recorded)"

HIDDEN_MOST = 32
"""Hidden values of one request that get a fingerprint."""

_SECRET = re.compile(
    r"authorization|cookie|token|secret|passw|credential|signature|session|(?:^|[-_])(?:key|auth|sig|jwt)(?:$|[-_])"
    r"|api-?key",
    re.IGNORECASE,
)


def redacted(name: str, value: str) -> str:
    """The value of a header or parameter, unless its name says that it is secret."""
    return HIDDEN if _SECRET.search(name) else value


def redacted_target(target: str) -> str:
    """The same for a path with its query."""
    path, separator, query = target.partition("?")
    parts = []
    for part in query.split("&"):
        name, equals, value = part.partition("=")
        parts.append(f"{name}{equals}{redacted(name, value) if value else ''}")
    return f"{path}{separator}{'&'.join(parts)}"


class Evidence:
    """One exchange; `event` once it is over."""

    def __init__(self, host: str, port: int, *, bodies: bool, key: bytes | None = None) -> None:
        """With `key`, the home's secret, what is hidden of the request has a fingerprint, so that it can be asked
        whether it was this very value (`doorward explain --saw`)."""
        self._event: dict[str, Any] = {"type": "http_exchange", "host": host, "port": port, "started_at": time.time()}
        self._key = key
        self._bodies = bodies
        self._sides: dict[str, _Side] = {}

    def request(self, request: Any) -> None:
        """Its head, as the command sent it."""
        head = {"method": request.method, "target": redacted_target(request.path)[:HEAD]}
        self._event["request"] = {**head, "protocol": request.http_version, "headers": _headers(request)}
        if self._key is not None and (hidden := list(_hidden(request, self._key))):
            self._event["request"]["hidden"] = hidden

    def response(self, response: Any) -> None:
        """Its head, as the command gets it."""
        head = {"status": response.status_code, "phrase": response.reason[:200]}
        self._event["response"] = {**head, "protocol": response.http_version, "headers": _headers(response)}

    def watching(self, side: str, passing: Callable[[bytes], bytes] | None) -> Callable[[bytes], bytes]:
        """Takes note of a body ("request" or "response") as it passes, behind what else looks at it."""
        watched = self._sides[side] = _Side(BODY if self._bodies else 0, passing)
        return watched

    def event(self, error: str | None = None) -> dict[str, Any]:
        """What is kept."""
        self._event["duration_s"] = round(time.time() - self._event["started_at"], 6)
        for name, side in self._sides.items():
            if name in self._event:
                self._event[name].update(side.told())
        if error is not None:
            self._event["error"] = error[:500]
        return self._event


class _Side:
    def __init__(self, limit: int, passing: Callable[[bytes], bytes] | None) -> None:
        self._limit = limit
        self._passing = passing
        self._size = 0
        self._kept = bytearray()

    def __call__(self, data: bytes) -> bytes:
        if self._passing is not None:
            data = self._passing(data)
        self._size += len(data)
        if len(self._kept) < self._limit:
            self._kept += data[: self._limit - len(self._kept)]
        return data

    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = {"body_bytes": self._size}
        if self._limit and self._size:
            try:
                found["body"] = self._kept.decode("utf-8")
            except UnicodeDecodeError:
                found["body_base64"] = base64.b64encode(self._kept).decode("ascii")
            found["body_whole"] = self._size == len(self._kept)
        return found


def _hidden(request: Any, key: bytes) -> Iterator[dict[str, object]]:
    """What is not recorded of a request's head, each as name, fingerprint and length, at most HIDDEN_MOST."""
    from doorward.sessions.environment import fingerprint

    _, _, query = request.path.partition("?")
    values = []
    for name, value in request.headers.items(multi=True):
        if _SECRET.search(name):
            values.append((name, value))
            # `Bearer TOKEN`: asked for is the token
            scheme, _, rest = value.partition(" ")
            if rest and scheme.isalpha():
                values.append((name, rest))
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if value and _SECRET.search(name):
            values.append((name, unquote_plus(value)))
    for name, value in values[:HIDDEN_MOST]:
        raw = value.encode("utf-8", "surrogateescape")
        yield {"name": name, "fingerprint": fingerprint(raw, key), "length": len(raw)}


def _headers(message: Any) -> list[list[str]]:
    found = []
    room = HEAD
    for name, value in message.headers.items(multi=True):
        value = redacted(name, value)
        room -= len(name) + len(value)
        if room < 0:
            break
        found.append([name, value])
    return found
