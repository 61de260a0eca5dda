"""Is a value what its key wants: the check of each kind, with a sentence that says what would be right."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from doorward.configuration_schema import Key, Kind

Complain = Callable[[tuple[str | int, ...], str, str | None], None]
"""Called with where in the value (empty: the value itself), what is wrong, and a suggestion."""

_MOST: Final = 10**9
_HOOK_SECONDS: Final = 30.0
_FEWEST_FILES: Final = 16
_UPSTREAM: Final = r"https?://[^\s/?#]+/?"
_VARIABLE: Final = r"[^=\0]+"
_DOMAIN: Final = r"[^\s/:@]+"


def checked(key: Key, value: object, env: Mapping[str, str], complain: Complain) -> object:
    """`value` as it is kept: arrays as a tuple of what is right in them. Everything wrong goes to `complain`, and
    where the whole value is wrong None comes back."""
    if key.kind in _ARRAYS:
        return _array(key, value, env, complain)
    if key.kind is Kind.ADDRESSES:
        return _addresses(value, complain)
    if key.kind in _MEASURES:
        return _measure(key, value, complain)
    wrong = _SCALARS[key.kind](key, value)
    if wrong is None:
        if key.kind is Kind.COMMAND:
            assert isinstance(value, list | tuple)
            return tuple(value)
        return float(value) if key.kind is Kind.SECONDS else value  # type: ignore[arg-type]
    complain((), *wrong)
    return None


Wrong = tuple[str, str | None] | None


def _choice(key: Key, value: object) -> Wrong:
    if isinstance(value, str) and value in key.choices:
        return None
    from doorward.configuration_error import nearest  # only for the error text

    near = nearest(value, key.choices) if isinstance(value, str) else None
    listed = ", ".join(f'"{choice}"' for choice in key.choices)
    return f"must be one of {listed}, not {shown(value)}", f'did you mean "{near}"?' if near else None


def _switch(key: Key, value: object) -> Wrong:
    if isinstance(value, bool):
        return None
    word = str(value).lower()
    near = {"true": "true", "on": "true", "yes": "true", "1": "true"}.get(
        word, {"false": "false", "off": "false", "no": "false", "0": "false"}.get(word)
    )
    return f"must be true or false, not {shown(value)}", f"write {near}, without quotes" if near else None


def _seconds(key: Key, value: object) -> Wrong:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= _MOST:
        return None
    return f"must be a positive number of seconds, not {shown(value)}", None


def _count(key: Key, value: object) -> Wrong:
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST:
        if key.name == "limits.files" and value < _FEWEST_FILES:
            return f"must be {_FEWEST_FILES} or more, since the sandbox itself needs as many", None
        return None
    return f"must be a positive whole number, not {shown(value)}", None


_MEASURES: Final[dict[Kind, tuple[str, dict[str, float]]]] = {
    Kind.SIZE: (
        'a size such as "512M" or "2GiB"',
        {"": 1, "B": 1} | {f"{letter}{end}": 1024**n for n, letter in enumerate("KMGT", 1) for end in ("", "B", "IB")},
    ),
    Kind.DURATION: (
        'a duration such as "90s", "5m" or "1h"',
        {"": 1, "MS": 0.001, "S": 1, "SEC": 1, "M": 60, "MIN": 60, "H": 3600, "D": 86400},
    ),
}
"""What a number with a unit is called, and how much each unit is, its letters upper case."""

_LARGEST: Final = 2**62


def _measure(key: Key, value: object, complain: Complain) -> int | float | None:
    """Bytes, or seconds."""
    what, units = _MEASURES[key.kind]
    text = value if isinstance(value, str) else f"{value}" if type(value) in (int, float) else ""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text, re.ASCII)
    unit = units.get(found[2].upper()) if found else None
    if found is None or unit is None or not 0 < (amount := float(found[1]) * unit) <= _LARGEST:
        complain((), f"must be {what}, not {shown(value)}", None)
        return None
    return int(amount) or 1 if key.kind is Kind.SIZE else amount


def _url(key: Key, value: object) -> Wrong:
    if isinstance(value, str) and re.fullmatch(_UPSTREAM, value):
        return None
    near = None
    if isinstance(value, str) and "://" not in value and re.fullmatch(_UPSTREAM, f"http://{value}"):
        near = f'write "http://{value}"'
    return f'must be a URL such as "http://proxy.corp:3128", not {shown(value)}', near


def _url_path(key: Key, value: object) -> Wrong:
    import re

    if isinstance(value, str) and re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", value):
        return None
    return f'must be a URL such as "https://api.example.com/v1", not {shown(value)}', None


def _text(key: Key, value: object) -> Wrong:
    if isinstance(value, str) and value and value.isprintable():
        return None
    return f"must be a text that is not empty, not {shown(value)}", None


def _command(key: Key, value: object) -> Wrong:
    words = value if isinstance(value, list | tuple) else ()
    if words and words[0] and all(isinstance(word, str) and "\0" not in word for word in words):
        return None
    near = f'write ["{value}"], each word a text of its own' if isinstance(value, str) and value else None
    return f'must be a command such as ["notify-me", "--now"], not {shown(value)}', near


def _one_path(key: Key, value: object) -> Wrong:
    if isinstance(value, str) and value.startswith("/") and "\0" not in value:
        return None
    return f"must be a whole path, not {shown(value)}", None


_SCALARS: Final = {
    Kind.PATH: _one_path,
    Kind.CHOICE: _choice,
    Kind.SWITCH: _switch,
    Kind.SECONDS: _seconds,
    Kind.COUNT: _count,
    Kind.URL: _url,
    Kind.URL_PATH: _url_path,
    Kind.TEXT: _text,
    Kind.COMMAND: _command,
}


def _array(key: Key, value: object, env: Mapping[str, str], complain: Complain) -> object:
    if not isinstance(value, list | tuple):
        near = f'write ["{value}"]' if isinstance(value, str) else None
        complain((), f"must be an {key.kind}, not {shown(value)}", near)
        return None
    check = _ARRAYS[key.kind]
    kept: list[object] = []
    for index, entry in enumerate(value):
        try:
            kept.append(check(key, entry, env))
        except _WrongEntry as error:
            complain((index,), error.message, error.suggestion)
            kept.append(None)  # keeps the other entries' places
    return tuple(kept)


class _WrongEntry(Exception):
    def __init__(self, message: str, suggestion: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion


def _rule(key: Key, entry: object, env: Mapping[str, str]) -> object:
    """Text or a table of plain values; what a rule may say is the allowlists' own business, which names every wrong one
    at once."""
    if isinstance(entry, str):
        return entry
    if not isinstance(entry, Mapping):
        raise _WrongEntry(f'a rule is a text such as "example.com" or a table, not {shown(entry)}')
    if "host" not in entry:
        raise _WrongEntry(f"the table {shown(entry)} names no host", 'it needs host = "NAME"')
    for name, value in entry.items():
        within = value.values() if isinstance(value, Mapping) else (value,)
        for inner in within:
            values = inner if isinstance(inner, list | tuple) else (inner,)
            if not all(isinstance(each, str | int) for each in values):
                raise _WrongEntry(f"{name} = {shown(value)} means nothing in a rule")
    return {name: _plain(value) for name, value in entry.items()}


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    return list(value) if isinstance(value, list | tuple) else value


def _path(key: Key, entry: object, env: Mapping[str, str]) -> str:
    if not isinstance(entry, str) or not entry or "\0" in entry:
        raise _WrongEntry(f"a path is a text that is not empty, not {shown(entry)}")
    if entry == "~" or entry.startswith("~/"):
        home = env.get("HOME", "")
        if not home.startswith("/"):
            raise _WrongEntry(f'"{entry}" needs the variable HOME, which is not set')
        return home.rstrip("/") + entry[1:] or "/"
    if entry.startswith("~"):
        raise _WrongEntry(f"another user's home is not looked up: {shown(entry)}", "write the whole path")
    return entry


def _name(key: Key, entry: object, env: Mapping[str, str]) -> str:
    pattern, what = (_VARIABLE, "a variable's name") if key.name == "env.pass" else (_DOMAIN, "a domain")
    if isinstance(entry, str) and re.fullmatch(pattern, entry):
        return entry
    raise _WrongEntry(f"{shown(entry)} is not {what}")


def _hook(key: Key, entry: object, env: Mapping[str, str]) -> dict[str, object]:
    if not isinstance(entry, Mapping):
        raise _WrongEntry(f'a hook is a table such as {{command = ["./check"]}}, not {shown(entry)}')
    for name in entry:
        if name not in ("command", "timeout"):
            raise _WrongEntry(f"{name} means nothing in a hook", "it has command, and timeout in seconds")
    for wrong in (_command(key, entry.get("command")), _seconds(key, entry.get("timeout", _HOOK_SECONDS))):
        if wrong is not None:
            raise _WrongEntry(*wrong)
    command, timeout = entry["command"], entry.get("timeout", _HOOK_SECONDS)
    return {"command": list(command), "timeout": float(timeout)}


def _digest(key: Key, entry: object, env: Mapping[str, str]) -> str:
    import re

    if isinstance(entry, str) and re.fullmatch(r"sha256:[0-9a-f]{64}", entry):
        return entry
    raise _WrongEntry(f"{shown(entry)} is no hash of a hook", "`doorward trust --hooks` writes them")


def _ports(key: Key, entry: object, env: Mapping[str, str]) -> object:
    from doorward.ports import MalformedPort, loopback_ports, published_port  # for few runs only

    try:
        return loopback_ports(entry) if key.name == "network.loopback" else published_port(entry)
    except MalformedPort as error:
        example = '5432 or "all"' if key.name == "network.loopback" else '8000, "8000:18000" or "auto"'
        raise _WrongEntry(f"{shown(entry)} is not right: {error}", f"write {example}") from None


_ARRAYS: Final = {
    Kind.RULES: _rule,
    Kind.PATHS: _path,
    Kind.NAMES: _name,
    Kind.HOOKS: _hook,
    Kind.DIGESTS: _digest,
    Kind.PORTS: _ports,
}


def _addresses(value: object, complain: Complain) -> dict[str, str] | None:
    if not isinstance(value, Mapping):
        complain((), f'must be a table such as {{"db.test" = "127.0.0.1"}}, not {shown(value)}', None)
        return None
    kept: dict[str, str] = {}
    for name, address in value.items():
        if isinstance(address, Mapping):
            flat = ".".join((name, *_first_path(address)))
            complain((name,), "a name with dots needs quotes", f'write "{flat}" = …')
        elif not isinstance(address, str) or not _is_address(address):
            complain((name,), f'must be an address such as "127.0.0.1" or "::1", not {shown(address)}', None)
        else:
            kept[name] = address
    return kept


def _first_path(table: Mapping[str, object]) -> Sequence[str]:
    path: list[str] = []
    node: object = table
    while isinstance(node, Mapping) and node:
        name = next(iter(node))
        path.append(name)
        node = node[name]
    return path


def _is_address(text: str) -> bool:
    from socket import AF_INET, AF_INET6, inet_pton  # only where a name is pinned

    for family in (AF_INET, AF_INET6):
        try:
            inet_pton(family, text)
        except (OSError, ValueError):
            continue
        return "%" not in text
    return False


def shown(value: object) -> str:
    """`value` as a person would write it in TOML, short, with its type where that is the mistake."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        text = f'the text "{value}"'
    elif isinstance(value, int | float):
        text = f"the number {value}"
    elif isinstance(value, Mapping):
        text = f"a table with {', '.join(map(str, value))}" if value else "an empty table"
    elif isinstance(value, list | tuple):
        text = "an array"
    else:
        text = f"the {type(value).__name__} {value}"
    return text if len(text) <= 100 else f"{text[:99]}…"
