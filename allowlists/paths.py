"""Path globs: which paths of a host a rule opens, judged so that no server can read another path into the same bytes.

A glob goes by segments: `*` is any run of characters inside one, `**` as a whole segment is any number of them, also
none. `/a/**` takes in `/a`, `/a/` and everything below; `/a/*` takes in `/a/b`, not `/a/`. Case counts.

Servers disagree about what some spellings mean: dot segments, encoded slashes, what a `;` cuts off, empty segments,
encodings of encodings. A path with one of these matches no glob at all, however harmless it may be meant
(RFC 3986 §3.3, §5.2.4, §6.2.2; CWE-22, CWE-174).
"""

import re
from functools import lru_cache

_ODD = re.compile(r"[^!-~]|[\\#?]")
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HIDDEN = re.compile(r"%(?:2[fF]|5[cC]|[01][0-9A-Fa-f]|7[fF]|25[0-9A-Fa-f]{2})")
_DOTS = frozenset((".", ".."))
_LONGEST = 4096


class OddPath(ValueError):
    """A path that different servers may read differently. The message is one plain clause."""


class MalformedGlob(ValueError):
    """What is no glob. The message is one plain clause; `suggestion` is the nearest glob, or None."""

    def __init__(self, problem: str, suggestion: str | None = None) -> None:
        super().__init__(problem)
        self.suggestion = suggestion


def parse_glob(text: str) -> str:
    """The glob in its one spelling, escapes decoded. Raises MalformedGlob."""
    if not text.startswith("/"):
        raise MalformedGlob(f"the path {text!r} does not begin with a slash", f"/{text}" if text else "/**")
    if "?" in text or "#" in text:
        raise MalformedGlob(f"the path {text!r} has a query or fragment; conditions on the query go into `query`")
    try:
        plain = _decoded(text)
        parts = _segments(plain)
    except OddPath as error:
        raise MalformedGlob(f"the path {text!r} would match nothing: {error}") from None
    for part in parts:
        if "**" in part and part != "**":
            raise MalformedGlob(f"in {text!r} `**` is not a whole segment", re.sub(r"\*\*+", "*", text))
    return plain


def canonical_path(target: str) -> str:
    """The path of a request target (`/a/b%20c?x=1`), escapes decoded. Raises OddPath for what must not be judged."""
    path = target.partition("?")[0]
    if len(path) > _LONGEST:
        raise OddPath(f"it is longer than {_LONGEST} characters")
    if _ODD.search(path) is not None:
        raise OddPath("it has characters that must not stand in a path")
    plain = _decoded(path)
    _segments(plain)
    return plain


def matches(glob: str, path: str) -> bool:
    """Whether a canonical path is one of the glob's."""
    return _compiled(glob).fullmatch(path) is not None


def literal(path: str) -> str | None:
    """A glob for this canonical path alone; None where it has none."""
    return None if "*" in path else path


def _decoded(path: str) -> str:
    if not path.startswith("/"):
        raise OddPath("it does not begin with a slash")
    if "%" not in path:
        return path
    if _ESCAPE.search(path) is not None:
        raise OddPath("it has a broken percent escape")
    if _HIDDEN.search(path) is not None:
        raise OddPath("it has an encoded slash, backslash, control character or percent escape")
    from urllib.parse import unquote_to_bytes  # only for paths that are encoded

    try:
        return unquote_to_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise OddPath("its escapes are not UTF-8") from None


def _segments(path: str) -> list[str]:
    if "\\" in path:
        raise OddPath("it has a backslash")
    parts = path[1:].split("/")
    for number, part in enumerate(parts):
        if not part and number < len(parts) - 1:
            raise OddPath("it has an empty segment")
        if not _DOTS.isdisjoint(part.split(";")):  # `..;x` is `..` to servers that cut parameters off
            raise OddPath("it has a dot segment")
    return parts


@lru_cache(512)
def _compiled(glob: str) -> re.Pattern[str]:
    out = []
    for part in glob[1:].split("/"):
        if part == "**":
            out.append("(?:/[^/]*)*")
        elif part == "*":
            out.append("/[^/]+")
        else:
            out.append("/" + "[^/]*".join(map(re.escape, part.split("*"))))
    return re.compile("".join(out), re.DOTALL)
