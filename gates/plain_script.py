"""The one command that a shell's script is, where that can be seen at a glance: words and quoted words, nothing else.

For approvals, which are exact: `bash -lc 'npm run test'` and `npm run test` are one action. What a larger script does
is not for this file to say.
"""

import re
from collections.abc import Sequence
from typing import Final

from doorward.gates.known_commands import SHELLS

_BARE: Final = "[A-Za-z0-9_@%+=:,./-]"
_WORD: Final = rf"(?:(?!=){_BARE}+(?!{_BARE})|'[^'\n]*'|\"[^\"\\$`!\n]*\")+"
"""Characters that mean themselves to every shell, and text between quotes in which nothing is expanded (POSIX shell
command language, 2.2). Bare characters are taken to the last: a word could else be cut in as many ways as it has
letters, and a script that does not match would be tried in all of them. (Possessive quantifiers say the same, but not
to every Python 3.11.)"""

_SCRIPT: Final = re.compile(rf"[ \t]*{_WORD}(?:[ \t]+{_WORD})*[ \t]*\n?")
_WORDS: Final = re.compile(_WORD)
_OPTIONS: Final = frozenset({"-c", "-lc", "-cl"})
_NOT_COMMANDS: Final = frozenset(
    (
        *("case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select"),
        *("then", "time", "until", "while", "alias", "builtin", "command", "eval", "exec", "source", "trap", "."),
    )
)
"""Words that make a script more than the command after them."""


def unwrapped(argv: Sequence[str]) -> tuple[str, ...]:
    """The command in `SHELL -c SCRIPT` or `SHELL -lc SCRIPT` if SCRIPT is one plain command, else `argv` itself."""
    if len(argv) != 3 or argv[1] not in _OPTIONS or argv[0].rpartition("/")[2] not in SHELLS:
        return tuple(argv)
    script = argv[2]
    # what begins like an option is one: the script would be the word after it (POSIX sh, OPTIONS)
    if script[:1] in ("-", "+") or not _SCRIPT.fullmatch(script):
        return tuple(argv)
    words = tuple(re.sub(r"'([^']*)'|\"([^\"]*)\"", r"\1\2", word) for word in _WORDS.findall(script))
    if words[0] in _NOT_COMMANDS or "=" in words[0] or not words[0]:
        return tuple(argv)
    return unwrapped(words)
