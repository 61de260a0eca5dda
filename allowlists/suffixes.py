"""Whether a name is a public suffix: a wildcard right above one would open every site under it.

The list is the Public Suffix List as the `publicsuffixlist` package ships it. Its own class parses all 10,000 rules
(20 ms, which every run with a wildcard would pay); its lines as two plain sets answer the one question (2 ms).
"""

from enum import StrEnum


class SuffixKind(StrEnum):
    REGISTRY = "registry"  # com, co.uk: names under it belong to strangers
    SHARED = "shared"  # the list's private section: one operator's zone with many customers


_DEEPEST = 7  # labels of the longest rule in the list (2026); a name with more is no suffix
_lists: tuple[frozenset[bytes], frozenset[bytes]] | None = None


def suffix_kind(name: str) -> SuffixKind | None:
    """The kind of public suffix that `name` (A-labels) is or stands right below a wildcard of; None for other names.

    An unlisted top-level label (`test`, `internal`, `corp`) is not one: it belongs to whoever runs that network.
    """
    if name.count(".") >= _DEEPEST:
        return None
    spelled = _as_listed(name)
    parent = spelled.partition(".")[2]
    rules = [spelled.encode(), f"*.{spelled}".encode()]
    registry, shared = _load()
    exception = f"!{spelled}".encode()
    if parent and exception not in registry and exception not in shared:
        rules.append(f"*.{parent}".encode())
    if not registry.isdisjoint(rules):
        return SuffixKind.REGISTRY
    return None if shared.isdisjoint(rules) else SuffixKind.SHARED


def _load() -> tuple[frozenset[bytes], frozenset[bytes]]:
    global _lists
    if _lists is None:
        import publicsuffixlist  # only a wildcard rule needs it

        with open(publicsuffixlist.PSLFILE, "rb") as file:
            registry, _, shared = file.read().partition(b"// ===BEGIN PRIVATE DOMAINS===")
        _lists = frozenset(registry.split(b"\n")), frozenset(shared.split(b"\n"))
    return _lists


def _as_listed(name: str) -> str:
    """The list writes Unicode labels."""
    if "xn--" not in name:
        return name
    import idna

    try:
        return idna.decode(name)
    except idna.IDNAError:
        return name
