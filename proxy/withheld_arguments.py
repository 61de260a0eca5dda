"""Takes what looks like a credential out of a command line, so that records can name a process by its arguments.

By the name of an option and by the shape of a value; what is not sure to be harmless is withheld. The words are those
of variables that are kept out of a sandbox.
"""

from __future__ import annotations

import re

from doorward.proxy.plain_arguments import MOST_TEXT, MOST_WORDS, SHORT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

WITHHELD: Final = "<withheld>"

# At the end of a name: the long ones whatever stands before them (PGPASSWORD), the short ones as words of their own
_WORDS: Final = (
    r"(?:[a-z0-9_.-]*?(?:token|secret|passw(?:or)?d|passphrase|credentials?|apikey|api[-_]key|(?:access|private|secret)"
    r"[-_]?key|authorization|oauth2?-bearer)|(?:[a-z0-9]+[-_.])*(?:pass|pwd|auth|cookie|bearer|pat|dsn|key|sig"
    r"|signature))s?"
)
_OPTION: Final = re.compile(rf"--?{_WORDS}", re.IGNORECASE)
_ASSIGNED: Final = re.compile(rf"((?:--?|-D)?{_WORDS}[=:])(.+)", re.IGNORECASE | re.DOTALL)
_PLAIN_HEADER: Final = re.compile(r"(?:accept|content|user-agent|host|range|if|cache)[a-z-]*\s*:", re.IGNORECASE)
_NUMBER: Final = re.compile(r"[0-9:,.-]*")
_USER_INFO: Final = re.compile(r"(?<=://)[^/@\s]*@")
_IN_QUERY: Final = re.compile(rf"([?&;]{_WORDS}=)[^&;#\s]+", re.IGNORECASE)
_SHAPES: Final = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|sk-[\w-]{16,}|xox[abeprs]-[\w-]{10,}"
    r"|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{30,}|A[KS]IA[A-Z0-9]{16}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]*)?"
    r"|(?:Bearer|Basic|Digest|Negotiate)\s+\S+)"
)


def without_credentials(argv: Sequence[str]) -> list[str]:
    """The arguments, each that looks like a credential replaced or its part withheld; cut to a bounded length."""
    shown: list[str] = []
    room = MOST_TEXT
    after: str | None = None
    for place, word in enumerate(argv):
        if place >= MOST_WORDS or room <= 0:
            shown.append("…")
            break
        text = word if place == 0 else _value_of(after, word) if after is not None else _shown(word)
        after = word if place and after is None and (_OPTION.fullmatch(word) or word in SHORT) else None
        if len(text) > room:
            text = text[:room] + "…"
        room -= len(text)
        shown.append(text)
    return shown


def _value_of(option: str, word: str) -> str:
    """What follows an option that may carry a credential: a port or a plain header is none."""
    if option in ("-p", "-P", "-a", "-b", "-u") and _NUMBER.fullmatch(word):
        return word
    if option in ("-H", "--header") and _PLAIN_HEADER.match(word):
        return _shown(word)
    if word.startswith("-") and not _OPTION.fullmatch(option):
        return _shown(word)
    return WITHHELD


def _shown(word: str) -> str:
    assigned = _ASSIGNED.fullmatch(word)
    if assigned is not None:
        return assigned[1] + WITHHELD
    if "://" in word:
        word = _USER_INFO.sub(f"{WITHHELD}@", word)
        word = _IN_QUERY.sub(rf"\1{WITHHELD}", word)
    return _SHAPES.sub(WITHHELD, word)
