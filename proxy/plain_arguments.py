"""Tells at a glance that a command line holds nothing like a credential, as most do.

What looks for credentials (`withheld_arguments`) compiles its patterns in 2-3 ms, which a run's first connection would
wait for. Whatever those could match has one of these marks in it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final

SHORT: Final = frozenset({"-u", "-p", "-P", "-H", "-b", "-a", "--user", "--header", "--cookie", "--proxy-user"})
"""Options of clients whose value is, or may be, a credential: curl's user, header and cookie, redis-cli's password."""

MOST_WORDS: Final = 64
MOST_TEXT: Final = 4096
"""Characters of all arguments together; what is beyond is cut, and `…` says so."""

_MARKS: Final = (
    "token", "secret", "pass", "credential", "key", "auth", "pwd", "cookie", "bearer", "pat", "dsn", "sig",
    "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "sk-", "xox", "npm_", "pypi-", "akia", "asia", "aiza", "eyj",
    "basic", "digest", "negotiate", "@",
)  # fmt: skip


def nothing_to_withhold(argv: Sequence[str]) -> bool:
    """Whether all of it may be shown as it is."""
    if len(argv) > MOST_WORDS or not SHORT.isdisjoint(argv):
        return False
    text = " ".join(argv)
    if len(text) > MOST_TEXT or not text.isascii():  # case of other letters is not for here
        return False
    text = text.lower()
    return not any(mark in text for mark in _MARKS)
