"""Puts credentials into requests in the place of what stands for them, and notices where one does not belong.

Pure: heads in, heads out. A placeholder is replaced at the place its credential has, towards the credential's hosts,
inside TLS alone. A placeholder, or a real value, on its way to any other host is a leak; so is one in a body that
passes. What a value looks like inside base64 (Basic authentication) and percent escapes is looked for too.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote_plus

from doorward.named_tuple import NamedTuple


class Credential(NamedTuple):
    """`field` is the name of the header (lower case), parameter or cookie."""

    name: str
    value: str
    placeholder: str
    place: str
    field: str

    @classmethod
    def told(cls, table: Mapping[str, Any]) -> Credential:
        """From what the supervisor sends."""
        return cls(*(str(table[key]) for key in cls._fields))

    def __repr__(self) -> str:
        return f"Credential({self.name!r})"


class Leak(Exception):
    """`credential` was about to go where it does not belong; `real` for the value itself."""

    def __init__(self, credential: Credential, real: bool) -> None:
        super().__init__(credential.name)
        self.credential = credential
        self.real = real


def leak_in(texts: Iterable[str], credentials: Iterable[Credential]) -> Leak | None:
    """The first of the credentials that stands in one of the texts, in whatever spelling."""
    credentials = tuple(credentials)
    for text in texts:
        for spelling in _spellings(text):
            for each in credentials:
                if each.placeholder in spelling:
                    return Leak(each, False)
                if each.value in spelling:
                    return Leak(each, True)
    return None


def _spellings(text: str) -> Iterable[str]:
    yield text
    if "%" in text or "+" in text:
        yield unquote_plus(text)
    scheme, _, rest = text.partition(" ")
    if scheme.lower() == "basic":
        decoded = _unbasic(rest)
        if decoded is not None:
            yield decoded


def _unbasic(text: str) -> str | None:
    try:
        return base64.b64decode(text.strip(), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return None


def replaced_header(credential: Credential, name: str, value: str) -> str | None:
    """The header's value with the credential in it; None where it stays as it is."""
    mark, real = credential.placeholder, credential.value
    if credential.place == "header" and name == credential.field and mark in value:
        return value.replace(mark, real)
    if credential.place == "basic" and name == credential.field:
        scheme, _, rest = value.partition(" ")
        decoded = _unbasic(rest) if scheme.lower() == "basic" else None
        if decoded is not None and mark in decoded:
            return f"{scheme} {base64.b64encode(decoded.replace(mark, real).encode()).decode('ascii')}"
    if credential.place == "cookie" and name == "cookie":
        pairs = value.split(";")
        for number, pair in enumerate(pairs):
            key, separator, text = pair.partition("=")
            if separator and key.strip() == credential.field and mark in text:
                pairs[number] = f"{key}={text.replace(mark, real)}"
        return ";".join(pairs) if pairs != value.split(";") else None
    return None


def replaced_target(credential: Credential, target: str) -> str | None:
    """The same for the request's path and query."""
    if credential.place != "query":
        return None
    path, separator, query = target.partition("?")
    parts = query.split("&")
    for number, part in enumerate(parts):
        key, equals, text = part.partition("=")
        if equals and unquote_plus(key) == credential.field and unquote_plus(text) == credential.placeholder:
            parts[number] = f"{key}={quote(credential.value, safe='')}"
    changed = f"{path}{separator}{'&'.join(parts)}"
    return changed if changed != target else None


_HELD_FROM = 4
"""Bytes at the end of a piece that are held back where a value may have begun with them. Fewer are not: a message that
ends in one such letter must not wait for the next."""


class _Stream:
    """Looks for marks in a body that passes in pieces."""

    def __init__(self, marks: Iterable[bytes]) -> None:
        self._marks = tuple(marks)
        self._longest = max(map(len, self._marks), default=1)
        self._passed = b""  # the end of what has passed
        self._held = b""

    def _begun(self, data: bytes) -> int:
        """Bytes at the end with which a mark may have begun, 0 for fewer than are held back."""
        for size in range(min(len(data), self._longest - 1), _HELD_FROM - 1, -1):
            if any(mark.startswith(data[-size:]) for mark in self._marks):
                return size
        return 0

    def _pass(self, data: bytes, *, ended: bool) -> bytes:
        held = 0 if ended else min(len(data), self._begun(self._passed + data))
        out, self._held = (data[:-held], data[-held:]) if held else (data, b"")
        self._passed = (self._passed + out)[-(self._longest - 1) :] if self._longest > 1 else b""
        return out


class BodyWatch(_Stream):
    """Looks at a request's body; `on_leak` is called once, and nothing of the body passes from then on."""

    def __init__(self, credentials: Iterable[Credential], on_leak: Callable[[Leak], None]) -> None:
        self._of = {
            mark: (each, real)
            for each in credentials
            for text, real in ((each.placeholder, False), (each.value, True))
            for mark in (text.encode(), quote_plus(text).encode())
        }
        super().__init__(self._of)
        self._stopped = False
        self._on_leak = on_leak

    def __call__(self, data: bytes) -> bytes:
        """What may pass of it; b"" is the end."""
        if self._stopped:
            return b""
        piece = self._held + data
        seen = self._passed + piece
        for mark, (credential, real) in self._of.items():
            if mark in seen:
                self._stopped = True
                self._on_leak(Leak(credential, real))
                return b""
        return self._pass(piece, ended=not data)


class Mirror(_Stream):
    """Puts placeholders back into what a server answers: one that echoes a request would tell the command its value.
    Both are as long, so no framing changes."""

    def __init__(self, credentials: Iterable[Credential]) -> None:
        self._back = {each.value.encode(): each.placeholder.encode() for each in credentials}
        super().__init__(self._back)

    def header(self, text: bytes) -> bytes:
        """The same for a header's value."""
        for value, placeholder in self._back.items():
            text = text.replace(value, placeholder)
        return text

    def __call__(self, data: bytes) -> bytes:
        """What passes instead; b"" is the end."""
        piece = self._held + data
        seen = self._passed + piece
        for value, placeholder in self._back.items():
            seen = seen.replace(value, placeholder)
        return self._pass(seen[len(self._passed) :], ended=not data)
