"""The forms of records that the proxy has told (proxy/record_form.py): what is put into their holes makes records.

The proxy reads what hostile clients send, so a form is believed as little as a record: it is decoded once, with
something in each hole that no JSON but the inside of a string takes, and no key may have a hole.
"""

from __future__ import annotations

from doorward.proxy.record_form import HOLE, PLAIN, Form
from doorward.start_json import value_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from doorward.proxy_process import Told

_FILLING: Final = "\x7f"  # no escape sequence, number or word of JSON has it; a string may


class Forms:
    """Those of one proxy."""

    def __init__(self) -> None:
        # by slot: of each item the type, and its text with every second part left open
        self._forms: dict[int, list[tuple[str, list[str]]]] = {}

    def learn(self, slot: str, told: list[str]) -> None:
        """Take a form: types and payloads in turn. Raises ValueError for what is none, or not about names."""
        if not 0 <= int(slot) < Form.ROOM or not told:
            raise ValueError("no form of the proxy")
        form = []
        for kind, text in zip(told[::2], told[1::2], strict=True):
            filled = text.replace(HOLE, _FILLING)
            payload, end = value_at(filled, 0)
            if payload.__class__ is not dict or end != len(filled) or _has_open_key(payload):
                raise ValueError("no object in a form of the proxy")
            if kind not in ("network", "refusal") or payload.get("protocol") != "dns" or "turn" in payload:
                raise ValueError("a form that is not about names")
            parts = text.split(HOLE)
            form.append((kind, [part for each in parts for part in (each, "")][:-1]))
        self._forms[int(slot)] = form

    def filled(self, slot: str, strings: list[str]) -> list[Told]:
        """The items of a record. Raises ValueError for a form that was not told, and strings that do not fit it."""
        form = self._forms.get(int(slot))
        if form is None or "".join(strings).encode("ascii").translate(None, PLAIN):
            raise ValueError("no such form, or not what goes into one")
        items: list[Told] = []
        at = 0
        for kind, parts in form:
            to = at + len(parts) // 2
            parts[1::2] = strings[at:to]
            at = to
            items.append((kind, None, "".join(parts)))
        if at != len(strings):
            raise ValueError("more than goes into a form")
        return items


def _has_open_key(value: Any) -> bool:
    if value.__class__ is dict:
        return any(_FILLING in key or _has_open_key(each) for key, each in value.items())
    return value.__class__ is list and any(map(_has_open_key, value))
