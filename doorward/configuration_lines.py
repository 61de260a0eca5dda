"""On which line of a TOML text each key and each array entry stands; tomllib does not tell.

The text has been read by tomllib before, so this follows the grammar (toml.io/en/v1.0.0) without checking it.
"""

import re
from typing import Final

Path = tuple[str | int, ...]

_BLANK: Final = re.compile(r"[ \t]*")
_GAP: Final = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_STRING: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:\\.|[^"\\\n])*"' r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:[^,\]}\s#]*|[^,\]}\s#]+")


def lines_of(text: str) -> dict[Path, int]:
    """Line numbers, from 1, by path: keys as text, array entries by index, `("network", "allow", 0)`.

    `text` must be TOML that tomllib accepts, with LF or CRLF line ends.
    """
    scanner = _Scanner(text.replace("\r\n", "\n"))
    scanner.document()
    return scanner.lines


class _Scanner:
    def __init__(self, text: str) -> None:
        self.lines: dict[Path, int] = {}
        self._text = text
        self._at = 0
        self._counted = 0
        self._line = 1
        self._tables: dict[Path, int] = {}  # how many [[tables]] of an array were seen

    def document(self) -> None:
        table: Path = ()
        while True:
            self._skip(_GAP)
            if self._at >= len(self._text):
                return
            if self._text.startswith("[[", self._at):
                self._at += 2
                keys = self._keys()
                self._at += 2
                table = (*self._resolved(keys[:-1]), keys[-1])
                count = self._tables[table] = self._tables.get(table, 0) + 1
                table = (*table, count - 1)
                self._note(table)
            elif self._text[self._at] == "[":
                self._at += 1
                keys = self._keys()
                self._at += 1
                table = self._resolved(keys)
                self._note(table)
            else:
                self._pair(table)

    def _resolved(self, keys: list[str]) -> Path:
        """A header's path: a name that stands for an array of tables means its last one."""
        path: Path = ()
        for key in keys:
            path = (*path, key)
            if path in self._tables:
                path = (*path, self._tables[path] - 1)
        return path

    def _pair(self, table: Path) -> None:
        line = self._here()
        path = (*table, *self._keys())
        for length in range(len(table) + 1, len(path) + 1):
            self.lines.setdefault(path[:length], line)
        self._at += 1  # the equals sign
        self._skip(_BLANK)
        self._value(path)

    def _keys(self) -> list[str]:
        """A dotted key; leaves off behind it and the blanks after it."""
        keys: list[str] = []
        while True:
            self._skip(_BLANK)
            if self._text[self._at] in "\"'":
                quoted = self._take(_STRING)
                keys.append(_unquoted(quoted))
            else:
                keys.append(self._take(_BARE))
            self._skip(_BLANK)
            if self._text[self._at] != ".":
                return keys
            self._at += 1

    def _value(self, path: Path) -> None:
        first = self._text[self._at]
        if first in "\"'":
            self._take(_STRING)
        elif first == "[":
            self._at += 1
            index = 0
            while self._more("]"):
                self._note((*path, index))
                self._value((*path, index))
                index += 1
        elif first == "{":
            self._at += 1
            while self._more("}"):
                self._pair(path)
        else:
            self._take(_SCALAR)

    def _more(self, end: str) -> bool:
        """Step over blanks, comments and a comma; False once the closing bracket was taken."""
        self._skip(_GAP)
        if self._text[self._at] == ",":
            self._at += 1
            self._skip(_GAP)
        if self._text[self._at] == end:
            self._at += 1
            return False
        return True

    def _note(self, path: Path) -> None:
        line = self._here()
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], line)

    def _here(self) -> int:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def _skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self._text, self._at)
        assert match is not None
        self._at = match.end()

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        return match[0]


def _unquoted(key: str) -> str:
    if key.startswith("'") or "\\" not in key:
        return key[1:-1]
    import tomllib  # for the few keys with escapes

    value = tomllib.loads(f"key = {key}")["key"]
    assert isinstance(value, str)
    return value
