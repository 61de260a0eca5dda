"""The methods a rule may list: upper-case tokens, exactly as a request line carries them.

A method is a token (RFC 9110 §9.1, §5.6.2) and case counts; every method in use is upper case, and the proxy takes no
other. HEAD does not come with GET: what is not listed is not allowed. CONNECT cannot be listed: it opens a tunnel, in
which no method can be seen.
"""

_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_REST = _LETTERS | frozenset("0123456789!#$%&'*+.^_`|~-")

#: IANA's "HTTP Method Registry", the methods of UPnP (M-SEARCH and its like), and two that caches and streams use.
KNOWN_METHODS = frozenset(
    {
        *("ACL", "BASELINE-CONTROL", "BIND", "CHECKIN", "CHECKOUT", "COPY", "DELETE", "GET", "HEAD", "LABEL", "LINK"),
        *("LOCK", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL", "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "OPTIONS"),
        *("ORDERPATCH", "PATCH", "POST", "PROPFIND", "PROPPATCH", "PUT", "QUERY", "REBIND", "REPORT", "SEARCH"),
        *("TRACE", "UNBIND", "UNCHECKOUT", "UNLINK", "UNLOCK", "UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL"),
        *("M-SEARCH", "NOTIFY", "SUBSCRIBE", "UNSUBSCRIBE"),
        *("PURGE", "SOURCE"),
    }
)


class MalformedMethods(ValueError):
    """The list cannot be used. The message is one plain clause; `suggestion` is the nearest list that can, or None."""

    def __init__(self, problem: str, suggestion: list[str] | None = None) -> None:
        super().__init__(problem)
        self.suggestion = suggestion


def parse_methods(listed: object) -> tuple[str, ...]:
    """The methods, each once, sorted. Raises MalformedMethods."""
    if isinstance(listed, str):
        raise MalformedMethods("methods is a list of methods, as text", _nearest(_words(listed)))
    if not isinstance(listed, list | tuple) or not all(isinstance(each, str) for each in listed):
        raise MalformedMethods("methods is a list of methods, as text")
    if not listed:
        raise MalformedMethods("methods is empty, which allows nothing; left out, it allows every method")
    for each in listed:
        if each == "CONNECT":
            raise MalformedMethods(
                "CONNECT opens a tunnel, in which no method can be seen; a rule without methods allows it"
            )
        if each == "*":
            raise MalformedMethods("methods has no star; left out, it allows every method")
        if not _is_token(each):
            raise MalformedMethods(f"{each!r} is no method: methods are words in upper case", _nearest(listed))
    return tuple(sorted(set(listed)))


def _is_token(text: str) -> bool:
    return text[:1] in _LETTERS and _REST.issuperset(text)


def _words(text: str) -> list[str]:
    import re

    return re.split(r"[\s,;|]+", text)


def is_method(text: str) -> bool:
    """Whether a rule may list it."""
    return text != "CONNECT" and _is_token(text)


def unknown_methods(methods: tuple[str, ...]) -> tuple[tuple[str, str | None], ...]:
    """Those that no registry has, each with the known one that is spelled like it: legal, but likely a slip."""
    return tuple((each, _known_like(each)) for each in methods if each not in KNOWN_METHODS)


def methods_text(methods: tuple[str, ...]) -> str:
    """For messages: `GET`, `GET and HEAD`, `GET, HEAD and POST`."""
    return methods[0] if len(methods) == 1 else f"{', '.join(methods[:-1])} and {methods[-1]}"


def _nearest(listed: list[str] | tuple[str, ...]) -> list[str] | None:
    found = []
    for each in listed:
        word = each.strip().upper()
        if not is_method(word):
            return None
        found.append(word if word in KNOWN_METHODS else _known_like(word) or word)
    return found or None


def _known_like(word: str) -> str | None:
    import difflib  # only where there is a slip to explain

    near = difflib.get_close_matches(word, sorted(KNOWN_METHODS), 1, 0.7)
    return near[0] if near else None
