"""Paths and globs as Seatbelt matches them: both spellings of `/private`, every letter case, no look-ahead. Pure.

The kernel compares a filter with the name it has for a file itself: links resolved, letters as stored on the disk.
So what is refused is written as a regular expression for every case of its letters (a Mac's disk takes `.BASHRC`
for `.bashrc`) and for both Unicode forms, and what is allowed as it is.
"""

import unicodedata

from doorward.launcher.globs import is_glob
from doorward.launcher.interface import UnenforceableRule

# macOS keeps these behind links: /tmp is /private/tmp (hier(7)).
_BEHIND_LINKS = ("tmp", "var", "etc")
# <sys/syslimits.h> of macOS, less the terminating NUL.
_LONGEST_PATH = 1023
_SPECIAL = frozenset(r"\^$.|?*+()[]{}")


def spellings(path: str) -> tuple[str, ...]:
    """`path` (absolute) with and without `/private`, and in both Unicode forms; the given one first.

    Raises UnenforceableRule for a path that no file can have there.
    """
    check_path(path)
    found = {path: None}
    for text in (path, *forms(path)):
        found[text] = None
        top = text.split("/", 3)
        if text.startswith("/private/") and top[2] in _BEHIND_LINKS:
            found[text.removeprefix("/private")] = None
        elif top[1] in _BEHIND_LINKS:
            found[f"/private{text}"] = None
    return tuple(found)


def check_path(path: str) -> None:
    """Raises UnenforceableRule for a NUL byte or more than the system takes."""
    if "\0" in path:
        raise UnenforceableRule(path.replace("\0", "\\0"), "a path cannot hold a NUL byte")
    if len(path.encode("utf-8", "surrogateescape")) > _LONGEST_PATH:
        raise UnenforceableRule(f"{path[:60]}…", f"a path on macOS has at most {_LONGEST_PATH} bytes")


def forms(text: str) -> tuple[str, ...]:
    """The composed and the decomposed form, where they differ from `text`."""
    if text.isascii():
        return ()
    both = (unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text))
    return tuple(dict.fromkeys(form for form in both if form != text))


def refused_below(path: str) -> tuple[str, ...]:
    """Regular expressions for `path` and everything below, in whatever case: one for each Unicode form."""
    check_path(path)
    return tuple(f"^{_anchored(form)}(/|$)" for form in (path, *forms(path)))


def glob(base: str, pattern: str, *, any_case: bool) -> str:
    """The regular expression for what `pattern` (see `globs.split_glob`) matches below `base`, and all below that."""
    check_path(f"{base}/{pattern}")
    return f"^{_base(base, any_case)}{_parts(pattern, any_case)}(/|$)"


def glob_parents(base: str, pattern: str) -> tuple[str, ...]:
    """Regular expressions for the directories that a match must keep its name to stay one.

    Below `**` a directory of any name is as good as another, so those are not among them.
    """
    parts = pattern.split("/")
    found = []
    for length in range(1, len(parts)):
        if parts[length - 1] != "**" and not (parts[length - 1] == "*" and parts[:length].count("**")):
            found.append(f"^{_base(base, True)}{_parts('/'.join(parts[:length]), True)}$")
    return tuple(found)


def _base(base: str, any_case: bool) -> str:
    return "/" if base == "/" else f"{_anchored(base, any_case)}/"


def _anchored(path: str, any_case: bool = True) -> str:
    """`path` as an expression that takes both spellings of /private."""
    plain = path.removeprefix("/private") if path.startswith("/private/") else path
    if plain.split("/", 2)[1] in _BEHIND_LINKS:
        return f"(/private)?{quote(plain, any_case)}"
    return quote(path, any_case)


def quote(text: str, any_case: bool = False) -> str:
    """`text` as an expression that matches it and nothing else, or it in whatever case."""
    out = []
    for letter in text:
        other = letter.swapcase() if any_case else letter
        if other == letter or len(other) != 1:
            out.append(f"\\{letter}" if letter in _SPECIAL else letter)
        elif letter.isascii() and other.isascii():
            out.append(f"[{letter}{other}]")
        else:
            out.append(f"({letter}|{other})")  # several bytes each, which a set would take apart
    return "".join(out)


def _parts(pattern: str, any_case: bool) -> str:
    out: list[str] = []
    parts = pattern.split("/")
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part == "**":
            out.append("[^/]+(/[^/]+)*" if last else "([^/]+/)*")
            continue
        out.append(_name(part, pattern, any_case) if is_glob(part) else quote(part, any_case))
        if not last:
            out.append("/")
    return "".join(out)


def _name(part: str, pattern: str, any_case: bool) -> str:
    out: list[str] = []
    at = 0
    while at < len(part):
        letter = part[at]
        at += 1
        if letter == "*":
            if not out or out[-1] != "[^/]*":
                out.append("[^/]*")
        elif letter == "?":
            out.append("[^/]")
        elif letter == "[":
            end = part.find("]", at + 2 if part[at : at + 1] in ("!", "^") else at + 1)
            if end < 0:
                out.append("\\[")
                continue
            out.append(_set(part[at:end], pattern, any_case))
            at = end + 1
        else:
            out.append(quote(letter, any_case))
    return "".join(out)


def _set(body: str, pattern: str, any_case: bool) -> str:
    """A set as alternatives, since how a bracket is quoted inside brackets differs between dialects."""
    negated = body[:1] in ("!", "^")
    members = _members(body[1:] if negated else body, pattern)
    if any_case:
        members |= {other for letter in members if len(other := letter.swapcase()) == 1}
    members -= {"/"}
    if not negated:
        return "(" + "|".join(quote(letter) for letter in sorted(members)) + ")"
    if any(not letter.isascii() or letter in "\\]^-[" for letter in members):
        raise UnenforceableRule(pattern, "a negated set with these characters cannot be said to Seatbelt")
    return "[^/" + "".join(sorted(members)) + "]"


def _members(body: str, pattern: str) -> set[str]:
    members: set[str] = set()
    at = 0
    while at < len(body):
        first = body[at]
        if body[at + 1 : at + 2] == "-" and at + 2 < len(body):
            last = body[at + 2]
            if not ord(first) <= ord(last) < ord(first) + 256:
                raise UnenforceableRule(pattern, f"{first}-{last} is no range that can be matched")
            members.update(map(chr, range(ord(first), ord(last) + 1)))
            at += 3
        else:
            members.add(first)
            at += 1
    return members
