"""Turns the bytes of one line into a record, or says in one sentence why they are none. Pure."""

import json
from typing import Any, NoReturn

from doorward.sessions.damage import Damage, DamageKind
from doorward.sessions.line import Line


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode


def decoded(data: bytes, *, number: int, offset: int, ended: bool = True) -> Line | Damage:
    """The record in `data` (one line without its LF).

    `ended` is False for a last line that has no LF: what cannot be read there is called torn, since a crash in the
    middle of a write leaves exactly that. Never raises, whatever the bytes are.
    """

    def damage(kind: DamageKind, detail: str) -> Damage:
        if not ended and kind is not DamageKind.NOT_A_RECORD:
            kind, detail = DamageKind.TORN, f"the file ends inside it ({detail})"
        return Damage(kind, number, offset, len(data), detail)

    try:
        value: Any = _decode(str(data, "utf-8"))
    except UnicodeDecodeError as error:
        return damage(DamageKind.NOT_UTF8, f"byte {offset + error.start} is not UTF-8")
    except json.JSONDecodeError as error:
        return damage(DamageKind.NOT_JSON, f"not JSON at character {error.pos}: {error.msg}")
    except RecursionError:
        return damage(DamageKind.TOO_DEEP, "nested too deeply to be read")
    except ValueError as error:
        # a number of thousands of digits (CPython's limit against quadratic time), NaN, Infinity
        return damage(DamageKind.NOT_JSON, str(error).partition(";")[0])
    if not isinstance(value, dict):
        return damage(DamageKind.NOT_A_RECORD, "not a JSON object")
    type, payload = value.get("type"), value.get("payload")
    if not isinstance(type, str) or not isinstance(payload, dict):
        return damage(DamageKind.NOT_A_RECORD, "a JSON object without `type` and `payload`")
    timestamp, ordinal, metadata = value.get("timestamp"), value.get("ordinal"), value.get("metadata")
    return Line(
        type,
        payload,
        timestamp if isinstance(timestamp, str) else "",
        ordinal if isinstance(ordinal, int) and not isinstance(ordinal, bool) and ordinal >= 0 else None,
        metadata if isinstance(metadata, dict) else {},
        number,
        offset,
        len(data),
    )
