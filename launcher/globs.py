"""Path patterns, translated to a regular expression (`matches` looks them up in a tree).

`*` and `?` stay within a name, `**` crosses directories, `[...]` is a set (`!` negates). A pattern without a
slash matches at any depth, as in .gitignore. Links are matched by their own name and never followed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass

# How the expression of `**/…` begins.
ANYWHERE = "(?s:(?:.+/)?"
_MAGIC = frozenset("*?[")


def is_glob(text: str) -> bool:
    """Whether `text` has a pattern character."""
    return not _MAGIC.isdisjoint(text)


def split_glob(text: str) -> tuple[str, str]:
    """The fixed directory in front of the first pattern character, and the pattern below it.

    `src/a/**/x.key` is `("src/a", "**/x.key")`. A pattern without a slash gets `**/` in front. A pattern
    that is `**` alone means the directory itself, and comes back as an empty pattern.
    """
    fixed: list[str] = []
    parts = text.split("/")
    while parts and not is_glob(parts[0]):
        fixed.append(parts.pop(0))
    if parts == ["**"]:
        parts = []
    elif len(parts) == 1 and not fixed:
        parts.insert(0, "**")
    base = "/".join(fixed)
    return (base or "/" if text.startswith("/") else base or "."), "/".join(parts)


def translate(pattern: str) -> str:
    """The regular expression (for `fullmatch` on a path relative to the base) that `pattern` means."""
    out: list[str] = []
    parts = pattern.split("/")
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part == "**":
            out.append(".+" if last else "(?:.+/)?")
            continue
        out.append(_translate_name(part))
        if not last:
            out.append("/")
    return "(?s:" + "".join(out) + ")"


def is_name_anywhere(expression: str) -> bool:
    """Whether an expression made by `translate` is that of `**/NAME`, which looks at a name alone."""
    if not expression.startswith(ANYWHERE):
        return False
    # the slashes of what a name part may not match are none of the pattern's own
    return "/" not in expression[len(ANYWHERE) :].replace("[^/]", "").replace("(?!/)", "").replace(".+", "/")


def _translate_name(part: str) -> str:
    import re  # not needed by most runs

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
            # a closing bracket right after the opening (or the negation) belongs to the set
            end = part.find("]", at + 2 if part[at : at + 1] in ("!", "^") else at + 1)
            if end < 0:
                out.append(re.escape(letter))
                continue
            body = part[at:end].replace("\\", r"\\").replace("[", r"\[")
            at = end + 1
            negated = body[:1] in ("!", "^")
            body = body[1:] if negated else body
            if body.startswith("]"):
                body = "\\" + body
            out.append(f"(?!/)[{'^' if negated else ''}{body}]")
        else:
            out.append(re.escape(letter))
    return "".join(out)
