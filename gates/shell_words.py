"""The words of a script as the shell will see them: their text where it is certain, else how many are not known."""

from __future__ import annotations

from collections.abc import Mapping

from doorward.gates.command_part import Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from tree_sitter import Node

_GLOB: Final = frozenset("*?[")
_ZSH_GLOB: Final = frozenset("^#(")
_SPACES: Final = frozenset(" \t\n\\")
_ODD: Final = frozenset("`()<>|&;\"' \t\n")
"""What ends a word where it is not quoted (POSIX.1-2024, 2.2)."""
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,")
"""Characters of a variable's value that no shell splits or expands."""
_ANSI_C: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v",
                  "\\": "\\", "'": "'", '"': '"', "?": "?"}  # fmt: skip
"""Escapes of `$'…'` (bash(1), QUOTING)."""


class Words:
    """`variables` are those with one certain value: name to the byte from which on it holds, and the value's node;
    `home` is HOME, "" where it is not known."""

    def __init__(self, shell: str, variables: Mapping[bytes, tuple[int, Node]], home: str = "") -> None:
        self._zsh = shell == "zsh"
        self._variables = variables
        self._home = home
        self.odd = False
        """Set once a word without quotes holds what no such word can: the grammar has misread something."""
        self._filling: set[bytes] = set()

    def of(self, node: Node, *, quoted: bool = False) -> Word:
        """The word that `node` is: its text, None for one that is not known, `...` for any number."""
        kind = node.type
        text = (node.text or b"").decode("utf-8", "surrogateescape")
        if kind == "word" and text.isalnum() and text.isascii():
            return text
        if kind in ("word", "number", "variable_name", "command_name"):
            if node.named_child_count and kind != "command_name":
                return ...
            return self._bare(text)
        if kind == "raw_string":
            return text[1:-1]
        if kind == "ansi_c_string":
            return _ansi_c(text[2:-1])
        if kind == "string":
            return self._string(node)
        if kind == "concatenation":
            return self._concatenated(node)
        if kind in ("simple_expansion", "expansion"):
            if kind == "simple_expansion" and not _SPACES.isdisjoint(text):
                self.odd = True  # `$ #`: a dollar by itself
            value = self._variable(node, text)
            if value is None:
                return None if quoted and not _is_many(text) else ...
            return value if quoted or (value and _PLAIN.issuperset(value)) else ...
        if kind == "arithmetic_expansion":
            return None
        if kind == "process_substitution":
            return None
        if kind == "command_substitution":
            return None if quoted else ...
        if kind in ("string_content", "heredoc_content"):
            return _double_quoted(text)
        if kind == "test_operator":
            return text
        return None if quoted else ...

    def _bare(self, text: str, *, begins: bool = True) -> Word:
        """A word without quotes, or a piece of one: escapes removed, `~` and anything that expands left unknown."""
        if begins and text.startswith("#"):
            self.odd = True  # where a word begins it begins a comment
        if not _ODD.isdisjoint(text):
            self.odd = self.odd or any(
                char in _ODD and (not place or text[place - 1] != "\\") for place, char in enumerate(text)
            )
        if "\\" not in text:
            if not _GLOB.isdisjoint(text) and text != "[":
                return ...
            if begins and self._home and (text == "~" or text.startswith("~/")):
                return self._home + text[1:]
            if (begins and text.startswith("~")) or ":~" in text or "=~" in text:
                return None
            if "{" in text and ("," in text or ".." in text):
                return ...
            if self._zsh and (text.startswith("=") or not _ZSH_GLOB.isdisjoint(text)):
                return ...
            return text
        kept, escaped = [], False
        for char in text:
            if escaped:
                kept.append("" if char == "\n" else char)
                escaped = False
            elif char == "\\":
                escaped = True
            elif char in _GLOB or char == "{" or (self._zsh and char in "^#(="):
                return ...
            elif char == "~" and not kept and begins:
                return None
            else:
                kept.append(char)
        return "".join(kept)

    def _string(self, node: Node) -> Word:
        """`"…"`: one word, whatever is in it but `$@` and the like."""
        pieces: list[str] = []
        unknown = False
        end = node.start_byte + 1
        source = node.text or b""
        for child in node.named_children:
            gap = source[end - node.start_byte : child.start_byte - node.start_byte]
            pieces.append(_double_quoted(gap.decode("utf-8", "surrogateescape")))
            end = child.end_byte
            word = self.of(child, quoted=True)
            if word is ...:
                return ...
            if word is None:
                unknown = True
            else:
                pieces.append(word)
        pieces.append(_double_quoted(source[end - node.start_byte : -1].decode("utf-8", "surrogateescape")))
        return None if unknown else "".join(pieces)

    def _concatenated(self, node: Node) -> Word:
        pieces: list[str] = []
        unknown = False
        brace = node.text or b""
        if (
            b"{" in brace
            and (b"," in brace or b".." in brace)
            and any(child.type == "word" and b"{" in (child.text or b"") for child in node.children)
        ):
            return ...
        end = node.start_byte
        for child in node.children:
            if child.start_byte != end:
                return ...
            begins, end = child.start_byte == node.start_byte, child.end_byte
            if child.type == "word" and not begins and not child.named_child_count:
                word = self._bare((child.text or b"").decode("utf-8", "surrogateescape"), begins=False)
            else:
                word = self.of(child) if child.is_named else self._bare((child.text or b"").decode("utf-8", "replace"))
            if word is ...:
                return ...
            if word is None:
                unknown = True
            else:
                pieces.append(word)
        return None if unknown else "".join(pieces)

    def _variable(self, node: Node, text: str) -> str | None:
        """The value of `$x` or `${x}` where it is certain."""
        children = node.named_children
        if len(children) != 1 or children[0].type != "variable_name":
            return None
        name = children[0].text or b""
        if text.strip("${}").encode("utf-8", "surrogateescape") != name or name in self._filling:
            return None
        if name == b"HOME" and self._home:
            return self._home
        known = self._variables.get(name)
        if known is None or node.start_byte < known[0]:
            return None
        self._filling.add(name)
        try:
            value = self.of(known[1], quoted=True)
        finally:
            self._filling.discard(name)
        return value if isinstance(value, str) else None


