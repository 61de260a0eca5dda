"""One `-c key=value`: a dotted key and a TOML value, where a bare word is taken as text."""

import re
from typing import Final

_SEGMENT: Final = re.compile(r"""\s*(?:([A-Za-z0-9_-]+)|"([^"\\]*)"|'([^']*)')\s*""")
_WHOLE: Final = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")
_STRING: Final = re.compile(r""""([^"\\\x00-\x1f\x7f]*)"|'([^'\x00-\x1f\x7f]*)'""")
_STRINGS: Final = re.compile(rf"\[\s*(?:(?:{_STRING.pattern})\s*(?:,\s*(?:{_STRING.pattern})\s*)*,?\s*)?\]")


class MalformedOverride(ValueError):
    """A `-c` that cannot be read; the text is one sentence."""


def parse_override(text: str) -> tuple[tuple[str, ...], object]:
    """The key's parts and the value. Raises MalformedOverride.

    `network.mode=off`, `network.allow=["a.test"]`, `network.hosts."db.test"=127.0.0.1`. What TOML reads as a value is
    that value; anything else is text, unless it begins like a TOML string, array or table.
    """
    parts: list[str] = []
    at = 0
    while True:
        match = _SEGMENT.match(text, at)
        if match is None:
            raise MalformedOverride("-c takes KEY=VALUE, such as -c network.mode=off")
        parts.append(match[match.lastindex or 0])
        at = match.end()
        if text[at : at + 1] != ".":
            break
        at += 1
    if text[at : at + 1] != "=":
        raise MalformedOverride("-c takes KEY=VALUE, such as -c network.mode=off")
    return tuple(parts), _value(text[at + 1 :].strip())


def _value(text: str) -> object:
    """The value; tomllib is left out where the text is plain (it costs every run that uses `-c` 10 ms)."""
    if text in ("true", "false"):
        return text == "true"
    if _WHOLE.fullmatch(text) and len(text) < 19:
        return int(text)
    if string := _STRING.fullmatch(text):
        return string[string.lastindex or 0]
    if _STRINGS.fullmatch(text):
        return [match[match.lastindex or 0] for match in _STRING.finditer(text)]
    if not text or (text[0] not in "\"'[{+-0123456789" and text not in ("inf", "nan")):
        return text  # no TOML value begins like this
    import tomllib

    try:
        document = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        if text[0] in "\"'[{":
            raise MalformedOverride(f"the value is no TOML: {error}") from None
        return text
    if len(document) > 1:
        raise MalformedOverride("the value is more than one TOML value")
    return document["value"]
