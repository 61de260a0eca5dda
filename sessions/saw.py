"""Where a value was visible in a session, asked without the value being stored anywhere.

Variables stand in the log as keyed fingerprints (`environment.py`): the value's own is computed and compared. Texts
(commands, outputs with their blobs, messages, requests) are searched for the value itself, and as it looks in a URL
and in base64.
"""

import base64
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, quote_plus

from doorward.named_tuple import NamedTuple
from doorward.sessions.blobs import blob_bytes
from doorward.sessions.damage import Damage
from doorward.sessions.environment import fingerprint, key_id
from doorward.sessions.home import Home, StoreError
from doorward.sessions.line import Line

_WHERE = {"exec": "command", "observation": "output", "verdict": "command", "response_item": "message"}


class Sighting(NamedTuple):
    """One place."""

    turn: int | None
    ordinal: int | None
    """Of the record."""
    where: str
    """`environment`, `output`, `command`, `message`, `network`, …"""
    what: str
    """One phrase: which variable, which part of the record."""
    how: str
    """`fingerprint`, `text`, `percent-encoded`, `base64`."""


class Search(NamedTuple):
    """What was found, and what could not be looked at, one sentence each."""

    sightings: tuple[Sighting, ...]
    limits: tuple[str, ...]


def saw(home: Home, lines: Iterable[Line | Damage], value: bytes, key: bytes) -> Search:
    """Looks through the records. `key` is the home's fingerprint key. An empty value is nowhere."""
    looking = _Looking(home, value, key)
    if value:
        for line in lines:
            looking.at(line)
    return Search(tuple(looking.sightings), tuple(dict.fromkeys(looking.limits)))


class _Looking:
    def __init__(self, home: Home, value: bytes, key: bytes) -> None:
        self._home = home
        self._value = value
        self._fingerprint = fingerprint(value, key)
        self._key_id = key_id(key)
        self._forms = _forms(value)
        self.sightings: list[Sighting] = []
        self.limits: list[str] = []

    def at(self, line: Line | Damage) -> None:
        """One more record."""
        if isinstance(line, Damage):
            self.limits.append(line.sentence)
            return
        if not line.whole:
            self.limits.append(f"record {line.ordinal} is too long to be looked through")
            return
        payload: Any = line.payload
        other_key = line.type == "exec" and payload.get("fingerprint_key") not in (None, self._key_id)
        if other_key:
            self.limits.append(
                f"turn {line.turn}: its fingerprints were made with another key ({payload.get('fingerprint_key')}), "
                "so its variables cannot be compared"
            )
        for path, found in _walk(payload, ""):
            if isinstance(found, dict):
                if not other_key and found.get("fingerprint") == self._fingerprint:
                    where = "environment" if line.type == "exec" else "request" if "request" in path else line.type
                    self._seen(line, where, f"{found.get('name')} held exactly this", "fingerprint")
            elif _is_theirs(line.type, path) and (how := self._in(found)) is not None:
                self._seen(line, *_place(line, path), how)
        output = payload.get("output")
        if line.type == "observation" and isinstance(output, dict) and isinstance(output.get("blob"), dict):
            self._blob(line, output["blob"])

    def _seen(self, line: Line, where: str, what: str, how: str) -> None:
        sighting = Sighting(line.turn, line.ordinal, where, what, how)
        if sighting not in self.sightings:
            self.sightings.append(sighting)

    def _in(self, text: str) -> str | None:
        data = text.encode("utf-8", "surrogateescape") if not text.isascii() else text.encode("ascii")
        return next((how for how, form in self._forms if form in data), None)

    def _blob(self, line: Line, blob: dict[str, Any]) -> None:
        overlap = max(len(form) for _, form in self._forms) - 1
        before = b""
        try:
            for data in blob_bytes(self._home, blob):
                data = before + data
                for how, form in self._forms:
                    if form in data:
                        self._seen(line, "output", "what the command printed", how)
                before = data[-overlap:] if overlap else b""
        except StoreError as error:
            self.limits.append(f"turn {line.turn}: the whole output cannot be looked through: {error}")


_THEIRS = {"verdict": ("action",), "exec": ("argv", "cwd", "environment"), "observation": ("output",)}
_OURS = frozenset(
    ("chain", "fingerprint", "fingerprint_key", "policy_digest", "sealed_environment", "sha256", "turn_id")
)


def _is_theirs(type: str, path: str) -> bool:
    """Whether a text came from outside: digests and words of doorward's own say nothing about a value."""
    head, _, rest = path.partition(".")
    return not _OURS & {head, rest.rpartition(".")[2]} and head in _THEIRS.get(type, (head,))


def _place(line: Line, path: str) -> tuple[str, str]:
    if line.type == "exec" and path.startswith("environment"):
        return "environment", "a variable that stands in plain text"
    if line.type == "observation":
        return "output", "what the command printed"
    where = _WHERE.get(line.type, line.type)
    return where, f"{path or 'text'} of the {line.type} record"


def _forms(value: bytes) -> list[tuple[str, bytes]]:
    forms = [("text", value)]
    for how, form in (
        ("percent-encoded", quote(value, safe="").encode()),
        ("percent-encoded", quote_plus(value).encode()),
        # whole groups of three bytes look the same wherever the value stands alone or first
        ("base64", base64.b64encode(value)[: len(value) // 3 * 4]),
        ("base64", base64.urlsafe_b64encode(value)[: len(value) // 3 * 4]),
    ):
        if len(form) >= 8 and all(form != known for _, known in forms):
            forms.append((how, form))
    return forms


def _walk(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every object and every text in a payload, with its path."""
    ahead = [(path, value)]
    while ahead:
        path, value = ahead.pop()
        if isinstance(value, dict):
            yield path, value
            ahead += [(f"{path}.{name}" if path else str(name), each) for name, each in value.items()]
        elif isinstance(value, list):
            ahead += [(path, each) for each in value]
        elif isinstance(value, str):
            yield path, value