def _is_many(text: str) -> bool:
    """True for what is several words even in double quotes: `$@`, `${a[@]}`, `${@:2}`, `${!a@}`."""
    return "@" in text


def _double_quoted(text: str) -> str:
    """`text` between double quotes with its escapes removed (POSIX.1-2024, 2.2.3)."""
    if "\\" not in text:
        return text
    kept, place = [], 0
    while place < len(text):
        char = text[place]
        if char == "\\" and place + 1 < len(text) and text[place + 1] in '$`"\\\n':
            place += 1
            if text[place] != "\n":
                kept.append(text[place])
        else:
            kept.append(char)
        place += 1
    return "".join(kept)


def _ansi_c(text: str) -> str | None:
    """The text of `$'…'`; None where an escape is not of the plain kinds."""
    kept: list[str] = []
    place = 0
    while place < len(text):
        char = text[place]
        place += 1
        if char != "\\":
            kept.append(char)
            continue
        escape = text[place : place + 1]
        place += 1
        if escape in _ANSI_C:
            kept.append(_ANSI_C[escape])
            continue
        base, most = (16, 2) if escape == "x" else (16, 4) if escape == "u" else (8, 3)
        if escape in "xu" and escape:
            digits = _digits(text[place : place + most], "0123456789abcdefABCDEF")
        elif escape and escape in "01234567":
            place -= 1
            digits = _digits(text[place : place + most], "01234567")
        else:
            return None
        if not digits or int(digits, base) == 0 or (escape != "u" and int(digits, base) > 127):
            return None
        place += len(digits)
        kept.append(chr(int(digits, base)))
    return "".join(kept)


def _digits(text: str, allowed: str) -> str:
    end = 0
    while end < len(text) and text[end] in allowed:
        end += 1
    return text[:end]
