"""Whether a name is a public suffix: a wildcard right above one would open every site under it.

The list is the Public Suffix List as the `publicsuffixlist` package ships it. Its own class parses all 10,000 rules
(20 ms, which every run with a wildcard would pay). One question is a search for a few lines in the file (0.3 ms); a
configuration with many wildcards gets the lines as sets.
"""

from doorward.plain_enum import StrEnum


class SuffixKind(StrEnum):
    REGISTRY = "registry"  # com, co.uk: names under it belong to strangers
    SHARED = "shared"  # the list's private section: one operator's zone with many customers


_DEEPEST = 7  # labels of the longest rule in the list (2026); a name with more is no suffix
_FEW = 6  # questions after which building the sets is cheaper than searching on

_Lines = bytes | frozenset[bytes]
_lists: tuple[_Lines, _Lines] | None = None
_questions = 0


def suffix_kind(name: str) -> SuffixKind | None:
    """The kind of public suffix that `name` (A-labels) is or stands right below a wildcard of; None for other names.

    An unlisted top-level label (`test`, `internal`, `corp`) is not one: it belongs to whoever runs that network.
    """
    if name.count(".") >= _DEEPEST:
        return None
    spelled = _as_listed(name)
    parent = spelled.partition(".")[2]
    rules = [_line(spelled), _line(f"*.{spelled}")]
    registry, shared = _load()
    exception = _line(f"!{spelled}")
    if parent and exception not in registry and exception not in shared:
        rules.append(_line(f"*.{parent}"))
    if any(rule in registry for rule in rules):
        return SuffixKind.REGISTRY
    return SuffixKind.SHARED if any(rule in shared for rule in rules) else None


def _line(text: str) -> bytes:
    return b"\n" + text.encode() + b"\n"


def _load() -> tuple[_Lines, _Lines]:
    """The registries' part and the private part, each to be asked with `_line(rule) in part`."""
    global _lists, _questions
    _questions += 1
    if _lists is None:
        import publicsuffixlist  # only a wildcard rule needs it

        with open(publicsuffixlist.PSLFILE, "rb") as file:
            registry, _, shared = file.read().partition(b"// ===BEGIN PRIVATE DOMAINS===")
        _lists = registry, shared
    elif _questions > _FEW:
        _lists = _as_set(_lists[0]), _as_set(_lists[1])
    return _lists


def _as_set(part: _Lines) -> _Lines:
    return part if isinstance(part, frozenset) else frozenset(b"\n" + line + b"\n" for line in part.split(b"\n"))


def _as_listed(name: str) -> str:
    """The list writes Unicode labels."""
    if "xn--" not in name:
        return name
    import idna

    try:
        return idna.decode(name)
    except idna.IDNAError:
        return name
