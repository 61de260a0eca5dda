"""Shows a session again, turn by turn: as text in pieces, with the time that passed before each. Pure but for blobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from doorward.named_tuple import NamedTuple
from doorward.sessions.blobs import blob_bytes
from doorward.sessions.credentials import redacted
from doorward.sessions.damage import Damage
from doorward.sessions.harmless_text import harmless, harmless_line
from doorward.sessions.home import Home, StoreError
from doorward.sessions.items import command_line, turn_change
from doorward.sessions.line import Line
from doorward.sessions.timestamps import seconds

WHOLE_LIMIT = 64 << 20
"""Bytes of one output that are shown; nobody reads more, and it is in memory at once."""


class Scene(NamedTuple):
    """One thing that happened. `after_s` is the time since the one before; None where a clock does not tell."""

    after_s: float | None
    text: str


def scenes(home: Home, lines: Iterable[Line | Damage], *, turn: int | None = None) -> Iterator[Scene]:
    """The session, or one turn of it. Text cannot drive a terminal, and credentials are not in it."""
    before: float | None = None
    number: int | None = None
    for line in lines:
        if isinstance(line, Damage):
            yield Scene(None, f"! {harmless_line(line.sentence)}\n")
            continue
        if turn_change(line.type, line.payload) == "started":
            number = line.turn if line.turn is not None else (number or 0) + 1
        if turn is not None and number != turn:
            continue
        text = _shown(home, line, number)
        if not text:
            continue
        now = seconds(line.timestamp)
        passed = None if now is None or before is None else max(0.0, now - before)
        before = now if now is not None else before
        yield Scene(passed, text)


def _shown(home: Home, line: Line, number: int | None) -> str:
    payload = line.payload
    if not line.whole:
        return f"! a {harmless_line(line.type)} record was too long to load\n"
    if line.type == "verdict":
        return _verdict(payload, number)
    if line.type == "network" and payload.get("decision") == "allow":
        return f"  reached {_place(payload)}\n"
    if line.type == "refusal":
        what = payload.get("message") or payload.get("reason")
        hint = f"\n    to allow it: {_text(payload.get('hint'))}" if payload.get("hint") else ""
        return f"  REFUSED {_place(payload)}  {_text(what)}{hint}\n"
    if line.type == "observation":
        return _observation(home, payload)
    if line.type == "event_msg":
        return _event(payload, number)
    return ""


def _verdict(payload: Any, number: int | None) -> str:
    action = payload.get("action")
    argv = action.get("argv") if isinstance(action, dict) else None
    words = command_line(argv) if isinstance(argv, list) and all(isinstance(word, str) for word in argv) else ""
    said = f"{_text(payload.get('verdict'))} (gate {_text(payload.get('gate'))})"
    return f"\n[{number}] $ {_text(redacted(words))}\n  {said}\n"


def _observation(home: Home, payload: Any) -> str:
    output = payload.get("output")
    text = ""
    if isinstance(output, dict):
        text = whole_output(home, output)
        if text and not text.endswith("\n"):
            text += "\n"
    signal = f", by signal {_text(payload.get('signal'))}" if payload.get("signal") is not None else ""
    return f"{harmless(redacted(text))}  exit {_text(payload.get('exit_code'))}{signal}\n"


def whole_output(home: Home, output: dict[str, Any], limit: int = WHOLE_LIMIT) -> str:
    """A recorded output: from its blob where it is still there (so many bytes of it), else head and tail."""
    blob = output.get("blob")
    if isinstance(blob, dict):
        data = bytearray()
        try:
            for piece in blob_bytes(home, blob):
                data += piece
                if len(data) > limit:
                    break
            more = f"\n[… cut here, of {blob.get('bytes')} bytes …]\n" if len(data) > limit else ""
            return data[:limit].decode("utf-8", "surrogateescape") + more
        except StoreError:
            pass  # what the record holds is still there
    head, tail, omitted = output.get("head") or "", output.get("tail") or "", output.get("omitted")
    return f"{head}\n[… {omitted} bytes left out …]\n{tail}" if omitted else f"{head}{tail}"


def _event(payload: Any, number: int | None) -> str:
    kind, text = payload.get("type"), payload.get("message")
    if kind == "agent_message" and isinstance(text, str):
        return f"  agent: {_text(redacted(text))}\n"
    if kind == "approval_answered":
        return f"  a person answered: {_text(payload.get('answer'))}\n"
    if kind == "turn_aborted":
        return f"  turn {number} was interrupted\n"
    if kind == "item_completed":
        from doorward.sessions.turns import item_text

        said, words = item_text(payload.get("item"))
        if words:
            return f"  {'user' if said == 'user_message' else 'agent'}: {_text(redacted(words))}\n"
    return ""


def _place(record: Any) -> str:
    host, port = record.get("host"), record.get("port")
    if not isinstance(host, str):
        return _text(record.get("path") or record.get("gate") or "the command")
    return _text(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")


def _text(value: object) -> str:
    return "" if value is None else harmless_line(value if isinstance(value, str) else str(value))
