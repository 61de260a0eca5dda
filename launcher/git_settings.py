"""Keeps only the harmless settings of a git configuration that was made inside a run.

A configuration can name programs (`core.fsmonitor`, `core.sshCommand`, `alias.*`, `filter.*`, …) and read
other files (`include.path`). What is not known to be harmless is taken out; git runs well without it.
"""

import re

from doorward.named_tuple import NamedTuple

_SECTION = re.compile(r'\s*\[\s*([A-Za-z0-9-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]\s*(?:[#;].*)?')
_SETTING = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*?))?\s*")
_WORD = re.compile(r"[\w./+@:* -]*")
# no `ext::` or other helper, and nothing that could be taken for an option
_ADDRESS = re.compile(r"(?:(?:https?|ssh|git|file)://|[\w.-]+@[\w.-]+:|\.{0,2}/)[^\s\"']*")

_CORE = frozenset(
    (
        *("repositoryformatversion", "filemode", "bare", "logallrefupdates", "symlinks", "ignorecase"),
        *("precomposeunicode", "autocrlf", "eol", "safecrlf", "sharedrepository", "quotepath", "abbrev"),
    )
)
_HARMLESS: dict[str, frozenset[str]] = {
    "core": _CORE,
    "user": frozenset(("name", "email")),
    "init": frozenset(("defaultbranch",)),
    "branch": frozenset(("remote", "merge", "rebase", "autosetuprebase", "autosetupmerge")),
    "extensions": frozenset(("objectformat", "refstorage")),
    "pull": frozenset(("rebase", "ff")),
    "push": frozenset(("default", "autosetupremote")),
    "merge": frozenset(("ff", "conflictstyle")),
    "remote": frozenset(("fetch", "url", "pushurl", "tagopt", "prune")),
    "submodule": frozenset(("active", "url")),
}


class Sifted(NamedTuple):
    """`text` is what stays; `removed` names the settings that do not, as `section.key`."""

    text: str
    removed: tuple[str, ...]


def sift(text: str, worktree: str = "") -> Sifted:
    """Takes every setting out of `text` that is not known to be harmless (git-config(1), Syntax).

    `worktree` is the one value core.worktree may have, as in a submodule; another one would make git write there.
    """
    kept: list[str] = []
    removed: dict[str, None] = {}
    section = ""
    continued = False  # the line before ended in a backslash and was taken out
    for line in text.split("\n"):  # and nothing else: git knows no other end of a line
        bare = line.removesuffix("\r")
        goes_on = bare.endswith("\\")
        if continued:
            continued = goes_on
            continue
        if not bare.strip() or bare.lstrip()[0] in "#;":
            # a comment that ends in a backslash still ends there
            kept.append(line)
            continue
        heading = _SECTION.fullmatch(bare)
        if heading:
            section = heading[1].lower()
            if section in _HARMLESS:
                kept.append(line)
            continue
        setting = _SETTING.fullmatch(bare)
        name = setting[1].lower() if setting else "?"
        if (
            setting
            and not goes_on
            and (
                _is_harmless(section, name, setting[2])
                or (worktree and (section, name, setting[2]) == ("core", "worktree", worktree))
            )
        ):
            kept.append(line)
        else:
            removed[f"{section or '?'}.{name}"] = None
            if bare.lstrip().startswith("["):
                # a heading we do not read, such as `[section] key = value` on one line or `[a.b]`
                section = ""
            continued = goes_on
    return Sifted("\n".join(kept), tuple(removed))


def _is_harmless(section: str, name: str, value: str | None) -> bool:
    if name not in _HARMLESS.get(section, ()):
        return False
    if value is None:
        return True
    plain = value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value
    if name in ("url", "pushurl"):
        return _ADDRESS.fullmatch(plain) is not None
    return _WORD.fullmatch(plain) is not None
