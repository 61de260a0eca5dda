"""Public suffixes, against the list's own class."""

import random

import pytest
from publicsuffixlist import PSLFILE, PublicSuffixList

from doorward.allowlists.suffixes import SuffixKind, suffix_kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("com", SuffixKind.REGISTRY),
        ("co.uk", SuffixKind.REGISTRY),
        ("xn--p1ai", SuffixKind.REGISTRY),
        ("ck", SuffixKind.REGISTRY),
        ("foo.ck", SuffixKind.REGISTRY),  # listed as *.ck
        ("kawasaki.jp", SuffixKind.REGISTRY),  # what lies below it is a suffix each
        ("www.ck", None),  # listed as an exception
        ("city.kawasaki.jp", None),
        ("github.io", SuffixKind.SHARED),
        ("example.com", None),
        ("example.co.uk", None),
        ("test", None),
        ("internal", None),
        ("localhost", None),
        ("a.b.c.d.e.f.g.h.com", None),
    ],
)
def test_kinds(name: str, kind: SuffixKind | None) -> None:
    assert suffix_kind(name) is kind


def test_agrees_with_the_packages_own_reading_of_the_list() -> None:
    """Every tenth entry of the list, itself and one label deeper."""
    every = PublicSuffixList(accept_unknown=False)
    registry = PublicSuffixList(accept_unknown=False, only_icann=True)
    with open(PSLFILE, encoding="utf-8") as file:
        entries = [line.strip() for line in file if line.strip() and not line.startswith("//")]
    names = [
        entry.lstrip("!*.").encode("idna").decode() for entry in random.Random(7).sample(entries, len(entries) // 10)
    ]
    wildcards = {entry[2:].encode("idna").decode() for entry in entries if entry.startswith("*.")}
    for name in (*names, *(f"deeper.{name}" for name in names)):
        if name in wildcards:
            assert suffix_kind(name) is not None
        elif registry.publicsuffix(name) == name:
            assert suffix_kind(name) is SuffixKind.REGISTRY, name
        elif every.publicsuffix(name) == name:
            assert suffix_kind(name) is SuffixKind.SHARED, name
        else:
            assert suffix_kind(name) is None, name
